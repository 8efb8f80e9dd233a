package dispute_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment/paymenttest"
)

// Refunds, payouts and a dispute take from one balance at once. Refunds and payouts together never
// take more than there was; only the dispute may push the balance below zero.
func TestRefundsPayoutsAndADisputeShareABalance(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newCluster(t, d)
		for round := range 10 {
			refunded, disputed := k.paid(), k.paid()
			there := k.balance("merchant:m1") // with what the round before has left, which may be below zero
			no := fmt.Sprintf("du_share_%d", round)
			var all sync.WaitGroup
			var taken, refused atomic.Int64
			create := func(amount int64, one func() error) {
				all.Go(func() {
					switch err := dbtest.Repeat(one); {
					case err == nil:
						taken.Add(amount)
					case errors.Is(err, ledger.ErrInsufficient):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			for range 4 {
				out, to := k.Out(), k.Out()
				create(400, func() error {
					_, _, err := k.refunds.Create(t.Context(), k.M1, refund.Request{
						OrderNo: refunded.OrderNo, OutRefundNo: out, Amount: 400,
						Reason: "broken",
					})
					return err
				})
				create(903, func() error {
					_, _, err := k.payouts.Create(t.Context(), k.M1, payout.Request{
						OutPayoutNo: to, Amount: 900, Currency: "CNY",
						Supplier: "f1", AccountCode: "main",
					})
					return err
				})
			}
			for _, s := range []said{created, withdrawn} {
				m := k.message(disputed, no, s)
				all.Go(func() {
					if _, err := paymenttest.Send(t.Context(), k.Processor, m); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			const away = 1999 + 150
			if is := k.balance("merchant:m1"); is != there-taken.Load()-away || taken.Load() > there || refused.Load() == 0 {
				t.Errorf("round %d: %d is left of %d; refunds and payouts took %d, the dispute %d, %d were refused", round, is, there,
					taken.Load(), away, refused.Load())
			}
			if s := k.steps(k.the(no)); s != "F H W" {
				t.Errorf("round %d: the dispute has the entries %s", round, s)
			}
			k.orders = []*order.Order{refunded, disputed}
			k.nets(t)
		}
		k.verified()
	})
}
