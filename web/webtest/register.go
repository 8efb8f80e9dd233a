package webtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/queue"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/inbox"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/operator"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/sandbox"
	"backstop/internal/savedview"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
	"backstop/internal/testmode"
	"backstop/web"
)

// register registers the acts, as the program does.
func (h *Site) register(t *testing.T, o *web.Options) {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	o.Settings.GrantTo(policy)
	sending := notify.Acts{
		DB: o.DB, Directory: o.Settings.Merchants, Breakers: o.Breakers, Nudge: func(n []queue.Nudge) { h.Nudge(n) },
		Pings: notify.Pinger{DB: o.DB, Channels: map[string]notify.Channel{notify.Webhook: h.Lines}},
	}
	redriving := compensation.Acts{
		DB: o.DB, Schedule: compensation.Schedule(o.Config.CompensateSteps),
		Nudge: func(n []queue.Nudge) { h.Nudge(n) },
	}
	asking := h.asking(o)
	var runner *batch.Runner
	o.Batches = batch.New(batch.Options{
		DB: o.DB, Audit: o.Audit, Rules: o.Settings.Rules, Rate: batch.MaxRate, Nudge: func(id int64) { runner.Offer(id) }, Log: o.Log,
	})
	runner = batch.NewRunner(o.Batches)
	t.Cleanup(func() { runner.Close(context.Background()) })
	nudger := notify.NewNudger(nowhere{}, o.DB.Now, o.Log)
	t.Cleanup(nudger.Close)
	books := booking.Deps{
		DB: o.DB, Settings: o.Settings, Ledger: ledger.New(o.DB), Nudger: nudger, Schedule: redriving.Schedule, Nudge: func([]queue.Nudge) {},
	}
	o.Refunds = refund.New(refund.Options{
		Deps: books, CheckURL: func(string) error { return nil },
		Limits: func(int64, string) refund.Limits { return refund.Limits{Auto: 100_000, AutoDay: 1_000_000} },
		Window: func(int64) time.Duration { return time.Hour },
		Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return o.Approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, m string) error {
			return o.Approvals.Recall(ctx, tx, id, m)
		},
	})
	o.Disputes = dispute.New(dispute.Options{Deps: books, Refunds: o.Refunds})
	o.Payouts = payout.New(payout.Options{
		Deps: books, CheckURL: func(string) error { return nil },
		Accounts: payoutAccounts{}, Limits: func(int64, string) payout.Limits { return payout.Limits{Each: 5000, Day: 6000, Auto: 1000} },
		Fee: func(int64, int64, int64, string) int64 { return 10 },
		Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
			return o.Approvals.Ask(ctx, tx, r)
		},
		Recall: func(ctx context.Context, tx db.Tx, id int64, m string) error {
			return o.Approvals.Recall(ctx, tx, id, m)
		},
	})
	t.Cleanup(o.Payouts.Close)
	applying := apply.Env{
		DB: o.DB, Keys: o.Keys, Kinds: supplier.Kinds{sortedparams.Kind}, Ledger: ledger.New(o.DB), CheckURL: egress.NewRules(o.Config.NotifyAllowCIDRs).CheckURL,
		Life: o.Config.ApprovalExpires,
	}
	o.Applies = applying
	o.Approvals = approval.NewDesk(approval.Options{
		DB: o.DB, Audit: o.Audit, Policy: policy, Rules: o.Settings.Rules, Life: o.Config.ApprovalExpires, Operators: o.Operators,
		Log: o.Log,
	}, decision.All(decision.Options{
		DB: o.DB, Settings: o.Settings, Payments: h.deciding(t, o), Querier: h.asking(o), Refunds: o.Refunds,
	}, ledger.New(o.DB), o.Payouts, o.Batches, applying)...)
	o.Views = &savedview.Views{DB: o.DB, Policy: policy, Lists: console.ViewLists()}
	notes := inbox.Notes{DB: o.DB, Policy: policy}
	o.Acts = act.New(o.DB, o.Audit, policy, slices.Concat(
		notes.Deliver(order.Acts, order.NoteAct, access.ViewOrders), asking.Acts(redriving.Schedule), sending.Kinds(),
		o.Breakers.Acts(), o.Pauses.Acts(),
		o.Batches.Acts(),
		alert.IncidentActs(o.DB, func(ctx context.Context) ([]string, error) {
			return o.Operators.WhoMay(ctx, policy, access.HandleAlerts)
		}),
		notes.Deliver(exception.Acts(o.DB, func(ctx context.Context) ([]string, error) {
			return o.Operators.WhoMay(ctx, policy, access.AssignExceptions)
		}), exception.NoteAct, access.ViewExceptions),
		o.Disputes.Acts(), redriving.Kinds(), resend.Acts(o.DB, redriving.Schedule),
		alert.Acts(o.DB, func() ([]string, alert.Style) { return h.Alerts() }),
		sweep.Acts{DB: o.DB, Days: o.Config.SweepDays}.Kinds(), o.Views.Kinds(),
		sandbox.Acts(o.DB), console.UnmaskActs, operator.Kinds(o.Operators),
		[]act.Kind{decision.Redrive(redriving.Running(), sending.Resending()), apply.SandboxAct(applying)}, apply.EditActs(applying),
		apply.RotateActs(applying), testmode.KeyActs(issuer{h}),
	)...)
	o.Batches.Use(o.Acts, o.Approvals)
}

// issuer gives every merchant the same key of test mode, while Site.TestMode is set.
type issuer struct{ site *Site }

func (i issuer) Running() bool { return i.site.TestMode != nil }

func (issuer) Issue(context.Context, string, string) (testmode.Issued, error) {
	return testmode.Issued{APIKey: TestKey, SigningSecret: "whsec_test"}, nil
}

// deciding carries out decisions about payments.
func (h *Site) deciding(t *testing.T, o *web.Options) *payment.Processor {
	nudger := notify.NewNudger(nowhere{}, o.DB.Now, o.Log)
	p := payment.New(payment.Options{
		DB: o.DB, Settings: o.Settings, Ledger: ledger.New(o.DB), Nudger: nudger, Batch: 1, Writers: 1, Queue: 1, Wait: time.Second,
		Log: o.Log,
	})
	t.Cleanup(func() {
		p.Close()
		nudger.Close()
	})
	return p
}

// nowhere accepts nudges and does nothing.
type nowhere struct{}

func (nowhere) Notify(context.Context, queue.Lane, []queue.Nudge) error { return nil }
func (nowhere) NotifyAt(context.Context, queue.Lane, time.Time, []queue.Nudge) error {
	return nil
}
func (nowhere) Expire(context.Context, time.Time) error { return nil }

// asking queries suppliers; none here can be queried.
func (h *Site) asking(o *web.Options) *orderquery.Worker {
	if h.calls != nil {
		return orderquery.New(orderquery.Options{DB: o.DB, Settings: o.Settings, Calls: h.calls, QueryOnly: true})
	}
	calls := suppliercall.New(suppliercall.Options{DB: o.DB, Breakers: breaker.NewSupplierCache(o.DB, breaker.Policy{Failures: 5})})
	h.calls = calls
	return orderquery.New(orderquery.Options{DB: o.DB, Settings: o.Settings, Calls: calls, QueryOnly: true})
}
