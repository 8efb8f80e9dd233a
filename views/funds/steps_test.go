package funds

import (
	"slices"
	"testing"

	"backstop/internal/ledger"
)

// Each entry has its debit above its credit, and one line has the sum of a currency.
func TestEntriesHaveBothSidesAndOneSum(t *testing.T) {
	t.Parallel()
	rows := entrySides([]ledger.Line{
		{Debit: "merchant:m1", Credit: "refund:wx", Amount: 700, Currency: "CNY", Ref: "refund:1:D", CreatedAt: 5},
		{Debit: "refund:wx", Credit: "supplier:wx", Amount: 700, Currency: "CNY", Ref: "refund:1:C", CreatedAt: 6},
	})
	if len(rows) != 5 || *rows[2].at != 6 || rows[2].ref != "refund:1:C" {
		t.Fatalf("%+v", rows)
	}
	rows[0].at, rows[2].at = nil, nil
	if want := []entrySide{
		{ref: "refund:1:D", account: "merchant:m1", debit: 700, currency: "CNY"},
		{account: "refund:wx", credit: 700, currency: "CNY"},
		{ref: "refund:1:C", account: "refund:wx", debit: 700, currency: "CNY"},
		{account: "supplier:wx", credit: 700, currency: "CNY"},
		{debit: 1400, credit: 1400, currency: "CNY"},
	}; !slices.Equal(rows, want) {
		t.Errorf("%+v", rows)
	}
	if rows := entrySides(nil); len(rows) != 0 {
		t.Errorf("no entries have %+v", rows)
	}
}
