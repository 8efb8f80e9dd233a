package funds

import (
	"slices"
	"testing"

	"backstop/internal/ledger"
	"backstop/views/panel"
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
	of := func(account string, debit, credit int64) panel.AccountSum {
		return panel.AccountSum{Account: account, Currency: "CNY", Debit: debit, Credit: credit}
	}
	if want := []entrySide{
		{ref: "refund:1:D", AccountSum: of("merchant:m1", 700, 0)},
		{AccountSum: of("refund:wx", 0, 700)},
		{ref: "refund:1:C", AccountSum: of("refund:wx", 700, 0)},
		{AccountSum: of("supplier:wx", 0, 700)},
		{AccountSum: of("", 1400, 1400)},
	}; !slices.Equal(rows, want) {
		t.Errorf("%+v", rows)
	}
	if rows := entrySides(nil); len(rows) != 0 {
		t.Errorf("no entries have %+v", rows)
	}
}
