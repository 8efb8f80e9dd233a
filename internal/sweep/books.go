package sweep

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/money"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/internal/verify"
)

// Figures that are recounted, as alerts and exceptions name them.
const (
	UnnotifiedMoney = "untold"
	OrdersNotified  = "orders notified"
)

// wrong holds the figures that do not match their rows.
type wrong struct {
	untold []report.Difference
	orders []report.OrdersDifference
}

func (r *Runner) recount(ctx context.Context) (w wrong, err error) {
	if w.untold, err = report.Recount(ctx, r.o.DB); err != nil {
		return w, err
	}
	w.orders, err = report.RecountOrders(ctx, r.o.DB, r.o.Keep)
	return w, err
}

// maxFigures is how many figures a difference names.
const maxFigures = 5

// differences describes the wrong figures; done says what became of them.
func (w wrong) differences(done string) (all []Difference) {
	untoldText := func(f report.Difference) string {
		return fmt.Sprintf("merchant %d: %d orders, %s %s by the rows, %d and %s by the counter", f.Merchant, f.Orders,
			money.Format(f.Amount, f.Currency), f.Currency, f.Counted, money.Format(f.CountedM, f.Currency))
	}
	ordersText := func(f report.OrdersDifference) string {
		counted := func(n [4]int64) string {
			return fmt.Sprintf("%d orders (%s), %d notified (%s)", n[0], money.Format(n[1], f.Currency), n[2], money.Format(n[3], f.Currency))
		}
		return fmt.Sprintf("%s from %s in %s: %s by the rows, %s by the counters", f.Span,
			time.UnixMicro(f.Start).UTC().Format(time.RFC3339), f.Currency, counted(f.Rows), counted(f.Counters))
	}
	if n := len(w.untold); n > 0 {
		all = append(all, Difference{What: UnnotifiedMoney, Detail: detail(n, done, w.untold, untoldText)})
	}
	if n := len(w.orders); n > 0 {
		all = append(all, Difference{What: OrdersNotified, Detail: detail(n, done, w.orders, ordersText)})
	}
	return all
}

func detail[T any](n int, done string, figures []T, text func(T) string) string {
	all := fmt.Sprintf("%d figures%s", n, done)
	for _, f := range figures[:min(n, maxFigures)] {
		all += "; " + text(f)
	}
	return all
}

// Figures corrects figures that do not match their rows, and alerts: either rows were changed
// by hand, or the program has a bug. Besides the sweep, a counter below zero is a reason.
func (r *Runner) Figures(ctx context.Context) ([]Difference, error) {
	w, err := r.recount(ctx)
	if err != nil {
		return nil, err
	}
	if len(w.untold) > 0 {
		for _, f := range w.untold {
			r.o.Log.Error("figures differ from their rows", "merchant_id", f.Merchant, "currency", f.Currency,
				"orders", f.Orders, "counted", f.Counted, "amount", f.Amount, "amount_counted", f.CountedM)
		}
		if err := report.Repair(ctx, r.o.DB, w.untold); err != nil {
			return nil, err
		}
	}
	if len(w.orders) > 0 {
		for _, f := range w.orders {
			r.o.Log.Error("figures differ from their rows", "span", f.Span, "start_us", f.Start, "currency", f.Currency,
				"raised_and_notified", f.Rows, "counted", f.Counters)
		}
		if err := report.MendOrders(ctx, r.o.DB, r.o.Zone, w.orders); err != nil {
			return nil, err
		}
	}
	found := w.differences(", corrected")
	counts := map[string]int64{UnnotifiedMoney: int64(len(w.untold)), OrdersNotified: int64(len(w.orders))}
	return found, r.report(ctx, alert.CountersDiffer, found, counts)
}

// books checks every invariant.
func (r *Runner) books(ctx context.Context) ([]Difference, error) {
	found, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	return found, r.report(ctx, alert.BooksDiffer, found, nil)
}

func (r *Runner) verify(ctx context.Context) (found []Difference, err error) {
	done, err := verify.Run(ctx, r.o.DB, r.o.Keys, nil)
	if err != nil {
		return nil, err
	}
	for _, i := range done.Invariants {
		if i.Violations == 0 {
			continue
		}
		d := Difference{What: i.ID, Detail: fmt.Sprintf("%s: %d violations", i.Title, i.Violations), Rows: i.Rows}
		if len(i.Examples) > 0 {
			d.Detail += "; " + i.Examples[0]
		}
		found = append(found, d)
	}
	return found, nil
}

// report opens an alert and an exception for each difference.
func (r *Runner) report(ctx context.Context, rule string, found []Difference, counts map[string]int64) error {
	if len(found) == 0 {
		return nil
	}
	events := make([]alert.Event, len(found))
	for i, f := range found {
		events[i] = alert.Event{Rule: rule, Subject: f.What, Count: max(counts[f.What], 1)}
	}
	err := r.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		items := make([]*exception.Item, len(found))
		for i, f := range found {
			detail := map[string]any{"what": f.What, "detail": f.Detail}
			if len(f.Rows) > 0 {
				detail["rows"] = f.Rows
			}
			items[i] = &exception.Item{Kind: exception.BooksDiffer, Subject: f.What, Detail: exception.Detail(detail)}
		}
		w := tx.Writes()
		exception.Open(tx, w, r.o.DB, items)
		if err := w.Exec(ctx); err != nil {
			return fmt.Errorf("report differences: %w", err)
		}
		return alert.Record(ctx, tx, r.o.DB, events)
	})
	if err == nil {
		metric.Exceptions.WithLabelValues(exception.BooksDiffer).Add(float64(len(found)))
	}
	return err
}
