// Package verify checks the books: what must hold for orders, money, stock and notifications
// after any crash, and that the audit has not been changed.
//
// It reads beside a running server and holds no snapshot for long. Claims about one row and its
// related rows are checked page by page, each page in one statement and hence as of one time.
// Sums over everything are taken as of a minute ago, where nothing changes any more, and later
// changes are added in one short snapshot. Whatever seems wrong is checked a second time before
// it is reported.
package verify

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/settings"
)

// How many violations per invariant are shown, and how many rows are named.
const (
	maxExamples = 5
	maxRows     = 100
)

// settled is the age above which no open transaction can commit an older row: far above the 30
// s after which a statement is cancelled.
const settled = time.Minute

// Invariant is one condition that must hold, with the findings.
type Invariant struct {
	ID         string   `json:"id"` // "I1", …, or "audit"
	Title      string   `json:"title"`
	Examined   int64    `json:"examined"` // rows
	Violations int64    `json:"violations"`
	Examples   []string `json:"examples"`       // at most five
	Rows       []Row    `json:"rows,omitempty"` // rows that are wrong, at most a hundred
}

func (i *Invariant) violated(what string, row Row) {
	if i.Violations++; len(i.Examples) < maxExamples {
		i.Examples = append(i.Examples, what)
	}
	if row.ID != "" && len(i.Rows) < maxRows && !slices.Contains(i.Rows, row) {
		i.Rows = append(i.Rows, row)
	}
}

// Report is the outcome of one run.
type Report struct {
	Invariants []*Invariant  `json:"invariants"`
	Took       time.Duration `json:"took_ns"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool {
	for _, i := range r.Invariants {
		if i.Violations > 0 {
			return false
		}
	}
	return true
}

// Examined returns the total number of examined rows.
func (r Report) Examined() (n int64) {
	for _, i := range r.Invariants {
		n += i.Examined
	}
	return n
}

// WriteText prints the report as a table, followed by examples of violations.
func (r Report) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "invariant\texamined\tviolations")
	for _, i := range r.Invariants {
		fmt.Fprintf(table, "%s %s\t%d\t%d\n", i.ID, i.Title, i.Examined, i.Violations)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	var b strings.Builder
	for _, i := range r.Invariants {
		for _, example := range i.Examples {
			fmt.Fprintf(&b, "%s: %s\n", i.ID, example)
		}
		if more := i.Violations - int64(len(i.Examples)); more > 0 {
			fmt.Fprintf(&b, "%s: … and %d more\n", i.ID, more)
		}
	}
	verdict := "the books are in order"
	if !r.OK() {
		verdict = "the books are NOT in order"
	}
	fmt.Fprintf(&b, "%s (%s)\n", verdict, r.Took.Round(time.Millisecond))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Progress is the progress of a run.
type Progress struct {
	Invariant string // the current one
	Examined  int64  // rows of it so far
}

// Run checks every invariant. An error means that the database could not be read; violations
// are not errors. keys are for the audit; a missing key that it needs is a violation too.
// progress may be nil.
func Run(ctx context.Context, d *db.DB, keys *seal.Keyring, progress func(Progress)) (Report, error) {
	return (&run{db: d, audit: audit.New(d, keys), cut: cutBefore(d, settled), progress: progress}).all(ctx)
}

type run struct {
	db       *db.DB
	audit    *audit.Log
	cut      func() int64 // returns the largest id of what is settled
	progress func(Progress)
}

func (r *run) all(ctx context.Context) (Report, error) {
	start := time.Now()
	var report Report
	parked, err := r.parked(ctx)
	if err != nil {
		return report, fmt.Errorf("verify: %w", err)
	}
	for _, c := range []struct {
		id     string
		claims []claim
		sums   func(context.Context, *Invariant) error
	}{
		{"I1", callbackClaims(), nil},
		{"I2", notifyClaims(r.db.Now(), parked), nil},
		{"I3", append(paidClaims(), feeClaims()...), nil},
		{"I4", ledgerClaims(), twice(r.balances, accountRow)},
		{"I5", nil, twice(r.stock, nil)},
		{"I6", historyClaims(), nil},
		{"I7", markClaims(), nil},
		{"I8", eventClaims(), nil},
		{"I12", approvalClaims(), nil},
		{"I13", nil, twice(r.lines, accountRow)},
		{"I14", heldClaims(), twice(r.held, heldRow)},
		{"I15", decisionClaims(), nil},
		{"I16", slices.Concat(refundStepClaims(), payoutStepClaims(),
			disputeStepClaims()), nil},
		{
			"I17",
			slices.Concat(refundSumClaims(), payoutSumClaims(), disputeSumClaims()), nil,
		},
		{"audit", nil, r.acts},
	} {
		i := &Invariant{ID: c.id, Title: Titles[c.id].EN, Examples: []string{}}
		report.Invariants = append(report.Invariants, i)
		for _, claim := range c.claims {
			if err := r.walk(ctx, i, claim); err != nil {
				return report, fmt.Errorf("verify %s: %w", c.id, err)
			}
		}
		if c.sums == nil {
			continue
		}
		if err := c.sums(ctx, i); err != nil {
			return report, fmt.Errorf("verify %s: %w", c.id, err)
		}
	}
	report.Took = time.Since(start)
	return report, nil
}

// acts checks the audit chain.
func (r *run) acts(ctx context.Context, i *Invariant) error {
	rows, err := r.audit.Verify(ctx, r.db.Read, func(b audit.Break) { i.violated(b.String(), Row{}) }, func(rows int64) {
		i.Examined = rows
		r.report(i)
	})
	i.Examined = rows
	return err
}

// parked returns the merchants whose notifications are parked, and 0, which is no merchant,
// because a list of values must not be empty. No secret is needed or opened.
func (r *run) parked(ctx context.Context) ([]int64, error) {
	breakers := breaker.NewCache(r.db, nil)
	if err := breakers.Refresh(ctx); err != nil {
		return nil, err
	}
	store := settings.NewStore(r.db, nil, new(seal.Keyring), slog.New(slog.DiscardHandler))
	if err := store.Refresh(ctx); err != nil {
		return nil, err
	}
	return append(notify.ParkedIDs(breakers, store.Merchants()), 0), nil
}

func (r *run) report(i *Invariant) {
	if r.progress != nil {
		r.progress(Progress{Invariant: i.ID, Examined: i.Examined})
	}
}

// cutBefore returns the largest id older than the given age.
func cutBefore(d *db.DB, age time.Duration) func() int64 {
	return func() int64 { return db.IDAt(d.Now()-age.Microseconds()) - 1 }
}

// never is above every id.
const never = math.MaxInt64
