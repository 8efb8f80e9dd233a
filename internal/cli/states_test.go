package cli

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves"
	"backstop/internal/batch"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/sweep"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

// stored is a table of moves and how the schema has it.
type stored struct {
	column string // "orders.status"
	page   string
	words  []string
	// reserved are statuses that the schema allows but the table does not have: nothing writes
	// them yet.
	reserved []string
	// indexes are the partial indexes that list statuses, with the program's condition.
	indexes map[string]string
}

func table[S ~string](t moves.Table[S], reserved ...string) stored {
	return stored{column: t.Column, page: page(t), words: t.Words(), reserved: reserved}
}

// tables returns all tables of moves, in the order of docs/states.md.
func tables() []stored {
	attempts := table(payment.Moves)
	attempts.indexes = map[string]string{
		"payment_attempts_trade": payment.Moves.In("status", payment.Settled...),
	}
	comp := table(compensation.Moves)
	comp.indexes = map[string]string{"compensations_open": compensation.Moves.In("state", compensation.Moves.Open()...)}
	decisions := table(approval.Moves)
	decisions.indexes = map[string]string{"approvals_open": approval.Moves.In("state", approval.Moves.Open()...)}
	sweeps := table(sweep.Moves)
	sweeps.indexes = map[string]string{"sweeps_running": sweep.Moves.In("state", sweep.Moves.Open()...)}
	payouts := table(payout.Moves)
	payouts.page += "\n" + cellsPage()
	return []stored{
		table(order.Moves), attempts, table(notify.Moves),
		table(exception.Moves), table(batch.Moves), table(batch.RowMoves),
		table(alert.Moves), table(alert.IncidentMoves), table(alert.MessageMoves), comp, decisions, sweeps, table(refund.Moves), payouts,
		table(payout.StepMoves), table(dispute.Moves),
	}
}

const statesFile = "docs/states.md"

func TestStatesPageIsCurrent(t *testing.T) {
	page := "# Statuses\n\n" +
		"Generated from the tables of moves, one for each type (`Moves`); change them there and run `go test ./internal/cli -run StatesPage -update`.\n\n" +
		"A status changes only by compare-and-set, as its table allows. The loser of a race changes nothing and reads again (`db.ErrStale`).\n"
	for _, s := range tables() {
		page += "\n" + s.page
	}
	if *update {
		if err := os.WriteFile(statesFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, statesFile) != page {
		t.Error("docs/states.md differs from the code: run go test ./internal/cli -run StatesPage -update")
	}
}

var word = regexp.MustCompile(`'([a-z_]+)'`)

// listed returns the quoted words of an SQL text, sorted.
func listed(text string) (all []string) {
	for _, m := range word.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// checkOf returns the CHECK of a column as the engine stores it.
func checkOf(t *testing.T, d *db.DB, table, column string) string {
	t.Helper()
	var text []string
	query := "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = CAST(? AS regclass) AND contype = 'c'"
	if !d.IsPostgres() {
		query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
	}
	if err := d.Read.NewRaw(query, table).Scan(context.Background(), &text); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`CHECK \(+` + column + `\)? (IN|= ANY) \([^)]*\)`).FindString(strings.Join(text, "\n"))
	if found == "" {
		t.Fatalf("%s.%s has no CHECK in %q", table, column, text)
	}
	return found
}

// The schema lists the same statuses on both engines.
func TestTheSchemaHasTheStatusesOfTheTables(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, s := range tables() {
			name, column, _ := strings.Cut(s.column, ".")
			want := slices.Sorted(slices.Values(slices.Concat(s.words, s.reserved)))
			if got := listed(checkOf(t, d, name, column)); !slices.Equal(got, want) {
				t.Errorf("%s: the schema allows %q, the table and what is reserved are %q", s.column, got, want)
			}
			for index, want := range s.indexes {
				query := "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexname = ?"
				if !d.IsPostgres() {
					query = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?"
				}
				var text string
				if err := d.Read.NewRaw(query, index).Scan(context.Background(), &text); err != nil {
					t.Fatal(err)
				}
				_, text, _ = strings.Cut(text, "WHERE")
				if got := listed(text); !slices.Equal(got, listed(want)) {
					t.Errorf("%s is of %q, the program looks for %q", index, got, want)
				}
			}
		}
	})
}

var spelled = regexp.MustCompile(`\b(status|state) (NOT )?IN \('`)

// A list of statuses that is written out in a query does not follow its table.
func TestNoQuerySpellsAListOfStatuses(t *testing.T) {
	if !spelled.MatchString("WHERE o.status IN ('paid', 'closed')") {
		t.Fatal("the pattern finds nothing")
	}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		if found := spelled.FindString(read(t, file)); found != "" {
			t.Errorf("%s spells %q: take the list from the noun's table of moves", file, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// page is a table of moves as a section of docs/states.md.
func page[S ~string](t moves.Table[S]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n`%s`. %s\n\n```mermaid\nstateDiagram-v2\n", t.Noun, t.Column, t.About)
	for _, s := range t.Initial() {
		fmt.Fprintf(&b, "    [*] --> %s\n", s)
	}
	for _, r := range t.Rows {
		for _, to := range r.To {
			fmt.Fprintf(&b, "    %s --> %s\n", r.Status, to)
		}
	}
	b.WriteString("```\n\n| status | open | needs a person | final | meaning |\n|---|---|---|---|---|\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			r.Status, yes(r.Open), yes(r.NeedsPerson), yes(slices.Contains(t.Final(), r.Status)), r.Meaning)
	}
	b.WriteString("\n| from \\ to |")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, " %s |", r.Status)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.Rows)) + "\n")
	for _, from := range t.Rows {
		fmt.Fprintf(&b, "| **%s** |", from.Status)
		for _, to := range t.Rows {
			fmt.Fprintf(&b, " %s |", yes(t.Can(from.Status, to.Status)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "–"
}

// cellsPage is the part of docs/states.md about the steps of payouts.
func cellsPage() string {
	page := "### Steps of a payout\n\nEvery combination that a payout may have; anything else is a bug, which `backstop verify` reports.\n\n" +
		"| | Debit | Credit | Reversal | Status | Next |\n|---|---|---|---|---|---|\n"
	for _, c := range payout.Cells {
		page += "| " + strings.Join([]string{c.No, words(c.Debit), words(c.Credit), words(c.Reversal), words(c.Status), c.Next}, " | ") +
			" |\n"
	}
	return page
}

func words[S ~string](all []S) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = "–"
		if s != "" {
			texts[i] = "`" + string(s) + "`"
		}
	}
	return strings.Join(texts, ", ")
}
