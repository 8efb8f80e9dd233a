package app

import (
	"context"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/payout"
)

// openPayouts creates the payout machine. Its proposals go to the desk, which is created later.
func (a *App) openPayouts(out *egress.Client, books booking.Books) {
	a.payouts = payout.New(payout.Options{
		Books: books, Calls: a.calls, CheckURL: out.CheckURL, CallbackURL: a.callbackURL,
		Ask: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return a.approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, merchant string) error {
			return a.approvals.Recall(ctx, tx, id, merchant)
		},
		Accounts: payoutAccounts{a.settings}, Limits: a.payoutLimits, Fee: a.payoutFee, Zone: a.o.Config.Timezone,
	})
	a.closing(func() { a.payouts.Close() })
}
