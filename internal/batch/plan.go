package batch

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
)

const (
	// loadRows is how many rows are judged per query.
	loadRows = 1000
	// writeRows is how many rows of a plan one transaction writes. On SQLite callbacks wait
	// for it.
	writeRows         = 1000
	writeRowsPostgres = 10_000
)

// MerchantBreaker is the cause of rows that are done but take effect only after their
// merchant's breaker has closed.
const MerchantBreaker = "merchant_breaker"

// Proposal is a request to do something to many rows.
type Proposal struct {
	Action, Object string
	By             act.Actor
	Filter         string  // the list's URL; "" = the rows were picked
	IDs            []int64 // of the rows
}

// Plan judges rows and stores what would be done to each. Errors: *act.Denied, *act.FieldError,
// ErrNothing, ErrTooMany.
func (b *Batches) Plan(ctx context.Context, p Proposal) (*Batch, error) {
	k, ok := b.kind(p.Action, p.Object)
	if !ok {
		return nil, invalid.Field("action", text.Text{ZH: "这里不能批量执行该操作", EN: "this action is not available for many of these"})
	}
	if err := b.May(p.By, k); err != nil {
		return nil, err
	}
	if len(p.IDs) > MaxRows {
		return nil, ErrTooMany
	}
	now, id := b.o.DB.Now(), b.o.DB.NewID()
	x := &Batch{
		ID: id, Action: k.Set.Action, Object: k.Object, Filter: p.Filter, MaxID: id, MadeBy: p.By.Name, Maker: p.By.ID,
		MadeAt: now, ExpiresAt: now + expiry.Microseconds(), State: Planned, Version: 1, Planned: Tally{}, Result: Tally{}, Drift: Tally{},
		Rate: b.o.Rate,
	}
	ids := slices.DeleteFunc(slices.Clone(p.IDs), func(id int64) bool { return id >= x.MaxID })
	slices.Sort(ids)
	rows, err := b.judge(ctx, k, x, p.By, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, ErrNothing
	}
	return x, b.store(ctx, x, rows)
}

// judge makes the rows of a batch: rows to act on come first, oldest first.
func (b *Batches) judge(ctx context.Context, k *act.Kind, x *Batch, by act.Actor, ids []int64) ([]Row, error) {
	var todo, rest []Row
	for part := range slices.Chunk(ids, loadRows) {
		found, err := load(ctx, b.o.DB.Read, k, part)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if by.Merchants != nil && !slices.Contains(by.Merchants, s.MerchantID) {
				continue
			}
			r := Row{
				BatchID: x.ID, Object: k.Object, ObjectID: s.Row, OrderNo: s.OrderNo, State: RowWaiting, Outcome: outcome(s.Effect),
				Amount: s.Amount, Currency: s.Currency,
			}
			if s.Effect == act.Waits {
				r.Cause = MerchantBreaker
			}
			x.Planned.add(string(effect(s)), s)
			if s.Effect.Acts() {
				todo = append(todo, r)
				continue
			}
			r.State, r.At = RowSkipped, &x.MadeAt
			rest = append(rest, r)
		}
	}
	x.ToDo, x.Rows = int64(len(todo)), int64(len(todo)+len(rest))
	rows := slices.Concat(todo, rest)
	for i := range rows {
		rows[i].Number = int64(i) + 1
	}
	return rows, nil
}

// effect returns a subject's effect; Will if it has none.
func effect(s act.Subject) act.Effect {
	if s.Effect == "" {
		return act.Will
	}
	return s.Effect
}

// outcome returns the contract's word for an effect.
func outcome(p act.Effect) string {
	if p == act.Waits || p == "" {
		return string(act.Will)
	}
	return string(p)
}

// store writes the batch and its rows in short transactions. Until all are written, the batch
// is marked as expired so that nobody can start it.
func (b *Batches) store(ctx context.Context, x *Batch, rows []Row) error {
	unfinished := *x
	unfinished.ExpiresAt = 0
	if _, err := b.o.DB.NewInsert().Model(&unfinished).Exec(ctx); err != nil {
		return fmt.Errorf("store a batch: %w", err)
	}
	size := writeRows
	if b.o.DB.IsPostgres() {
		size = writeRowsPostgres
	}
	for part := range slices.Chunk(rows, size) {
		err := b.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			w.Insert(&part, "")
			return w.Exec(ctx)
		})
		if err != nil {
			return fmt.Errorf("store the rows of a batch: %w", err)
		}
	}
	if _, err := b.o.DB.NewRaw("UPDATE batches SET expires_at = ? WHERE id = ?", x.ExpiresAt, x.ID).Exec(ctx); err != nil {
		return fmt.Errorf("store a batch: %w", err)
	}
	return nil
}
