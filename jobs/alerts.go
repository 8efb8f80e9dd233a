package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/recipient"
)

// Alerts are the targets and readings of the watch.
type Alerts struct {
	Targets []alert.Target
	// Reports are the targets of daily reports.
	Reports []alert.Target
	Style   alert.Style
	// Local reads what each node must check itself, Shared what one node checks for all nodes.
	Local, Shared func(context.Context) []alert.Reading
	// Merchant returns a merchant's name.
	Merchant func(id int64) string
	// Awaited returns the money of the orders that await a result of a supplier.
	Awaited func(ctx context.Context, supplierID int64) money.Totals
}

const (
	watchEvery = 10 * time.Second
	// watchLease is how long a node that has failed keeps the others from watching.
	watchLease = 25 * time.Second
	// announceEvery is how often new events are announced.
	announceEvery = 2 * time.Second
	resendEvery   = 5 * time.Second
)

// watcher compares readings with the alert rules and sends alerts.
type watcher struct {
	o      Options
	watch  *alert.Watch
	direct *alert.Direct
}

func newWatcher(o Options) watcher {
	return watcher{o: o, watch: alert.NewWatch(o.DB, o.Log), direct: alert.NewDirect(o.Alerts.Targets, o.Alerts.Style)}
}

// levels checks the readings of this node and, with the lease, the shared ones. A database that
// cannot be used cannot store an alert either, so that alert is sent directly.
func (w watcher) levels(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	readings := w.o.Alerts.Local(ctx)
	mine, err := w.o.DB.Lease(ctx, "watch", watchLease)
	if err == nil && mine {
		readings = append(readings, w.o.Alerts.Shared(ctx)...)
	}
	if err == nil {
		err = w.watch.Observe(ctx, time.Now(), readings)
	}
	if failed := w.direct.Observe(context.WithoutCancel(ctx), alert.DatabaseDown, w.o.DB.NodeName(), err != nil); failed != nil {
		w.o.Log.Warn("send an alert without the database", "error", failed)
	}
	return err
}

// announce records new events and writes their messages; a task sends them.
func (w watcher) announce(ctx context.Context) error {
	mine, err := w.o.DB.Lease(ctx, "announce", watchLease)
	if err != nil || !mine {
		return err
	}
	// What fails first does not keep the alerts that are already stored.
	failed := errors.Join(w.o.DB.Tx(ctx, w.gather), w.lapse(ctx), alert.Settle(ctx, w.o.DB))
	messages, err := alert.Announce(ctx, w.o.DB, w.names(), w.o.Alerts.Style)
	if len(messages) > 0 {
		if err := w.o.Queue.Alert(ctx); err != nil {
			w.o.Log.Debug("nudge alerts", "error", err) // the periodic send finds the messages
		}
	}
	return errors.Join(failed, err)
}

// send sends the messages that are due. Besides the task, it also runs periodically, for
// messages whose task was lost and for retries.
func (w watcher) send(ctx context.Context) error {
	return alert.Send(ctx, w.o.DB, slices.Concat(w.o.Alerts.Targets, w.o.Alerts.Reports), w.o.Log)
}

// gather turns new exceptions, stopped batches, changes of breakers, waiting proposals and
// disputes that are due into events.
func (w watcher) gather(ctx context.Context, tx db.Tx) error {
	unalerted, err := exception.TakeUnalerted(ctx, tx, w.o.DB)
	if err != nil {
		return err
	}
	var events []alert.Event
	for _, x := range unalerted {
		rule := alert.ExceptionOpened
		switch x.Kind {
		case exception.NotifyExhausted:
			rule = alert.NotifyExhausted
		case exception.DisputeOpened:
			rule = alert.DisputeOpened
		case exception.SupplierShort:
			rule = alert.SupplierShort
		case exception.CompensationDead:
			rule = alert.CompensationDead
		}
		events = append(events, alert.Event{Rule: rule, Subject: x.Kind, Count: x.Count, Sums: x.Sums})
	}
	stopped, err := batch.TakeUnalerted(ctx, tx, w.o.DB)
	if err != nil {
		return err
	}
	for _, b := range stopped {
		e := alert.Event{Rule: alert.BatchStopped, Subject: b.No() + ": " + b.StoppedBecause, Count: 1}
		for _, s := range b.Planned.Acts() {
			if s.Currency != "" {
				e.Sums.Add(s.Minor, s.Currency)
			}
		}
		events = append(events, e)
	}
	changes, err := breaker.TakeUnalerted(ctx, tx, w.o.DB)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.OwnerKind == recipient.Supplier {
			s, ok := w.o.Settings.Current().Suppliers.ByID(c.OwnerID)
			if !ok {
				continue // it was removed meanwhile
			}
			e := alert.Event{Subject: s.Code, Count: 1}
			switch {
			case c.To == breaker.Open && s.Enabled:
				e.Rule, e.Sums = alert.SupplierUnreachable, w.o.Alerts.Awaited(ctx, c.OwnerID)
			case c.To == breaker.Closed:
				e.Rule = alert.SupplierReachable
			default:
				continue
			}
			events = append(events, e)
			continue
		}
		rule := alert.BreakerOpened
		if c.To == breaker.Closed {
			rule = alert.BreakerClosed
		}
		events = append(events, alert.Event{Rule: rule, Subject: w.o.Alerts.Merchant(c.OwnerID), Count: 1})
	}
	waiting, err := approval.TakeWaiting(ctx, tx, w.o.DB)
	if err != nil {
		return err
	}
	if waiting.Count > 0 {
		events = append(events, alert.Event{
			Rule: alert.ProposalWaits, Subject: waiting.Oldest.Round(time.Minute).String(), Count: waiting.Count, Sums: waiting.Sums,
		})
	}
	due, err := dispute.TakeDue(ctx, tx, w.o.DB)
	if err != nil {
		return err
	}
	for _, d := range due {
		e := alert.Event{Rule: alert.DisputeDue, Count: 1, Subject: d.DisputeNo + " " + d.OrderNo + ", " +
			time.UnixMicro(*d.DueBy).In(w.o.Alerts.Style.Zone).Format("2006-01-02 15:04 MST")}
		e.Sums.Add(d.Amount, d.Currency)
		events = append(events, e)
	}
	return alert.Record(ctx, tx, w.o.DB, events)
}

// lapse lets the incidents end whose breaker is closed, or whose merchant or supplier was
// disabled or removed.
func (w watcher) lapse(ctx context.Context) error {
	open, err := breaker.Tripped(ctx, w.o.DB)
	if err != nil {
		return err
	}
	now, held := w.o.Settings.Current(), map[string][]string{}
	for _, owner := range open {
		if owner.Kind == recipient.Supplier {
			if s, ok := now.Suppliers.ByID(owner.ID); ok && s.Enabled {
				held[alert.SupplierUnreachable] = append(held[alert.SupplierUnreachable], s.Code)
			}
		} else if m := now.Merchants.ByID(owner.ID); m != nil && (!m.Subscriber || now.Merchants.Subscriber(m.Code) != nil) {
			held[alert.BreakerOpened] = append(held[alert.BreakerOpened], m.Code)
		}
	}
	return alert.Reconcile(ctx, w.o.DB, held)
}

func (w watcher) names() []string {
	names := make([]string, len(w.o.Alerts.Targets))
	for i, t := range w.o.Alerts.Targets {
		names[i] = t.Name()
	}
	return names
}
