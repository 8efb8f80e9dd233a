package app

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/seal"
	"backstop/internal/command/apply"
	"backstop/internal/desk"
	"backstop/internal/fund/adjust"
	"backstop/internal/ledger"
	"backstop/internal/settings"
)

// desk returns the desk for decisions that need two people.
func (a *App) desk(operators *access.Operators) *approval.Desk {
	return approval.NewDesk(approval.Options{
		DB: a.db, Audit: a.audit, Policy: newPolicy(), Rules: a.settings.Rules, Life: a.o.Config.ApprovalExpires, Operators: operators,
		Log: a.o.Log,
	}, a.actions()...)
}

// actions returns all actions that can be proposed. To add one, declare an Action in the
// package that owns its effect and list it here.
func (a *App) actions() []approval.Action {
	return slices.Concat(
		desk.Actions(desk.Options{DB: a.db, Settings: a.settings, Payments: a.processor, Asker: a.advance, Refunds: a.refunds}),
		adjust.Actions(a.db, a.ledger),
		a.payouts.Approvals(),
		[]approval.Action{apply.Action(a.applies), a.batches.Approval(), a.refunds.Approval()},
	)
}

func (a *App) openApplies(context.Context) (err error) {
	a.applies, err = Applies(a.o.Config, a.db, a.keys)
	return err
}

// Applies returns the environment of `apply`. Errors: ErrUsage.
func Applies(c config.Config, d *db.DB, keys *seal.Keyring) (apply.Env, error) {
	schedule, err := apply.ParseSchedule(c.NotifySchedule)
	if err != nil {
		return apply.Env{}, fmt.Errorf("%w: BACKSTOP_NOTIFY_SCHEDULE: %w", ErrUsage, err)
	}
	return apply.Env{
		DB: d, Keys: keys, Kinds: Kinds(), Ledger: ledger.New(d),
		CheckURL: egress.NewRules(c.NotifyAllowCIDRs).CheckURL, Channels: Targets(), Credentials: Credentials(), Life: c.ApprovalExpires,
		Defaults: settings.Defaults{Schedule: schedule, Timeout: c.NotifyTimeout, MaxInFlight: c.NotifyMaxInFlight},
	}, nil
}
