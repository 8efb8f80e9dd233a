package suppliercall

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/report"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
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
	metric.SupplierCallsMade.WithLabelValues(x.To.Code, string(d.Class)).Inc()
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
// because it locks breakers. Call committed after the commit. An end that is stored already, by
// a commit that was not confirmed, counts no more.
func (c *Caller) End(ctx context.Context, tx db.Tx, all ...*Done) (committed func(), err error) {
	if len(all) == 0 {
		return func() {}, nil
	}
	rows := make([]Row, len(all))
	for i, d := range all {
		rows[i] = d.Row
	}
	var stored []int64
	err = tx.Prepared(ctx, &stored, "WITH _r ? UPDATE supplier_calls SET state = _r.state, class = _r.class, status = _r.status,"+
		" http_status = _r.http_status, request = _r.request, answer = _r.answer, took_us = _r.took_us FROM _r"+
		" WHERE supplier_calls.id = _r.id AND supplier_calls.state = ? RETURNING supplier_calls.id", bulk.Each(&rows), begun)
	if err != nil {
		return nil, fmt.Errorf("store the ends of calls: %w", err)
	}
	var samples []breaker.Sample
	figures := report.NewDelta(c.o.DB.Now())
	for _, d := range all {
		if d.Class == "" || !slices.Contains(stored, d.ID) { // not made, or counted already
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
	figures.Write(w, c.o.DB)
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("count calls: %w", err)
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

// Stored returns which of the calls have their ends stored already, by id.
func Stored(ctx context.Context, q bun.IDB, all []*Done) (map[int64]bool, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(all))
	for i, d := range all {
		ids[i] = d.ID
	}
	var ended []int64
	if err := q.NewRaw("SELECT id FROM supplier_calls WHERE id IN (?) AND state <> ?", bun.List(ids), begun).Scan(ctx, &ended); err != nil {
		return nil, fmt.Errorf("read the ends of calls: %w", err)
	}
	stored := make(map[int64]bool, len(ended))
	for _, id := range ended {
		stored[id] = true
	}
	return stored, nil
}
