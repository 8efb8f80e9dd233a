package app

import (
	"context"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// openPayouts creates the payout machine. Its proposals go to the desk, which is created later.
func (a *App) openPayouts(out *egress.Client, books booking.Deps) {
	a.payouts = payout.New(payout.Options{
		Deps: books, Calls: a.calls, CheckURL: out.CheckURL, CallbackURL: a.callbackURL,
		Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return a.approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, merchant string) error {
			return a.approvals.Recall(ctx, tx, id, merchant)
		},
		Accounts: payoutAccounts{a.settings}, Limits: a.payoutLimits, Fee: a.payoutFee, Zone: a.o.Config.Timezone,
	})
	a.closing(func() { a.payouts.Close() })
}

// payoutAccounts finds the accounts that payouts may go to in the settings.
type payoutAccounts struct{ *settings.Store }

func (p payoutAccounts) Find(ctx context.Context, q db.Session, all []payout.Target) ([]*payout.Account, error) {
	targets := make([]settings.PayoutTarget, len(all))
	for i, t := range all {
		if targets[i] = (settings.PayoutTarget{MerchantID: t.MerchantID, Code: t.Code}); t.Free != nil {
			targets[i].Like = &supplier.Payee{Kind: t.Free.Kind, Holder: t.Free.Holder, Number: t.Free.Number, Bank: t.Free.Bank}
		}
	}
	rows, err := p.PayoutAccountsOf(ctx, q, targets)
	if err != nil {
		return nil, err
	}
	found := make([]*payout.Account, len(all))
	for i, row := range rows {
		if row != nil {
			found[i] = &payout.Account{
				ID: row.ID, Disabled: row.DisabledAt != nil,
				Shown: payout.Shown{Code: row.Code, Kind: row.Kind, Holder: row.Holder, Number: row.Masked(), Bank: row.Bank},
			}
		}
	}
	return found, nil
}

func (p payoutAccounts) Disabled(ctx context.Context, q bun.IDB, id int64) (bool, error) {
	row, err := p.PayoutAccountByID(ctx, q, id)
	return err == nil && row.DisabledAt != nil, err
}

func (p payoutAccounts) Payee(ctx context.Context, q bun.IDB, id int64) (supplier.Payee, error) {
	return p.Store.Payee(ctx, q, id)
}

// payoutLimits returns what a merchant may draw in a currency; nothing while it is not known here.
func (a *App) payoutLimits(merchantID int64, currency string) payout.Limits {
	m := a.settings.Merchants().ByID(merchantID)
	if m == nil {
		return payout.Limits{Each: 1, Day: 1}
	}
	own := m.Limit(currency)
	return payout.Limits{Each: own.PayoutEach, Day: own.PayoutDay, Auto: own.PayoutAuto, Overdraft: own.Overdraft}
}

// payoutFee returns a merchant's fee for a payout through a supplier.
func (a *App) payoutFee(merchantID, supplierID, amount int64, _ string) int64 {
	now := a.settings.Current()
	m := now.Merchants.ByID(merchantID)
	s, ok := now.Suppliers.ByID(supplierID)
	if m == nil || !ok {
		return 0
	}
	return m.PayoutFees.For(s.Code).Of(amount)
}

// openRefunds creates the refund machine. Its proposals go to the desk, which is created later.
func (a *App) openRefunds(out *egress.Client, books booking.Deps) {
	a.refunds = refund.New(refund.Options{
		Deps: books, Calls: a.calls, CheckURL: out.CheckURL, CallbackURL: a.callbackURL,
		Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return a.approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, merchant string) error {
			return a.approvals.Recall(ctx, tx, id, merchant)
		},
		Query: func(ctx context.Context, orderNo string) {
			if _, err := a.advance.Query(ctx, orderNo); err != nil {
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
