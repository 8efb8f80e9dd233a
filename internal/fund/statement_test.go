package fund_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/fee"
	"backstop/internal/fund"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// Each moment is on one statement, also where clocks are put forward at midnight.
func TestDaysOfStatementsFollowEachOther(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	_, end, err := fund.Day("2026-09-04", zone)
	for _, day := range []string{"2026-09-05", "2026-09-06", "2026-09-07"} {
		from, to, failed := fund.Day(day, zone)
		if err != nil || failed != nil || !from.Equal(end) || from.Format(time.DateOnly) != day || !to.After(from) {
			t.Errorf("%s is %s to %s, the day before ended %s: %v, %v", day, from, to, end, err, failed)
		}
		end = to
	}
}

func TestAStatementIsADayInPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		f.SetFees(t, f.M1.ID, fee.Rules{fee.Any: {Rate: 12_000, Fixed: 10}})
		if err := f.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		pay := func(n int) {
			t.Helper()
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY",
				Supplier: "sp-main",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, fmt.Sprint("T", n), 1999)); err != nil {
				t.Fatal(err)
			}
		}
		fold := func() {
			t.Helper()
			for {
				if n, err := f.Ledger.Fold(t.Context()); err != nil || n == 0 {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
			}
		}
		start := time.UnixMicro(d.Now()).Add(-time.Minute)
		pay(1)
		pay(2)
		fold()
		middle := time.UnixMicro(d.Now() + 1000)
		waittest.Until(t, "the next ids are of a later moment", func() bool { return d.Now() >= middle.UnixMicro() })
		pay(3)
		fold()
		pay(4) // not folded yet
		end := time.UnixMicro(d.Now()).Add(time.Minute)

		var items []fund.Item
		for after := int64(0); ; {
			s, err := fund.StatementOf(t.Context(), d, "m1", "CNY", start, middle, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			if s.Opening != 0 || s.Closing != 2*1965 || s.Credits != 2*1999 || s.Debits != 2*34 {
				t.Fatalf("%+v", s)
			}
			items = append(items, s.Items...)
			if after = s.Next; after == 0 {
				break
			}
		}
		balance := int64(0)
		for i, it := range items {
			if balance += it.Amount; it.Balance != balance || it.OrderNo == "" {
				t.Errorf("line %d is %+v, the sum is %d", i, it, balance)
			}
			if it.Kind == fact.KindPayment && (it.Amount != 1999 || it.Fee != 34) || it.Kind == fact.KindFee && it.Amount != -34 {
				t.Errorf("line %d is %+v", i, it)
			}
		}
		if len(items) != 4 {
			t.Errorf("%d lines", len(items))
		}
		s, err := fund.StatementOf(t.Context(), d, "m1", "CNY", middle, end, 0, 10)
		if err != nil || s.Opening != 2*1965 || s.Closing != 4*1965 || s.Credits != 2*1999 || s.Debits != 2*34 || len(s.Items) != 4 ||
			s.Next != 0 {
			t.Errorf("the next day is %+v, %v", s, err)
		}
		// Folding changes nothing about a statement, whose pages may end anywhere.
		paged := func() (all []fund.Item) {
			for after := int64(0); ; {
				s, err := fund.StatementOf(t.Context(), d, "m1", "CNY", middle, end, after, 3)
				if err != nil || s.Closing != 4*1965 {
					t.Fatalf("%+v, %v", s, err)
				}
				if all, after = append(all, s.Items...), s.Next; after == 0 {
					return all
				}
			}
		}
		tail := paged()
		fold()
		if folded := paged(); !slices.Equal(tail, s.Items) || !slices.Equal(folded, s.Items) {
			t.Errorf("the lines are %+v\nin pages %+v\nand folded %+v", s.Items, tail, folded)
		}
		if s, err := fund.StatementOf(t.Context(), d, "m1", "USD", start, end, 0, 10); err != nil || len(s.Items) != 0 || s.Closing != 0 {
			t.Errorf("a currency without an account: %+v, %v", s, err)
		}
		all, err := fund.Balances(t.Context(), d, "m1")
		if err != nil || len(all) != 1 || all[0] != (fund.Balance{Currency: "CNY", Available: 4 * 1965}) {
			t.Errorf("balances %+v, %v", all, err)
		}
	})
}
