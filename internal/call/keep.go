package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/report"
	"backstop/internal/supplier"
)

// note records the result of a call.
func (c *Caller) note(d *Done, x Call, said Said, took time.Duration) {
	us := took.Microseconds()
	e := said.Exchange
	if e.Class == "" {
		e.Class = supplier.ClassUnknown
	}
	keep := []string{x.OrderNo, x.Reference}
	d.State, d.Class, d.Status, d.HTTPStatus, d.TookUS = ended, e.Class, said.Status, e.Status, &us
	d.Request, d.Answer = c.shown(e.Request, keep), c.shown(e.Body, keep)
	metric.SupplierCalls.WithLabelValues(string(d.Op), string(d.Class)).Inc()
	metric.SupplierCallSeconds.Observe(took.Seconds())
}

func (c *Caller) shown(text []byte, keep []string) string {
	if len(text) == 0 {
		return ""
	}
	return textlimit.Cut(textlimit.Storable(string(c.o.Mask(text, keep...))), maxKept)
}

// Drop ends the row of a call that was not made. If that fails too, the row stays begun.
func (c *Caller) Drop(ctx context.Context, d *Done) {
	none := int64(0)
	d.State, d.Status, d.TookUS = ended, NotMade, &none
	if err := c.Keep(context.WithoutCancel(ctx), d); err != nil {
		c.o.Log.Warn("a call that was not made stays recorded as begun", "call", d.ID, "error", db.ErrorText(err))
	}
}

func (c *Caller) begin(ctx context.Context, tx db.Tx, rows []*Row) ([]struct{}, error) {
	w := tx.Writes()
	all := make([]Row, len(rows))
	for i, r := range rows {
		all[i] = *r
	}
	w.Insert(&all, "")
	return make([]struct{}, len(rows)), w.Exec(ctx)
}

// Keep stores the end of a call in its own transaction.
func (c *Caller) Keep(ctx context.Context, d *Done) error {
	committed, err := c.ends.Do(ctx, d)
	if err != nil {
		return fmt.Errorf("store the end of a call: %w", err)
	}
	committed()
	return nil
}

func (c *Caller) end(ctx context.Context, tx db.Tx, all []*Done) ([]func(), error) {
	committed, err := c.End(ctx, tx, all...)
	if err != nil {
		return nil, err
	}
	once, outs := sync.OnceFunc(committed), make([]func(), len(all))
	for i := range outs {
		outs[i] = once
	}
	return outs, nil
}

// End stores the ends of calls in the transaction of their results, after its other writes
// because it locks breakers. Call committed after the commit.
func (c *Caller) End(ctx context.Context, tx db.Tx, all ...*Done) (committed func(), err error) {
	var samples []breaker.Sample
	rows, figures := make([]Row, len(all)), report.NewDelta(c.o.DB.Now())
	for i, d := range all {
		rows[i] = d.Row
		if d.Class == "" { // not made
			continue
		}
		figures.Call(d.SupplierID, string(d.Op), string(d.Class), time.Duration(*d.TookUS)*time.Microsecond)
		s := breaker.Sample{Recipient: d.to, Generation: d.generation, Result: breaker.Failed}
		if d.Class.Healthy() {
			s.Result = breaker.Succeeded
		}
		samples = append(samples, s)
	}
	w := tx.Writes()
	w.Each(&rows, "UPDATE supplier_calls AS sc SET state = _v.state, class = _v.class, status = _v.status, http_status = _v.http_status,"+
		" request = _v.request, answer = _v.answer, took_us = _v.took_us FROM _v WHERE sc.id = _v.id AND sc.state = '"+begun+"'")
	figures.Write(w, c.o.DB)
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("store the ends of calls: %w", err)
	}
	folded, err := c.o.Breakers.Fold(ctx, tx, samples)
	if err != nil {
		return nil, err
	}
	failpoint.Hit("before_answer_commit")
	return func() {
		c.o.Breakers.Committed(folded)
		failpoint.Hit("after_answer_commit")
	}, nil
}
