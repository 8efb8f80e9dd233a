package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// SupplierDetail is one supplier with its settings, and what it was refused for.
type SupplierDetail struct {
	SupplierHealth
	Keys     []supplier.Key
	Refusals []Refusal
	// More: there are older refusals within the day.
	More    bool
	Changes []settings.HistoryRow // of its settings, newest first
	History []breaker.Change      // of the breaker, newest first
}

// Refusal is the refused callbacks of one outcome within a day.
type Refusal struct {
	Outcome string
	N       int64
	Last    int64 // Unix µs
	// Step is the check that the newest of them failed.
	Step supplier.Step
	Addr string // that it came from
}

const (
	// refusalsRead bounds the refused callbacks that are grouped.
	refusalsRead = 1000
	changesShown = 20
)

// Supplier reads one supplier by code. Errors: act.ErrNotFound.
func (b *Reader) Supplier(ctx context.Context, code string, zone *time.Location) (*SupplierDetail, error) {
	all, err := b.Suppliers(ctx, zone)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s SupplierHealth) bool { return s.Code == code })
	if i < 0 {
		return nil, act.ErrNotFound
	}
	d := &SupplierDetail{SupplierHealth: all[i], Keys: supplier.KeysOf(all[i].Adapter)}
	if err := b.addRefusals(ctx, d); err != nil {
		return nil, err
	}
	if d.Changes, err = settings.History(ctx, b.db, settings.Object{Kind: "supplier", ID: code}, 0, changesShown); err != nil {
		return nil, err
	}
	d.History, err = breaker.History(ctx, b.db, recipient.OfSupplier(d.ID), historyShown)
	return d, err
}

// addRefusals groups the refused callbacks of the last day.
func (b *Reader) addRefusals(ctx context.Context, d *SupplierDetail) error {
	var rows []struct {
		Outcome    string
		ReceivedAt int64
		RemoteAddr string
		Steps      supplier.Steps `bun:"steps"`
	}
	err := b.db.Read.NewRaw("SELECT c.outcome, c.received_at, c.remote_addr, c.steps"+
		" FROM refused_callbacks AS c WHERE c.supplier = ? AND c.id > ? ORDER BY c.id DESC LIMIT ?",
		d.Code, db.IDAt(b.db.Now()-24*time.Hour.Microseconds()), refusalsRead+1).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read refused callbacks: %w", err)
	}
	if d.More = len(rows) > refusalsRead; d.More {
		rows = rows[:refusalsRead]
	}
	for _, r := range rows {
		i := slices.IndexFunc(d.Refusals, func(x Refusal) bool { return x.Outcome == r.Outcome })
		if i < 0 {
			i = len(d.Refusals)
			d.Refusals = append(d.Refusals, Refusal{Outcome: r.Outcome, Last: r.ReceivedAt, Addr: r.RemoteAddr})
			maskerOf("").steps(r.Steps)
			for _, step := range r.Steps {
				if !step.OK {
					d.Refusals[i].Step = step
				}
			}
		}
		d.Refusals[i].N++
	}
	slices.SortStableFunc(d.Refusals, func(x, y Refusal) int { return cmp.Compare(y.N, x.N) })
	return nil
}
