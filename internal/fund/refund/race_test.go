package refund

import (
	"sync"
	"testing"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// A supplier's messages about a refund and the answers to queries arrive at once: it ends once.
func TestMessagesAndQueriesOfOneRefundRace(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		for range 5 {
			o := k.paid()
			r := k.mustCreate(o, 700)
			k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundLazy })
			k.run(r)
			k.fake.OnRefund(nil)
			k.fake.SetRefund(r.RefundNo, supplier.RefundSucceeded)
			x := compensation.Item{SubjectID: r.ID, Attempts: 1}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { k.m.Subject().Query(t.Context(), x, replaycall.Payload{}) })
				wg.Go(func() {
					m := k.Callback(o.OrderNo, "T-"+o.OrderNo, 700)
					m.Supplier = k.Entry(t, "f1")
					m.Content.Status, m.Content.RawStatus, m.Content.EventKey, m.Content.RefundNo = supplier.Refunded, "REFUNDED",
						"e-"+k.Out(), r.RefundNo
					if _, err := paymenttest.Send(t.Context(), k.Processor, m); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			k.turn(o, r) // what a query lost to a message is due
			k.is("messages and queries", r, Succeeded, 1, "refund.succeeded")
			k.Want(t, 2, "SELECT count(*) FROM transfers WHERE ref LIKE ?", "refund:"+r.key()+":%")
			k.Want(t, 700, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
			k.Want(t, 0, "SELECT count(*) FROM exceptions")
		}
	})
}
