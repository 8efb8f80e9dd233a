package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"backstop/internal/fund/adjust"
	"backstop/internal/ledger/fact"
)

const fundsFile = "docs/funds.md"

// The parts of docs/funds.md that are generated.
const (
	entriesFrom, entriesTo = "<!-- entries, generated -->\n", "<!-- end of entries -->\n"
	pairsFrom, pairsTo     = "<!-- pairs, generated -->\n", "<!-- end of pairs -->\n"
)

// entriesText is the table of facts.
func entriesText() string {
	var b strings.Builder
	b.WriteString("| fact | debit | credit | reference | on the statement | meaning |\n|---|---|---|---|---|---|\n")
	for _, r := range fact.Table {
		kind := string(r.Kind)
		if kind == "" {
			kind = "–"
		} else {
			kind = "`" + kind + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | `%s` | %s | %s |\n", r.Fact, r.Debit, r.Credit, r.Ref, kind, r.Meaning)
	}
	return b.String()
}

// The Chinese page has the same entries in its own words, and the same pairs.
func TestTheChineseFundsPageIsCurrent(t *testing.T) {
	facts := func(page string) (rows []string) {
		_, table, _ := strings.Cut(page, "<!-- entries")
		table, _, _ = strings.Cut(table, entriesTo)
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
				rows = append(rows, strings.Join(cells[:len(cells)-1], " | "))
			}
		}
		return rows
	}
	zh := read(t, "docs/funds.zh-CN.md")
	if got, want := facts(zh), facts(read(t, fundsFile)); !slices.Equal(got, want) || len(got) != len(fact.Table) {
		t.Errorf("docs/funds.zh-CN.md has %d entries, %s %d, or they differ", len(got), fundsFile, len(want))
	}
	if !strings.Contains(zh, pairsFrom+pairsText()+pairsTo) {
		t.Error("docs/funds.zh-CN.md has other pairs of accounts than the code")
	}
}

func pairsText() string { return "`" + strings.Join(adjust.Pairs(), "`, `") + "`.\n" }

// TestFundsPageIsCurrent compares the generated parts with the code.
func TestFundsPageIsCurrent(t *testing.T) {
	page := read(t, fundsFile)
	for _, part := range [][3]string{{entriesFrom, entriesTo, entriesText()}, {pairsFrom, pairsTo, pairsText()}} {
		before, rest, begins := strings.Cut(page, part[0])
		is, after, ends := strings.Cut(rest, part[1])
		if !begins || !ends {
			t.Fatalf("%s has no %q … %q", fundsFile, part[0], part[1])
		}
		if is == part[2] {
			continue
		}
		if !*update {
			t.Errorf("%s differs from the code: run go test ./internal/cli -run FundsPage -update", fundsFile)
			continue
		}
		page = before + part[0] + part[2] + part[1] + after
		if err := os.WriteFile(fundsFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
