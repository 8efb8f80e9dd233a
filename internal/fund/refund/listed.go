package refund

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/fund/booking"

	"backstop/internal/base/db"
	"backstop/internal/call"
	"backstop/internal/compensation"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// adoptListed asks the supplier for the list of a payment's refunds and books those that are
// not ours, each by its number.
func (m *Machine) adoptListed(ctx context.Context, x compensation.Item, at supplier.Entry, t told) compensation.Result {
	again, _ := compensation.WaitSince(x.Age(m.o.DB.Now()))
	lister, ok := at.Can().Refunder.(supplier.RefundLister)
	if !ok {
		return compensation.Later(compensation.NotAskable, "the supplier's settings no longer allow listing refunds").Again(booking.Daily)
	}
	var list supplier.RefundList
	done, err := m.o.Calls.Do(ctx, call.Call{To: at, Op: call.RefundQuery, OrderID: t.Order, OrderNo: x.OrderNo, Reference: t.TradeNo},
		func(ctx context.Context) (call.Said, error) {
			var err error
			list, err = lister.Refunds(ctx, supplier.Refund{TradeNo: t.TradeNo, Currency: t.Currency})
			status := "listed"
			if list.Unknown {
				status = string(supplier.RefundUnknown)
			}
			return call.Said{Exchange: list.Exchange, Status: status}, err
		})
	if err != nil {
		return compensation.Later(compensation.SupplierTimeout, err.Error()).Again(again)
	}
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return compensation.Failed(err)
	}
	if list.Unknown || list.Exchange.Class != supplier.ClassOK {
		return compensation.Later(booking.CauseOf(done.Class), list.Reason.Error()).Again(again).WithCall(done.ID)
	}
	n := 0
	for _, said := range list.All {
		made, err := m.adoptSaid(ctx, at, t, said)
		if err != nil && !db.IsUnique(err) {
			return compensation.Failed(err).WithCall(done.ID)
		}
		n += made
	}
	pending := slices.ContainsFunc(list.All, func(s supplier.RefundSaid) bool { return s.State == supplier.RefundProcessing })
	if pending {
		return compensation.Later(compensation.SupplierUnknown, "a refund on the list is not finished yet").Again(again).WithCall(done.ID)
	}
	return compensation.Succeeded(fmt.Sprintf("booked %d refunds that were made at the supplier", n)).WithCall(done.ID)
}

// adoptSaid books one refund from a list, unless it is known.
func (m *Machine) adoptSaid(ctx context.Context, at supplier.Entry, t told, said supplier.RefundSaid) (n int, err error) {
	if said.State != supplier.RefundSucceeded {
		return 0, nil
	}
	err = m.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		n = 0
		var o *order.Order
		if o, err = m.lockOrder(ctx, tx, t.Order); err != nil {
			return err
		}
		if o == nil {
			return errors.New("the list belongs to no order")
		}
		all, err := OfOrder(ctx, tx, o.ID)
		if err != nil {
			return err
		}
		ours := func(r *Refund) bool {
			return said.No != "" && r.RefundNo == said.No || r.SupplierRefundNo != "" && r.SupplierRefundNo == said.SupplierNo
		}
		if slices.ContainsFunc(all, ours) {
			return nil // its own compensation queries it
		}
		one := t
		one.RefundID, one.Amount, one.Currency, one.Quiet = said.SupplierNo, said.Amount, said.Currency, false // reported here
		w := tx.Writes()
		m.elsewhere(tx, w, o, at, said.SupplierNo, said.Amount, said.Currency, said.Word)
		if err := w.Exec(ctx); err != nil {
			return err
		}
		n, err = m.adoptOne(ctx, tx, o, at, one, said.SupplierNo, said.Amount)
		return err
	})
	return n, err
}
