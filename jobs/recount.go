package jobs

import (
	"context"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/notify"
	"backstop/internal/report"
)

// recountLease keeps the other nodes from counting the same night.
const recountLease = 30 * time.Minute

// nightly compares the figures with their rows, at low peak.
func (j *Jobs) nightly(ctx context.Context) error {
	mine, err := j.o.DB.Lease(ctx, "recount", recountLease)
	if err != nil || !mine {
		return err
	}
	return j.recount(ctx)
}

// recount fixes figures that do not agree with their rows, and alerts: rows were changed
// by hand, or the program is wrong.
func (j *Jobs) recount(ctx context.Context) error {
	if err := j.recountUnnotified(ctx); err != nil {
		return err
	}
	return j.recountOrders(ctx)
}

func (j *Jobs) recountUnnotified(ctx context.Context) error {
	wrong, err := report.Recount(ctx, j.o.DB)
	if err != nil || len(wrong) == 0 {
		return err
	}
	for _, w := range wrong {
		j.o.Log.Error("figures differ from their rows", "merchant_id", w.Merchant, "currency", w.Currency,
			"orders", w.Orders, "counted", w.Counted, "amount", w.Amount, "amount_counted", w.CountedM)
	}
	if err := report.Mend(ctx, j.o.DB, wrong); err != nil {
		return err
	}
	return j.countersDiffer(ctx, "untold", len(wrong))
}

func (j *Jobs) recountOrders(ctx context.Context) error {
	wrong, err := report.RecountOrders(ctx, j.o.DB, min(j.o.Retention.Reports, j.o.Retention.Notifications))
	if err != nil || len(wrong) == 0 {
		return err
	}
	for _, w := range wrong {
		j.o.Log.Error("figures differ from their rows", "span", w.Span, "start", notify.Stamp(w.Start), "currency", w.Currency,
			"raised_and_notified", w.Rows, "counted", w.Counters)
	}
	if err := report.MendOrders(ctx, j.o.DB, wrong); err != nil {
		return err
	}
	return j.countersDiffer(ctx, "orders notified", len(wrong))
}

func (j *Jobs) countersDiffer(ctx context.Context, figure string, n int) error {
	return j.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		return alert.Record(ctx, tx, j.o.DB, []alert.Event{{Rule: alert.CountersDiffer, Subject: figure, Count: int64(n)}})
	})
}
