package refund

import (
	"context"

	"backstop/internal/fee"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// fees adds the part of the fee and of the cost that is returned with a successful refund. All
// refunds of an order together never return more than was charged, and return all of it once
// the whole payment is refunded.
func (x *write) fees(o *order.Order, r *Refund, v fact.Values) error {
	if o == nil || o.FeeRule == nil {
		return nil
	}
	ctx := context.Background()
	merchants, suppliers, err := x.m.rules(ctx, x.Tx, o, r.SupplierID)
	if err != nil || !merchants.Return && !suppliers.Return {
		return err
	}
	var sums struct{ Amount, Fee, Cost int64 }
	err = x.Tx.NewRaw(
		"SELECT coalesce(sum(amount), 0) AS amount, coalesce(sum(fee_returned), 0) AS fee, coalesce(sum(cost_returned), 0) AS cost"+
			" FROM refunds WHERE order_id = ? AND status = ? AND id <> ?", o.ID, Succeeded, r.ID).Scan(ctx, &sums)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		rule     fee.Rule
		returned int64
		fact     fact.Name
		into     *int64
	}{{merchants, sums.Fee, fact.RefundFee, &r.FeeReturned}, {suppliers, sums.Cost, fact.RefundCost, &r.CostReturned}} {
		back := feeBack(f.rule, o.PaidAmount, r.Amount, sums.Amount, f.returned)
		if *f.into = back; back > 0 {
			v.Amount = back
			x.Entries.Add(f.fact, v)
		}
	}
	return nil
}

// rules returns the rules by which an order's fee and the supplier's cost were charged.
func (m *Machine) rules(ctx context.Context, q bun.IDB, o *order.Order, supplierID int64) (merchants, suppliers fee.Rule, err error) {
	now := m.Settings.Current()
	fees := now.Fees
	if *o.FeeRule > now.Version { // a version of the settings that this node has not loaded yet
		if fees, err = settings.ReadFees(ctx, q, o.MerchantID, supplierID); err != nil {
			return fee.Rule{}, fee.Rule{}, err
		}
	}
	code, err := m.SupplierCode(q, supplierID)
	return fees.At(o.MerchantID, *o.FeeRule).For(code), fees.At(supplierID, *o.FeeRule).For(fee.Any), err
}

// feesAgain charges the returned fee again because the refund was returned. What the supplier
// does about its cost appears on its next bill.
func (x *write) feesAgain(r *Refund, v fact.Values) {
	if r.FeeReturned == 0 {
		return
	}
	v.Amount = r.FeeReturned
	x.Entries.Add(fact.RefundFeeAgain, v)
	r.FeeReturned = 0
}
