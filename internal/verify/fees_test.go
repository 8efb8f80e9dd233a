package verify

import (
	"context"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fee"
	"backstop/internal/ledger"
)

// feeStory has one paid order with a fee of 34 and a cost of 12.
func feeStory(t *testing.T, d *db.DB) *story {
	s := newStory(t, d)
	s.SetFees(t, s.M1.ID, fee.Rules{fee.Any: {Rate: 12_000, Fixed: 10}})
	s.SetFees(t, s.Supplier.ID, fee.Rules{fee.Any: {Rate: 6000}})
	if err := s.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := s.create(s.M1, 0)
	s.pay(o)
	s.deliver(o)
	s.create(s.M1, 0)
	s.Want(t, 34, "SELECT fee_amount FROM orders WHERE id = ?", o.ID)
	return s
}

func TestFeesAgreeWithTheirOrders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if report := feeStory(t, d).verify(-time.Hour); !report.OK() {
			t.Errorf("report:\n%s", explain(report))
		}
	})
}

func TestFeesThatDoNotAgreeAreSeen(t *testing.T) {
	t.Parallel()
	account := func(code string) string { return "(SELECT id FROM accounts WHERE code = '" + code + "')" }
	cases := map[string]string{
		"the order says another": "UPDATE orders SET fee_amount = 33 WHERE status = 'paid'",
		"the order says none":    "UPDATE orders SET fee_amount = 0 WHERE status = 'paid'",
		"another was booked":     "UPDATE transfers SET amount = 35 WHERE ref LIKE 'fee:%'",
		"it went elsewhere": "UPDATE transfers SET credit_account = " + account("supplier:sp-main") +
			" WHERE ref LIKE 'fee:%'",
		"it is of no order":              "UPDATE transfers SET ref = 'fee:x' WHERE ref LIKE 'fee:%'",
		"an unpaid order has one":        "UPDATE orders SET fee_amount = 1 WHERE status = 'pending'",
		"the cost is of no order":        "UPDATE transfers SET ref = 'cost:7' WHERE ref LIKE 'cost:%'",
		"the cost is more than was paid": "UPDATE transfers SET amount = 2000 WHERE ref LIKE 'cost:%'",
		"the cost went elsewhere":        "UPDATE transfers SET credit_account = " + account("merchant:m1") + " WHERE ref LIKE 'cost:%'",
		"the cost came from elsewhere":   "UPDATE transfers SET debit_account = " + account("income:fees") + " WHERE ref LIKE 'cost:%'",
		"the order has no rule":          "UPDATE orders SET fee_rule = NULL WHERE status = 'paid'",
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := feeStory(t, d)
		for name, query := range cases {
			t.Run(name, func(t *testing.T) {
				s := &story{s.Fixture, t}
				s.tampered(func() {
					report := s.verify(-time.Hour)
					if i := report.Invariants[2]; i.ID != "I3" || i.Violations == 0 {
						t.Errorf("nothing is wrong with %s:\n%s", i.ID, explain(report))
					}
				}, query)
			})
		}
		if report := s.verify(-time.Hour); !report.OK() {
			t.Errorf("with all restored:\n%s", explain(report))
		}
	})
}

func TestAnOrderOfBeforeThatWasChargedIsSeen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		o := s.create(s.M1, 0)
		s.pay(o)
		s.deliver(o)
		err := s.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			e := ledger.Entry{Debit: "merchant:m1", Credit: "income:fees", Amount: 1, Currency: "CNY", Ref: "fee:" + o.OrderNo}
			if err := s.Ledger.Post(ctx, tx, w, []ledger.Entry{e}); err != nil {
				return err
			}
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if report := s.verify(-time.Hour); report.OK() || !strings.Contains(explain(report), "fee:"+o.OrderNo) {
			t.Errorf("report:\n%s", explain(report))
		}
	})
}
