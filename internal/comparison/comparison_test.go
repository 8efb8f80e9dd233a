package comparison_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/comparison"
)

func TestOutcomesAgreeOnWhatBecameOfAnOrder(t *testing.T) {
	t.Parallel()
	paid := comparison.Outcome{Status: "paid", PaidAmount: 1999, TradeNo: "T-1"}
	for _, x := range []struct {
		here, there comparison.Outcome
		want        bool
	}{
		{paid, paid, true},
		{paid, comparison.Outcome{Status: "paid", PaidAmount: 1999}, true},
		{paid, comparison.Outcome{Status: "paid", PaidAmount: 1999, TradeNo: "T-2"}, false},
		{paid, comparison.Outcome{Status: "paid", PaidAmount: 2000, TradeNo: "T-1"}, false},
		{comparison.Outcome{Status: "closed"}, comparison.Outcome{Status: "failed"}, true},
		{comparison.Outcome{Status: "pending"}, comparison.Outcome{Status: "closing"}, true},
		{comparison.Outcome{Status: "pending"}, comparison.Outcome{Status: "closed"}, false},
		{comparison.Outcome{}, comparison.Outcome{Status: "pending"}, false},
	} {
		if got := x.here.Agrees(x.there); got != x.want {
			t.Errorf("here %s, there %s: they agree: %t", x.here, x.there, got)
		}
	}
}

// A comparison keeps its counts whole, and as many rows and comparisons as the limits say.
func TestWhatIsKeptOfComparisonsIsBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		count := func(query string) (n int64) {
			t.Helper()
			if err := d.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		differences := make([]comparison.Difference, comparison.MaxRows+1)
		for i := range differences {
			differences[i] = comparison.Difference{OrderNo: fmt.Sprint("A-", i), There: comparison.Outcome{Status: "closed"}}
		}
		counts := comparison.Counts{Same: 7, OnlyThere: int64(len(differences))}
		first, err := comparison.Save(t.Context(), d, "/exports/"+strings.Repeat("a", 300)+".jsonl", counts, differences)
		if err != nil {
			t.Fatal(err)
		}
		var kept comparison.Comparison
		if err := d.Read.NewSelect().Model(&kept).Where("id = ?", first).Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept.Counts != counts || kept.Kept != comparison.MaxRows || len(kept.File) > 203 || strings.Contains(kept.File, "/") {
			t.Errorf("kept: %+v", kept)
		}
		if n := count("SELECT count(*) FROM comparison_rows WHERE side = 'there' AND here_status = ''"); n != comparison.MaxRows {
			t.Errorf("%d rows", n)
		}
		for range 100 {
			if _, err := comparison.Save(t.Context(), d, "there.jsonl", comparison.Counts{Differ: 1}, slices.Clone(differences[:1])); err != nil {
				t.Fatal(err)
			}
		}
		if n, rows := count("SELECT count(*) FROM comparisons"), count("SELECT count(*) FROM comparison_rows"); n != 100 || rows != 100 {
			t.Errorf("%d comparisons with %d rows, the newest hundred are kept", n, rows)
		}
	})
}
