package ledger_test

import (
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// The totals are those of the entries, folded or not.
func TestTotalsAreThoseOfTheEntries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		want := []ledger.Total{
			{Kind: "merchant:a", Currency: "CNY", Accounts: 1, Credit: 300},
			{Kind: "merchant:b", Currency: "CNY", Accounts: 1, Debit: 40},
			{Kind: "merchant:b", Currency: "USD", Accounts: 1, Credit: 7},
			{Kind: "supplier:s", Currency: "CNY", Accounts: 1, Debit: 260},
			{Kind: "supplier:s", Currency: "USD", Accounts: 1, Debit: 7},
		}
		compare := func(when string) {
			t.Helper()
			got, err := ledger.Totals(t.Context(), d.Read, "a.code")
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %+v, %v", when, got, err)
			}
		}
		dollars := pays("b", 7, "paid:2")
		dollars.Currency = "USD"
		posted(t, d, book, pays("a", 300, "paid:1"), dollars)
		fold(t, book)
		posted(t, d, book, ledger.Entry{Debit: "merchant:b", Credit: "supplier:s", Amount: 40, Currency: "CNY", Ref: "refund:1:A"})
		compare("one journal is not folded")
		fold(t, book)
		compare("all are folded")
		all, err := ledger.Totals(t.Context(), d.Read, "substr(a.code, 1, 8)")
		if err != nil || all[0] != (ledger.Total{Kind: "merchant", Currency: "CNY", Accounts: 2, Debit: 40, Credit: 300}) {
			t.Errorf("by kind: %+v, %v", all, err)
		}
	})
}
