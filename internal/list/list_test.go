package list

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/invalid"

	"github.com/uptrace/bun"
)

// exceptions is a list of a table with money, a merchant and several indexes.
func exceptions(scan int) *Spec {
	return &Spec{
		Name: "exceptions",
		Sources: []Source{{
			Table: "exceptions", Alias: "x", Columns: "x.id, x.kind, x.state", Key: "id",
			Money: Money{"x.amount", "x.currency"}, MerchantColumn: "x.merchant_id",
		}},
		Fields: []Field{
			{Name: "no", Column: "order_no", Indexed: true},
			{Name: "state", Column: "state", Values: []string{"open", "locked", "resolved"}},
			{Name: "amount", Column: "amount", Check: func(v string) string {
				if strings.Trim(v, "0123456789") != "" {
					return "use a number"
				}
				return ""
			}},
			{Name: "old", Match: func(_ context.Context, _ Lookup, no string) (Match, error) {
				return Match{Where: "x.order_no = ?", Args: []any{no}, Indexed: true, AnyAge: true}, nil
			}},
			{Name: "unalerted", Match: func(_ context.Context, _ Lookup, state string) (Match, error) {
				return Match{Where: "x.alerted_at IS NULL AND x.state = ?", Args: []any{state}, Candidates: func(context.Context, bun.IDB) (string,
					error,
				) {
					return "SELECT * FROM exceptions WHERE alerted_at IS NULL", nil
				}}, nil
			}},
		},
		ScanRows: scan,
	}
}

type row struct {
	ID          int64
	Kind, State string
}

func key(r *row) int64 { return r.ID }

// fill writes n exceptions and returns their ids, oldest first. Of five, one is resolved
// and one is alerted already; each third is of merchant 2.
func fill(t *testing.T, d *db.DB, n int) (ids []int64) {
	t.Helper()
	for i := range n {
		id := d.NewID()
		state, alerted := "open", "NULL"
		if i%5 == 0 {
			state = "resolved"
		}
		if i%5 == 1 {
			alerted = "1"
		}
		_, err := d.NewRaw(
			"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at, alerted_at)"+
				" VALUES (?, 'late_payment', ?, 0, ?, 0, ?, ?, ?, ?, '{}', 1, 0, 0, "+alerted+")", id, state, 1+min(1, i%3/2),
			fmt.Sprintf("O%d", i%7), fmt.Sprint(id), i, []string{"CNY", "JPY", ""}[i%3]).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// walk reads a list to its end and returns the keys as they came.
func walk(t *testing.T, d *db.DB, q Query, s Slice) (ids []int64) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := Read(t.Context(), d, q, s, key)
		if err != nil || pages > 1000 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for _, r := range page.Rows {
			ids = append(ids, r.ID)
		}
		if s.At = page.Older; s.At == (Cursor{}) {
			return ids
		}
	}
}

// TestEveryReaderFindsTheSame has pages, a stream, ids, a count and sums read the same rows, however
// they are found: by an index, among few, or among the newest.
func TestEveryReaderFindsTheSame(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 60)
		from := db.IDTime(ids[0])
		for name, c := range map[string]struct {
			terms []Term
			want  func(i int) bool
		}{
			"all":               {nil, func(int) bool { return true }},
			"by an index":       {[]Term{{"no", "O3"}}, func(i int) bool { return i%7 == 3 }},
			"scanned":           {[]Term{{"state", "resolved"}}, func(i int) bool { return i%5 == 0 }},
			"among few":         {[]Term{{"unalerted", "open"}}, func(i int) bool { return i%5 > 1 }},
			"few, by an index":  {[]Term{{"unalerted", "open"}, {"no", "O3"}}, func(i int) bool { return i%5 > 1 && i%7 == 3 }},
			"few, and a column": {[]Term{{"unalerted", "open"}, {"amount", "12"}}, func(i int) bool { return i == 12 }},
			"none":              {[]Term{{"state", "locked"}}, func(int) bool { return false }},
		} {
			for scan, scope := range map[int]Scope{0: All(), 7: All(), 8: Of(2), 9: Of()} {
				var want []int64
				sums := map[string]Sum{}
				for i, id := range ids {
					if c.want(i) && (scan < 8 || scan == 8 && i%3 == 2) {
						want = append(want, id)
						if currency := []string{"CNY", "JPY", ""}[i%3]; currency != "" {
							sums[currency] = Sum{currency, sums[currency].Rows + 1, sums[currency].Minor + int64(i)}
						}
					}
				}
				q := Query{exceptions(scan), scope, c.terms}
				got, err := q.IDs(t.Context(), d, Slice{From: from}, d.NewID(), 100)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, %d: ids %v, want %v; %v", name, scan, got, want, err)
				}
				slices.Reverse(want)
				for _, s := range []Slice{{From: from, Rows: 4}, {Rows: 100}} {
					if got := walk(t, d, q, s); !slices.Equal(got, want) {
						t.Errorf("%s, %d: pages %v, want %v", name, scan, got, want)
					}
				}
				var each []int64
				err = Each(Slice{}, func(s Slice) (Page[row], error) { return Read(t.Context(), d, q, s, key) }, func(r row) error {
					each = append(each, r.ID)
					return nil
				})
				if err != nil || !slices.Equal(each, want) {
					t.Errorf("%s, %d: a stream of %v, want %v; %v", name, scan, each, want, err)
				}
				if scan != 0 {
					continue // of counts and sums there may be more
				}
				if n, more, err := q.Newer(t.Context(), d, Slice{}, ids[0]-1, 99); err != nil || n != int64(len(want)) || more {
					t.Errorf("%s: %d newer, more %t, want %d; %v", name, n, more, len(want), err)
				}
				page, err := Read(t.Context(), d, q, Slice{From: from, Totals: true}, key)
				all := page.Totals
				if err != nil || page.More || page.Count != int64(len(want)) || all.More || all.Rows != int64(len(want)) ||
					len(all.Sums) != len(sums) {
					t.Errorf("%s: totals %+v, want %d rows and %v; %v", name, all, len(want), sums, err)
				}
				for _, s := range all.Sums {
					if sums[s.Currency] != s {
						t.Errorf("%s: %v, want %v", name, s, sums[s.Currency])
					}
				}
			}
		}
	})
}

func TestIDsAndStreamsAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 20)
		q := Query{exceptions(6), All(), nil}
		if got, err := q.IDs(t.Context(), d, Slice{}, ids[15], 15); err != nil || !slices.Equal(got, ids[:15]) {
			t.Errorf("below the 16th: %v, %v", got, err)
		}
		if got, err := q.IDs(t.Context(), d, Slice{Only: []int64{ids[3], ids[2], 1}}, 0, 15); err != nil || !slices.Equal(got, ids[2:4]) {
			t.Errorf("of two: %v, %v", got, err)
		}
		if got, err := q.With("no", "O3").IDs(t.Context(), d, Slice{Only: []int64{ids[3], ids[2]}}, 0, 15); err != nil ||
			!slices.Equal(got, ids[3:4]) {
			t.Errorf("of two, with a filter: %v, %v", got, err)
		}
		if _, err := q.IDs(t.Context(), d, Slice{}, ids[15], 14); !errors.Is(err, ErrTooMany) {
			t.Errorf("15 where 14 may be: %v", err)
		}
		// Few match, far apart: each query looks at six rows and goes on.
		if got, err := q.With("amount", "1").IDs(t.Context(), d, Slice{}, 0, 1); err != nil || !slices.Equal(got, ids[1:2]) {
			t.Errorf("one of twenty: %v, %v", got, err)
		}
		stop, n := errors.New("stop"), 0
		err := Each(Slice{}, func(s Slice) (Page[row], error) { return Read(t.Context(), d, q, s, key) },
			func(row) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("a stream that is stopped: %d rows, %v", n, err)
		}
		if n, more, err := q.Newer(t.Context(), d, Slice{}, ids[2], 9); err != nil || n != 9 || !more {
			t.Errorf("%d newer, more %t, %v", n, more, err)
		}
	})
}

// TestWhatIsScannedSaysSo has a count, a sum and a number of newer rows report that there may be
// more than they have searched.
func TestWhatIsScannedSaysSo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 20)
		q := Query{exceptions(6), All(), nil}.With("state", "open")
		page, err := Read(t.Context(), d, q, Slice{}, key)
		if err != nil || !page.More || page.Reached == 0 || page.Older.ID != ids[14] {
			t.Errorf("a page: %+v, %v", page, err)
		}
		if page, err := Read(t.Context(), d, q, Slice{Totals: true}, key); err != nil || !page.More || !page.Totals.More ||
			len(page.Totals.Sums) > 0 {
			t.Errorf("totals: %+v, %v", page, err)
		}
		if _, more, err := q.Newer(t.Context(), d, Slice{}, ids[0], 99); err != nil || !more {
			t.Errorf("newer: more %t, %v", more, err)
		}
	})
}

// TestOldRowsAreFoundWhereTheirNumberIsGiven has a field reach beyond the time that is
// asked for, and no other.
func TestOldRowsAreFoundWhereTheirNumberIsGiven(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 7)
		future := d.Now() + time.Hour.Microseconds()
		q := Query{Spec: exceptions(0), Scope: All()}
		if got := walk(t, d, q.With("old", "O2"), Slice{From: future}); !slices.Equal(got, ids[2:3]) {
			t.Errorf("by the number: %v", got)
		}
		if got := walk(t, d, q.With("no", "O2"), Slice{From: future}); len(got) != 0 {
			t.Errorf("by an index, within the time: %v", got)
		}
		if any, err := q.With("state", "locked").Any(t.Context(), d); err != nil || !any {
			t.Errorf("the list has rows: %t, %v", any, err)
		}
		q.Scope = Scope{}
		if any, err := q.Any(t.Context(), d); err != nil || any {
			t.Errorf("a scope without merchants: %t, %v", any, err)
		}
	})
}

// TestAListWithoutAMerchantColumnIsNotRead is what a role's scope depends on.
func TestAListWithoutAMerchantColumnIsNotRead(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	spec := exceptions(0)
	spec.Sources[0].MerchantColumn = ""
	if _, err := Read(t.Context(), d, Query{Spec: spec, Scope: All()}, Slice{}, key); err == nil {
		t.Error("it is read")
	}
}

func TestATermThatMeansNothingIsRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for name, c := range map[string]struct {
		term  Term
		field string
	}{
		"no such field":       {Term{"colour", "red"}, "colour"},
		"a value that is not": {Term{"amount", "much"}, "amount"},
	} {
		q := Query{exceptions(0), All(), []Term{c.term}}
		_, err := Read(t.Context(), d, q, Slice{}, key)
		var wrong *invalid.FieldError
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Parse(exceptions(0), All(), func(name string) string { return map[string]string{"amount": "x", "colour": "red"}[name] })
	var wrong *invalid.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "amount" {
		t.Errorf("an address: %v", err)
	}
	q, err := Parse(exceptions(0), All(), func(name string) string { return map[string]string{"state": "open", "colour": "red"}[name] })
	if err != nil || q.Get("state") != "open" || len(q.Terms) != 1 {
		t.Errorf("an address: %+v, %v", q, err)
	}
	s, err := q.Spec.Suggestions(t.Context(), d.Read)
	if err != nil || len(s["state"]) != 3 || s["state"][0].Value != "open" {
		t.Errorf("suggestions: %v, %v", s, err)
	}
}
