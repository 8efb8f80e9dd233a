package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/compensation/rerun"
	"backstop/internal/compensation/resend"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/recipient"
	"backstop/internal/settings"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
)

// compensationKinds are the kinds of compensations. A new one is a folder and a line here.
func (a *App) compensationKinds() []compensation.Kind {
	return []compensation.Kind{
		resend.Kind(resend.Options{DB: a.db, Schedule: a.compensateSchedule(), Nudge: a.nudger.Now}),
		replaycall.Kind(replaycall.Subjects{
			refund.Op: a.refunds.Subject(), refund.NoticeOp: a.refunds.Notices(),
			payout.Op: a.payouts.Subject(),
		}),
		rerun.Kind(querier{a.db, a.advance}),
	}
}

func (a *App) compensateSchedule() compensation.Schedule {
	return compensation.Schedule(a.o.Config.CompensateSteps)
}

// compensationsWait reports whether nothing in a lane may run now.
func (a *App) compensationsWait(lane int64) bool {
	return a.pauses.Paused(pause.Compensations) || a.calls.Down(lane)
}

// nudgeCompensations wakes the workers through Redis, best effort and without waiting.
func (a *App) nudgeCompensations(nudges []queue.Nudge) {
	go func() {
		if err := a.queue.Compensate(context.Background(), nudges); err != nil {
			a.o.Log.Debug("nudge compensations", "error", err) // the tick finds them
		}
	}()
}

// resendWhenBack resends a merchant's exhausted notifications after its breaker has closed.
func (a *App) resendWhenBack(w *db.Writes, c *breaker.Change) {
	if m := a.settings.Merchants().ByID(c.OwnerID); m != nil && !m.Subscriber && m.ResendWhenBack {
		a.compensateSchedule().Open(w, a.db, resend.Closed(c.OwnerID, c.Generation))
	}
}

// rerunStuck opens a compensation that keeps querying an order that has no steps left.
func (a *App) rerunStuck(w *db.Writes, o *order.Order, supplierID int64) {
	a.compensateSchedule().Open(w, a.db, rerun.Stuck(o, supplierID))
}

// requery has the supplier queried at once about an order that may have been paid.
func (a *App) requery(w *db.Writes, o *order.Order, supplierID int64) {
	rerun.Doubtful(w, a.db, a.compensateSchedule(), o, supplierID)
}

// querier queries suppliers about orders for compensations.
type querier struct {
	db      *db.DB
	advance *orderquery.Worker
}

// Query implements rerun.Querier.
func (a querier) Query(ctx context.Context, orderID int64) compensation.Result {
	x, err := a.advance.QueryOpen(ctx, orderID)
	if err != nil {
		return unqueried(err)
	}
	text := "the supplier says " + string(x.State)
	r := compensation.Later(orderquery.CauseOf(x.Exchange.Class), text)
	if !x.Order.Status.Open() {
		r = compensation.Succeeded(text + "; the order is " + string(x.Order.Status))
	}
	r.Call = x.Call
	return r
}

// QueryClosed implements rerun.Querier. Money that came has become an exception by then.
func (a querier) QueryClosed(ctx context.Context, orderID int64) compensation.Result {
	o, err := order.ByID(ctx, a.db.Read, orderID)
	if err != nil {
		return unqueried(err)
	}
	x, err := a.advance.Query(ctx, o.OrderNo)
	if err != nil {
		return unqueried(err)
	}
	return compensation.Succeeded("the supplier says " + string(x.State)).WithCall(x.Call)
}

// unqueried is the result if the supplier gave no answer.
func unqueried(err error) compensation.Result {
	switch {
	case errors.Is(err, order.ErrNotFound):
		return compensation.DeadLetter(compensation.Payload, err.Error())
	case errors.Is(err, orderquery.ErrCannotQuery):
		return compensation.DeadLetter(compensation.NotQueryable, err.Error())
	case errors.Is(err, orderquery.ErrOver):
		return compensation.AlreadyDone(err.Error())
	case errors.Is(err, suppliercall.ErrDown):
		return compensation.Later(compensation.SupplierTimeout, err.Error())
	default:
		return compensation.Failed(err)
	}
}

// openBatches creates the batches and, with workers, their runner.
func (a *App) openBatches() {
	a.batches = batch.New(batch.Options{
		DB: a.db, Audit: a.audit, Rules: a.settings.Rules, Rate: int64(a.o.Config.BatchRate),
		Down: a.calls.Down, Nudge: a.nudgeBatch, Log: a.o.Log,
	})
	if a.o.Roles.Worker {
		a.batchRunner = batch.NewRunner(a.batches)
	}
}

// nudgeBatch wakes a batch: in this process, or in the first worker that gets the task.
func (a *App) nudgeBatch(id int64) {
	if a.batchRunner != nil {
		a.batchRunner.Offer(id)
		return
	}
	go func() {
		if err := a.queue.Batch(context.Background(), id); err != nil {
			a.o.Log.Debug("nudge a batch", "error", err) // the tick finds it
		}
	}()
}

// Sweeps returns the runner of sweeps, for a server or a command.
func Sweeps(c config.Config, d *db.DB, s *settings.Store, keys *seal.Keyring, log *slog.Logger) *sweep.Runner {
	return sweep.New(sweep.Options{
		DB: d, Settings: s, Schedule: compensation.Schedule(c.CompensateSteps), Keys: keys, Rate: int(c.SweepRate),
		Keep: min(c.RetentionReports, c.RetentionNotifications), Zone: c.Timezone, Log: log,
	})
}

// SweepPlan returns when the nightly sweep begins.
func SweepPlan(c config.Config) sweep.Plan {
	return sweep.Plan{Hour: c.SweepAt.Hour, Minute: c.SweepAt.Minute, Zone: c.Timezone, Days: c.SweepDays}
}

// nudgeSweep wakes a worker to continue the running sweep, best effort and without waiting.
func (a *App) nudgeSweep() {
	go func() {
		if err := a.queue.Sweep(context.Background()); err != nil {
			a.o.Log.Debug("nudge the sweep", "error", err) // the tick finds it
		}
	}()
}

// breakerPolicy returns when a recipient's breaker opens: by its own rules, and by the
// program's where it has none.
func (a *App) breakerPolicy(to recipient.Recipient) breaker.Policy {
	c := a.o.Config
	p := breaker.Policy{
		Failures: c.BreakerFailures, Open: c.BreakerOpen,
		RatePercent: c.BreakerRate, Window: c.BreakerWindow, MinSamples: c.BreakerLeast,
	}
	m := a.settings.Merchants().ByID(to.ID)
	if m == nil {
		return p
	}
	return ownPolicy(p, m.Settings.Breaker)
}

// ownPolicy applies a merchant's own settings to a policy.
func ownPolicy(p breaker.Policy, own merchant.Breaker) breaker.Policy {
	p.Failures = cmp.Or(own.Failures, p.Failures)
	p.Open = cmp.Or(time.Duration(own.OpenMS)*time.Millisecond, p.Open)
	p.RatePercent = max(0, cmp.Or(own.RatePercent, p.RatePercent)) // merchant.NoRate is negative
	p.Window = cmp.Or(time.Duration(own.WindowMS)*time.Millisecond, p.Window)
	p.MinSamples = cmp.Or(own.MinSamples, p.MinSamples)
	return p
}
