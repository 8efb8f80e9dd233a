package compensation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

// Audit names of the acts.
const (
	RunAct     = "compensation.run"
	CancelAct  = "compensation.cancel"
	RedriveAct = "compensation.redrive"
)

// ActObject is the object name of compensations in the audit.
const ActObject = "compensation"

// Set is the object id of a re-drive in the audit.
const Set = "set"

// MaxRedrive bounds the items of one re-drive.
const MaxRedrive = 1000

// Errors of the acts.
var (
	ErrOver    = errors.New("the compensation has ended: nothing is left to run or to cancel")
	ErrRunning = errors.New("the compensation is running: wait for its result")
	ErrNothing = errors.New("no compensation matches")
	// ErrOnly means that nothing else would make the calls of a refund or payout.
	ErrOnly    = errors.New("this compensation makes the calls of a refund or payout, and nothing else does: it cannot be cancelled")
	ErrTooMany = fmt.Errorf("more than %d compensations match: use a batch", MaxRedrive)
)

// Acts are the dependencies of the acts.
type Acts struct {
	DB       *db.DB
	Schedule Schedule
	// Nudge wakes the workers for due items. It must not block.
	Nudge func([]queue.Nudge)
}

// Kinds returns the acts: run one item now, cancel one, and run a set again. Errors: ErrOver,
// ErrRunning, ErrNothing, ErrTooMany.
func (a Acts) Kinds() []act.Kind {
	return []act.Kind{
		a.Running(),
		{
			Name: CancelAct, Object: ActObject, Permission: access.CancelCompensations, Load: load,
			Do: one(func(ctx context.Context, tx db.Tx, in act.Input, x *Item) (map[string]any, error) {
				if refused := refuse(x); refused != nil {
					return nil, refused
				}
				if x.only() {
					return nil, ErrOnly
				}
				return details(x), a.cancel(ctx, tx, x)
			}),
		},
		{
			Name: RedriveAct, Object: ActObject, Permission: access.RedriveCompensations, Scope: access.Compensate,
			Params: act.ParamsOf(Redrive.check),
			Load: func(context.Context, bun.IDB, []act.Ref) ([]act.Subject, error) {
				return []act.Subject{{ID: Set}}, nil
			},
			Do: func(ctx context.Context, tx db.Tx, in act.Input, _ []act.Subject) ([]act.Outcome, error) {
				done, err := a.Redrive(ctx, tx, in.Params.(Redrive))
				if err != nil {
					return nil, err
				}
				return []act.Outcome{{Details: done.Details(in.Params.(Redrive))}}, nil
			},
		},
	}
}

// Running runs items again now.
func (a Acts) Running() act.Kind {
	return act.Kind{
		Name: RunAct, Object: ActObject, Permission: access.RunCompensations, Scope: access.Compensate, Load: load,
		Do: func(ctx context.Context, tx db.Tx, _ act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			items := make([]*Item, len(subjects))
			for i, s := range subjects {
				items[i] = s.Value.(*Item)
			}
			again, err := a.again(ctx, tx, items)
			if err != nil {
				return nil, err
			}
			outs := make([]act.Outcome, len(subjects))
			for i, x := range items {
				outs[i].Details = details(x)
				if !slices.ContainsFunc(again, func(y *Item) bool { return y.ID == x.ID }) { // its subject may have another open one
					outs[i].Effect, outs[i].Err = act.Blocked, cmp.Or(refuse(x), act.ErrChanged)
				}
			}
			return outs, nil
		},
		Set: &act.Set{Action: "redrive", Permission: access.RedriveCompensations, Scope: access.Compensate},
	}
}

// effect returns what running an item again would do.
func effect(x *Item) act.Effect {
	switch {
	case x.State == Running:
		return act.Blocked
	case !Moves.Can(x.State, Waiting):
		return act.Final
	case x.Kind == Rerun:
		return act.WillQuery
	}
	return act.Will
}

// refuse returns why an item cannot be run or cancelled now; nil = it can.
func refuse(x *Item) error {
	switch {
	case x.State == Running:
		return ErrRunning
	case !Moves.Can(x.State, Cancelled):
		return ErrOver
	}
	return nil
}

func details(x *Item) map[string]any {
	return map[string]any{"kind": x.Kind, "cause": x.Cause, "was": x.State, "order_no": x.OrderNo}
}

// one returns a Do that changes one item.
func one(do func(context.Context, db.Tx, act.Input, *Item) (map[string]any, error)) func(context.Context, db.Tx, act.Input,
	[]act.Subject) ([]act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
		outs := make([]act.Outcome, len(subjects))
		for i, s := range subjects {
			d, err := do(ctx, tx, in, s.Value.(*Item))
			if err != nil {
				return nil, err
			}
			outs[i] = act.Outcome{Details: d}
		}
		return outs, nil
	}
}

// load finds the items of Ref.Row.
func load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, err := act.Rows[*Item](ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i, x := range rows {
		subjects[i] = act.Subject{
			Row: x.ID, ID: strconv.FormatInt(x.ID, 10), MerchantID: x.MerchantID, Amount: x.Amount,
			Currency: x.Currency, SupplierID: x.SupplierID, OrderNo: x.OrderNo, Effect: effect(x), Value: x,
		}
	}
	return subjects, nil
}

// again makes items due now, with a new schedule, and returns those it changed. Of several
// items with one subject and version only the newest may be open. Exceptions about their deaths
// are resolved.
func (a Acts) again(ctx context.Context, tx db.Tx, items []*Item) ([]*Item, error) {
	type key struct {
		kind, subject string
		id, version   int64
	}
	newest := map[key]int64{}
	var ids []int64
	for _, x := range items {
		if Moves.Can(x.State, Waiting) && x.State != Running {
			k := key{x.Kind, x.SubjectKind, x.SubjectID, x.FromVersion}
			newest[k] = max(newest[k], x.ID)
		}
	}
	for _, id := range newest {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return nil, nil
	}
	now := a.DB.Now()
	var changed []*Item
	err := tx.NewRaw("UPDATE compensations AS c SET state = ?, next_at = ?, max_attempts = attempts + ?, finished_at = NULL"+
		" WHERE c.id IN (?) AND c.state IN (?) AND NOT EXISTS (SELECT 1 FROM compensations AS o WHERE o.kind = c.kind AND o.subject_kind = c.subject_kind"+
		" AND o.subject_id = c.subject_id AND o.from_version = c.from_version AND o."+open+" AND o.id <> c.id) RETURNING *",
		Waiting, now, a.Schedule.tries(), bun.List(ids), bun.List(Moves.From(Waiting, Waiting, Dead))).Scan(ctx, &changed)
	if db.IsUnique(err) { // one was opened meanwhile
		return nil, act.ErrChanged
	}
	if err != nil {
		return nil, fmt.Errorf("run compensations again: %w", err)
	}
	w := tx.Writes()
	nudges := make([]queue.Nudge, len(changed))
	for i, x := range changed {
		nudges[i] = queue.Nudge{Delivery: x.ID, Recipient: x.Lane}
		w.Add(exception.Resolve(tx, a.DB, exception.CompensationDead, subjectOf(x.ID)))
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("resolve exceptions of compensations: %w", err)
	}
	tx.OnEnd(func(err error) {
		if err == nil && a.Nudge != nil && len(nudges) > 0 {
			a.Nudge(nudges)
		}
	})
	return changed, nil
}

// cancel cancels an item that is not running.
func (a Acts) cancel(ctx context.Context, tx db.Tx, x *Item) error {
	now := a.DB.Now()
	res, err := tx.NewRaw("UPDATE compensations SET state = ?, next_at = NULL, finished_at = ? WHERE id = ? AND state = ? AND state IN (?)",
		Cancelled, now, x.ID, x.State, bun.List(Moves.From(Cancelled))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("cancel a compensation: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(act.ErrChanged, err)
	}
	_, err = exception.Resolve(tx, a.DB, exception.CompensationDead, subjectOf(x.ID)).Exec(ctx)
	return err
}

// Redrive is a set of items to run again: those with the given ids, or those that match the
// filter.
type Redrive struct {
	IDs    []string `json:"ids"`
	Filter *Filter  `json:"filter"`
}

// Filter filters a set; empty fields do not filter.
type Filter struct {
	State    string `json:"state"`
	Kind     string `json:"kind"`
	Cause    string `json:"cause"`
	Supplier string `json:"supplier"` // supplier's code
	Merchant string `json:"merchant"`
	From     string `json:"from"` // opened at or after this time, RFC 3339
	To       string `json:"to"`   // opened before this time
}

// Redriven counts what a re-drive did.
type Redriven struct {
	Matched int64 // found
	Queued  int64 // run again
	Skipped int64 // running, over, or superseded by another open one of their subject
}

// Details returns what the audit records.
func (r Redriven) Details(of Redrive) map[string]any {
	d := map[string]any{"matched": r.Matched, "queued": r.Queued, "skipped": r.Skipped}
	if of.Filter != nil {
		d["filter"] = of.Filter
	}
	if len(of.IDs) > 0 {
		d["ids"] = of.IDs
	}
	return d
}

// RedrivenOf returns what the act did.
func RedrivenOf(out act.Outcome) (r Redriven) {
	for name, into := range map[string]*int64{"matched": &r.Matched, "queued": &r.Queued, "skipped": &r.Skipped} {
		*into, _ = out.Details[name].(int64)
	}
	return r
}

// RedrivenIn returns what an act did, from its audit row.
func RedrivenIn(params string) (r Redriven) {
	_ = json.Unmarshal([]byte(params), &r) // missing fields are 0
	return r
}

func (r Redrive) check() (err error) {
	if (len(r.IDs) > 0) == (r.Filter != nil) {
		return &act.FieldError{Field: "ids", Problem: "give ids or a filter"}
	}
	if r.Filter != nil {
		_, _, err = r.Filter.check()
	}
	return err
}

// check validates a filter and returns its times (Unix µs; 0 = none).
func (f *Filter) check() (from, to int64, err error) {
	for _, w := range []struct {
		field, value string
		known        []string
	}{{"filter.state", f.State, Moves.Words()}, {"filter.kind", f.Kind, Names}, {"filter.cause", f.Cause, CauseWords()}} {
		if w.value != "" && !slices.Contains(w.known, w.value) {
			return 0, 0, &act.FieldError{Field: w.field, Problem: "use one of " + strings.Join(w.known, ", ")}
		}
	}
	if from, err = moment("filter.from", f.From); err == nil {
		to, err = moment("filter.to", f.To)
	}
	return from, to, err
}

// CauseWords returns the causes as strings, for filters.
func CauseWords() []string {
	words := make([]string, len(Causes))
	for i, c := range Causes {
		words[i] = string(c)
	}
	return words
}

func moment(field, value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return 0, &act.FieldError{Field: field, Problem: "use an RFC 3339 time such as 2026-11-21T08:00:00Z"}
	}
	return at.UnixMicro(), nil
}

// Redrive makes a set of items due now. Items that are running or over are skipped. Errors:
// *act.FieldError, ErrNothing, ErrTooMany.
func (a Acts) Redrive(ctx context.Context, tx db.Tx, r Redrive) (Redriven, error) {
	where, err := r.where(ctx, tx)
	if err != nil {
		return Redriven{}, err
	}
	var rows []*Item
	if err := where(tx.NewSelect().Model(&rows)).OrderExpr("cp.id").Limit(MaxRedrive + 1).Scan(ctx); err != nil {
		return Redriven{}, fmt.Errorf("read compensations: %w", err)
	}
	switch {
	case len(rows) > MaxRedrive:
		return Redriven{}, ErrTooMany
	case len(rows) == 0:
		return Redriven{}, ErrNothing
	}
	again, err := a.again(ctx, tx, rows)
	done := Redriven{Matched: int64(len(rows)), Queued: int64(len(again))}
	done.Skipped = done.Matched - done.Queued
	return done, err
}

// where filters a query to the set.
func (r Redrive) where(ctx context.Context, q bun.IDB) (func(*bun.SelectQuery) *bun.SelectQuery, error) {
	if r.Filter == nil {
		if len(r.IDs) > MaxRedrive {
			return nil, ErrTooMany
		}
		ids := make([]int64, len(r.IDs))
		for i, text := range r.IDs {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, &act.FieldError{Field: "ids", Problem: "these are not ids of compensations"}
			}
			ids[i] = id
		}
		return func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("cp.id IN (?)", bun.List(ids)) }, nil
	}
	from, to, err := r.Filter.check()
	if err != nil {
		return nil, err
	}
	supplier, err := codeID(ctx, q, "suppliers", "filter.supplier", r.Filter.Supplier)
	if err != nil {
		return nil, err
	}
	merchant, err := codeID(ctx, q, "merchants", "filter.merchant", r.Filter.Merchant)
	if err != nil {
		return nil, err
	}
	return func(s *bun.SelectQuery) *bun.SelectQuery {
		for column, value := range map[string]string{"cp.state": r.Filter.State, "cp.kind": r.Filter.Kind, "cp.cause": r.Filter.Cause} {
			if value != "" {
				s = s.Where("? = ?", bun.Safe(column), value)
			}
		}
		for column, value := range map[string]int64{"cp.supplier_id": supplier, "cp.merchant_id": merchant} {
			if value != 0 {
				s = s.Where("? = ?", bun.Safe(column), value)
			}
		}
		if from != 0 {
			s = s.Where("cp.opened_at >= ?", from)
		}
		if to != 0 {
			s = s.Where("cp.opened_at < ?", to)
		}
		return s
	}, nil
}

// codeID returns the id of a code; 0 if none is given.
func codeID(ctx context.Context, q bun.IDB, table, field, code string) (int64, error) {
	if code == "" {
		return 0, nil
	}
	var ids []int64
	if err := q.NewRaw("SELECT id FROM ? WHERE code = ?", bun.Ident(table), code).Scan(ctx, &ids); err != nil {
		return 0, fmt.Errorf("find a code in %s: %w", table, err)
	}
	if len(ids) == 0 {
		return 0, &act.FieldError{Field: field, Problem: "there is no such code"}
	}
	return ids[0], nil
}
