package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// SupplierDetail is one supplier with its settings, and what it was refused for.
type SupplierDetail struct {
	SupplierHealth
	Keys     []supplier.Key
	Refusals []Refusal
	// More: there are older refusals within the day.
	More bool
	// Changes are those of its settings, newest first; Unseen: only the newest acts were searched.
	Changes []SettingsChange
	Unseen  bool
	History []breaker.Change // of the breaker, newest first
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

// SettingsChange is one change of a supplier's settings.
type SettingsChange struct {
	audit.Row
	What   string   // created, changed or disabled
	Fields []string // of a change
}

const (
	// refusalsRead bounds the refused callbacks that are grouped.
	refusalsRead = 1000
	// changesSearched bounds the changes of settings in which those of one supplier are found.
	changesSearched = 500
	changesShown    = 20
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
	if err := b.addChanges(ctx, d); err != nil {
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

// settingsObjects are the objects of acts that change settings: the apply file, and proposals of
// one.
var settingsObjects = []string{"file", "setting"}

// addChanges finds the changes of its settings among the newest of all settings.
func (b *Reader) addChanges(ctx context.Context, d *SupplierDetail) error {
	var rows []audit.Row
	err := b.db.Read.NewSelect().Model(&rows).Where("au.object IN (?)",
		bun.List(settingsObjects)).OrderExpr("au.number DESC").Limit(changesSearched).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read changes of settings: %w", err)
	}
	d.Unseen = len(rows) == changesSearched
	for _, r := range rows {
		params := map[string]any{}
		_ = json.Unmarshal([]byte(r.Params), &params) // of an older form: it names nothing
		for _, what := range []string{"created", "changed", "disabled"} {
			named, _ := params[what].(string)
			for one := range strings.SplitSeq(named, "; ") {
				object, fields, _ := strings.Cut(one, ": ")
				if object == "supplier "+d.Code && len(d.Changes) < changesShown {
					d.Changes = append(d.Changes,
						SettingsChange{
							Row: r, What: what,
							Fields: strings.FieldsFunc(fields, func(c rune) bool { return c == ',' || c == ' ' }),
						})
				}
			}
		}
	}
	return nil
}
