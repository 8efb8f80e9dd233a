package list

import (
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// failing is a list whose open rows failed, each for one of seven causes.
func failing() *Spec {
	spec := exceptions(0)
	spec.CauseField = "no"
	spec.Sources[0].Cause = "CASE WHEN x.state = 'resolved' THEN '' ELSE x.order_no END"
	return spec
}

// sumOf adds up the sums of causes by currency.
func sumOf(causes []Cause) (rows int64, sums map[string]Sum) {
	sums = map[string]Sum{}
	for _, c := range causes {
		rows += c.Rows
		for _, s := range c.Sums {
			sums[s.Currency] = Sum{s.Currency, sums[s.Currency].Rows + s.Rows, sums[s.Currency].Minor + s.Minor}
		}
	}
	return rows, sums
}

// TestCausesAgreeWithTheTotals has the causes of a list add up to its totals, and each to those of
// the list that its link leads to.
func TestCausesAgreeWithTheTotals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fill(t, d, 60)
		spec := failing()
		read := func(q Query) Totals {
			t.Helper()
			page, err := Read(t.Context(), d, q, Slice{Totals: true}, key)
			if err != nil {
				t.Fatal(err)
			}
			return page.Totals
		}
		all := read(Query{Spec: spec, Scope: All()})
		open := Query{Spec: spec, Scope: All()}.With("state", "open")
		got := read(open)
		if len(got.Causes) != 7 || !slices.EqualFunc(got.Causes, all.Causes, func(a, b Cause) bool {
			return a.Value == b.Value &&
				a.Rows == b.Rows && slices.Equal(a.Sums, b.Sums)
		}) {
			t.Errorf("causes %+v with those that did not fail, %+v without", all.Causes, got.Causes)
		}
		if rows, _ := sumOf(all.Causes); rows != 48 || all.Rows != 60 {
			t.Errorf("%d of %d rows failed, want 48 of 60", rows, all.Rows)
		}
		rows, sums := sumOf(got.Causes)
		if rows != got.Rows || len(sums) != 2 || len(got.Sums) != 2 {
			t.Errorf("%d rows by cause, %d in all; sums %v, %v", rows, got.Rows, sums, got.Sums)
		}
		for _, s := range got.Sums {
			if sums[s.Currency] != s {
				t.Errorf("%v by cause, %v in all", sums[s.Currency], s)
			}
		}
		for i, c := range got.Causes {
			if i > 0 && c.Rows > got.Causes[i-1].Rows {
				t.Errorf("%+v follows fewer rows", c)
			}
			if one := read(open.With("no", c.Value)); one.Rows != c.Rows || !slices.Equal(one.Sums, c.Sums) {
				t.Errorf("the cause %+v leads to %+v", c, one)
			}
		}
	})
}

// TestCausesAreBounded counts the causes of the rows that the totals add up, and no others.
func TestCausesAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 60)
		spec := failing()
		spec.SumRows = 5
		page, err := Read(t.Context(), d, Query{Spec: spec, Scope: All()}, Slice{Totals: true}, key)
		if rows, _ := sumOf(page.Totals.Causes); err != nil || !page.Totals.More || rows != 4 {
			t.Errorf("%d rows by cause of the newest five, of which one did not fail; %+v, %v", rows, page.Totals, err)
		}
		page, err = Read(t.Context(), d, Query{Spec: spec, Scope: All()}.With("state", "open"), Slice{Totals: true}, key)
		if err != nil || !page.Totals.More || len(page.Totals.Causes) > 0 {
			t.Errorf("where nothing is added up: %+v, %v", page.Totals, err)
		}
		spec.SumRows = 0
		spec.Sources[0].Cause = "CAST(x.id AS TEXT)"
		page, err = Read(t.Context(), d, Query{Spec: spec, Scope: All()}, Slice{Totals: true}, key)
		if err != nil || len(page.Totals.Causes) != maxCauses || page.Totals.Rows != int64(len(ids)) {
			t.Errorf("%d causes of %d rows, %v", len(page.Totals.Causes), page.Totals.Rows, err)
		}
	})
}

// TestCausesWithoutMoney has a list without money count its causes, and the rows as it does
// without them.
func TestCausesWithoutMoney(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fill(t, d, 20)
		spec := failing()
		spec.Sources[0].Money = Money{}
		page, err := Read(t.Context(), d, Query{Spec: spec, Scope: All()}, Slice{Rows: 4, Totals: true}, key)
		rows, sums := sumOf(page.Totals.Causes)
		if err != nil || rows != 16 || len(sums) > 0 || page.Count != 20 || page.More {
			t.Errorf("%d rows by cause, sums %v; %+v, %v", rows, sums, page, err)
		}
	})
}
