package refund

import (
	"context"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/fee"
)

// Fee and cost are returned in proportion to the refunded parts: all of both with the last part,
// and never more.
func TestFeesGoBackWithTheirPayment(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		f1 := k.Entry(t, "f1").ID
		k.SetFees(t, k.M1.ID, fee.Rules{fee.Any: {Rate: 12_000, Fixed: 10, Return: true}}) // 34 of 1999
		k.SetFees(t, f1, fee.Rules{fee.Any: {Rate: 6000, Return: true}})                   // 12 of 1999
		if err := k.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := k.paid()
		if o.FeeAmount != 34 {
			t.Fatalf("the fee is %d", o.FeeAmount)
		}
		back := func(amount, wantFee, wantCost int64) {
			t.Helper()
			r := k.mustCreate(o, amount)
			k.run(r)
			r = k.reload(r)
			if r.Status != Succeeded || r.FeeReturned != wantFee || r.CostReturned != wantCost {
				t.Errorf("%s, fee %d, cost %d, want %d and %d", r.Status, r.FeeReturned, r.CostReturned, wantFee, wantCost)
			}
		}
		k.SetFees(t, k.M1.ID, fee.Rules{fee.Any: {Rate: 500_000}}) // a new rule does not apply to earlier orders
		if err := k.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.limit.Overdraft = 100 // the balance, reduced by the fee, is below what is left of the payment
		back(1000, 17, 6)       // floor of 34 × 1000 / 1999, and of 12 × 1000 / 1999
		back(999, 17, 6)
		for _, account := range []string{"merchant:m1", "supplier:f1", "refund:f1", "income:fees", "cost:f1"} {
			err := k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				balance, err := k.Ledger.Balance(ctx, tx, account, "CNY")
				if balance != 0 {
					t.Errorf("%s has %d", account, balance)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
