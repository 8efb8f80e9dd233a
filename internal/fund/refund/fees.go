package refund

import (
	"context"

	"backstop/internal/fund"
	"backstop/internal/fund/fee"
	"backstop/internal/order"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// fees adds what of the fee and of the cost goes back with a refund that succeeded: of all
// refunds together never more than was taken, and all of it once all of the payment is back.
func (x *write) fees(o *order.Order, r *Refund, v fund.Values) error {
	if o == nil || o.FeeRule == nil {
		return nil
	}
	ctx := context.Background()
	merchants, suppliers, err := x.m.rules(ctx, x.tx, o, r.SupplierID)
	if err != nil || !merchants.Return && !suppliers.Return {
		return err
	}
	var sums struct{ Amount, Fee, Cost int64 }
	err = x.tx.NewRaw("SELECT coalesce(sum(amount), 0) AS amount, coalesce(sum(fee_returned), 0) AS fee, coalesce(sum(cost_returned), 0) AS cost"+
		" FROM refunds WHERE order_id = ? AND status = ? AND id <> ?", o.ID, Succeeded, r.ID).Scan(ctx, &sums)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		rule     fee.Rule
		returned int64
		fact     fund.Fact
		into     *int64
	}{{merchants, sums.Fee, fund.RefundFee, &r.FeeReturned}, {suppliers, sums.Cost, fund.RefundCost, &r.CostReturned}} {
		if !f.rule.Return {
			continue
		}
		back := fee.Returned(f.rule.Of(o.PaidAmount), o.PaidAmount, sums.Amount+r.Amount, f.returned)
		if *f.into = back; back > 0 {
			v.Amount = back
			x.entries.Add(f.fact, v)
		}
	}
	return nil
}

// rules returns the rules by which an order's merchant and the supplier that was paid were
// charged.
func (m *Machine) rules(ctx context.Context, q bun.IDB, o *order.Order, supplierID int64) (merchants, suppliers fee.Rule, err error) {
	now := m.o.Settings.Current()
	fees := now.Fees
	if *o.FeeRule > now.Version { // of settings that this node has not read yet
		if fees, err = settings.ReadFees(ctx, q, o.MerchantID, supplierID); err != nil {
			return fee.Rule{}, fee.Rule{}, err
		}
	}
	code, err := m.supplierCode(q, supplierID)
	return fees.At(o.MerchantID, *o.FeeRule).For(code), fees.At(supplierID, *o.FeeRule).For(fee.Any), err
}

// feesAgain adds the fee that is taken again, for the refund came back. What the supplier
// does with its cost then is in its next bill.
func (x *write) feesAgain(r *Refund, v fund.Values) {
	if r.FeeReturned == 0 {
		return
	}
	v.Amount = r.FeeReturned
	x.entries.Add(fund.RefundFeeAgain, v)
	r.FeeReturned = 0
}
