package sweep

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/internal/verify"

	"github.com/uptrace/bun"
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

// differences describes the wrong figures; merchant returns the code of a merchant.
func (w wrong) differences(corrected bool, merchant func(id int64) string) (all []Difference) {
	if len(w.untold) > 0 {
		all = append(all, DifferingMoney(w.untold, corrected, merchant))
	}
	if len(w.orders) > 0 {
		all = append(all, differingFigures(OrdersNotified, w.orders, corrected, ordersMessage))
	}
	return all
}

// codes reads the codes of the merchants whose figures are wrong.
func (w wrong) codes(ctx context.Context, q bun.IDB) (func(id int64) string, error) {
	ids := make([]int64, len(w.untold))
	for i, f := range w.untold {
		ids[i] = f.Merchant
	}
	var rows []struct {
		ID   int64
		Code string
	}
	if len(ids) > 0 {
		if err := q.NewRaw("SELECT m.id, m.code FROM merchants AS m WHERE m.id IN (?)", bun.List(ids)).Scan(ctx, &rows); err != nil {
			return nil, fmt.Errorf("read the merchants of figures: %w", err)
		}
	}
	known := map[int64]string{}
	for _, r := range rows {
		known[r.ID] = r.Code
	}
	return func(id int64) string { return cmp.Or(known[id], strconv.FormatInt(id, 10)) }, nil
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
	merchant, err := w.codes(ctx, r.o.DB.Read)
	if err != nil {
		return nil, err
	}
	found := w.differences(true, merchant)
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
		d := brokenInvariant(i)
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
			if len(f.Said) > 0 {
				detail["said"] = f.Said
			}
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
