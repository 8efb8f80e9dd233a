package payment

import (
	"context"
	"strconv"

	"backstop/internal/fee"
	"backstop/internal/ledger/fact"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/settings"
)

// charge books the merchant's fee and the supplier's cost for the amount paid, by the rules in
// force when the order was created. No account needs a lock, because a fee is never above the
// amount that is credited with it.
func (b *batch) charge(m *Message, o *order.Order) {
	o.FeeAmount = b.rules(o.MerchantID, o).For(m.Supplier.Code).Of(o.PaidAmount)
	v := fact.Values{
		Merchant: b.p.merchantCode(o.MerchantID), Supplier: m.Supplier.Code, ID: strconv.FormatInt(o.ID, 10), Amount: o.FeeAmount,
		Currency: o.Currency,
	}
	if v.Amount > 0 {
		b.entries.Add(fact.Fee, v)
	}
	if v.Amount = b.rules(m.Supplier.ID, o).For(fee.Any).Of(o.PaidAmount); v.Amount > 0 {
		b.entries.Add(fact.Cost, v)
	}
}

// rules returns the fee rules of a merchant or a supplier that apply to an order.
func (b *batch) rules(owner int64, o *order.Order) fee.Rules {
	if o.FeeRule == nil {
		return nil
	}
	now := b.p.o.Settings.Current()
	if *o.FeeRule > now.Version && b.newer != nil {
		return b.newer.At(owner, *o.FeeRule)
	}
	return now.Fees.At(owner, *o.FeeRule)
}

// readFees reads the rules for orders that another node created under settings that this node
// has not loaded yet; that is possible for half a second after a change.
func (b *batch) readFees(ctx context.Context) error {
	version := b.p.o.Settings.Current().Version
	var owners []int64
	for _, o := range b.orders {
		if o != nil && o.FeeRule != nil && *o.FeeRule > version {
			owners = append(owners, o.MerchantID)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	for _, m := range b.items {
		owners = append(owners, m.Supplier.ID)
	}
	all, err := settings.ReadFees(ctx, b.tx, owners...)
	b.newer = &all
	return err
}

// feeRule returns the version of the rules to store in a new order; nil = there are none.
func feeRule(now *settings.Snapshot, m *merchant.Merchant) *int64 {
	version := now.FeeVersion(m.ID)
	if version == 0 {
		return nil
	}
	return &version
}
