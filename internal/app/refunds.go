package app

import (
	"context"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/refund"
)

// openRefunds creates the refund machine. Its proposals go to the desk, which is created later.
func (a *App) openRefunds(out *egress.Client, books booking.Books) {
	a.refunds = refund.New(refund.Options{
		Books: books, Calls: a.calls, CheckURL: out.CheckURL, CallbackURL: a.callbackURL,
		Ask: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return a.approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, merchant string) error {
			return a.approvals.Recall(ctx, tx, id, merchant)
		},
		Query: func(ctx context.Context, orderNo string) {
			if _, err := a.advance.Ask(ctx, orderNo); err != nil {
				a.o.Log.Debug("an order could not be queried for a refund's payment", "order", orderNo, "error", err)
			}
		},
		Zone: a.o.Config.Timezone,
		Limits: func(merchantID int64, currency string) refund.Limits {
			m := a.settings.Merchants().ByID(merchantID)
			if m == nil {
				return refund.Limits{}
			}
			own := m.Limit(currency)
			return refund.Limits{Auto: own.RefundAuto, AutoDay: own.RefundAutoDay, Overdraft: own.Overdraft}
		},
		Window: func(merchantID int64) time.Duration {
			if m := a.settings.Merchants().ByID(merchantID); m != nil {
				return m.RefundWindow
			}
			return 0
		},
	})
}

func (a *App) callbackURL(code string) string { return a.URL() + "/callback/" + code }
