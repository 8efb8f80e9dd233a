package compensation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

// maxText bounds the stored text of a result, in bytes.
const maxText = 500

// maxPanics is how many panics within one schedule make an item dead.
const maxPanics = 3

// Try is the record of one try.
type Try struct {
	bun.BaseModel `bun:"table:compensation_tries,alias:ct"`

	ID             int64  `bun:"id,pk"`
	CompensationID int64  `bun:"compensation_id"`
	Number         int64  `bun:"number"`
	At             int64  `bun:"at"` // Unix µs
	TookUS         int64  `bun:"took_us"`
	Class          Class  `bun:"class"`
	Error          string `bun:"error"`   // Result.Text
	CallID         int64  `bun:"call_id"` // 0 = none
}

// commit writes tries and their effect on items, by compare-and-set on the lease and the number
// of the try; if another node has claimed the item since, only the try is stored. The
// exceptions of items that died are written in the same transaction.
func (r *Runner) commit(ctx context.Context, tx db.Tx, all []*try) (func(), error) {
	w := tx.Writes()
	var tries []*Try
	var dead []*exception.Item
	for _, t := range all {
		t.result.Text = textlimit.Clip(textlimit.Storable(t.result.Text), maxText)
		tries = append(tries, &Try{
			ID: r.o.DB.NewID(), CompensationID: t.item.ID, Number: t.item.Attempts, At: t.at, TookUS: t.took.Microseconds(),
			Class: t.result.Class, Error: t.result.Text, CallID: t.result.Call,
		})
		if err := r.decide(ctx, tx, t); err != nil {
			return nil, err
		}
		mine, err := r.store(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		if mine && t.state == Done && t.item.only() {
			w.Add(exception.Resolve(tx, r.o.DB, exception.CompensationDead, subjectOf(t.item.ID)))
		}
		if mine && (t.state == Dead || t.spent) {
			metric.Exceptions.WithLabelValues(exception.CompensationDead).Inc()
			dead = append(dead, exceptionOf(t))
		}
		if !mine {
			t.next = nil
		}
	}
	w.Insert(&tries, "CONFLICT (compensation_id, number) DO NOTHING")
	exception.Open(tx, w, r.o.DB, dead)
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write the tries of compensations: %w", err)
	}
	return nil, nil
}

// decide sets the effect of a try on its item.
//
// One that nothing can replace does not die: it is tried daily, and operators are told.
func (r *Runner) decide(ctx context.Context, tx db.Tx, t *try) error {
	err := r.decideAny(ctx, tx, t)
	if t.spent = err == nil && t.state == Dead && t.item.only(); t.spent {
		at := r.o.DB.Now() + afterLast.Microseconds()
		t.state, t.next = Waiting, &at
	}
	return err
}

// afterLast is the wait after the last try of an item that nothing can replace.
const afterLast = 24 * time.Hour

func (r *Runner) decideAny(ctx context.Context, tx db.Tx, t *try) error {
	t.state, t.next = Dead, nil
	switch {
	case t.result.IsDone():
		t.state = Done
		return nil
	case t.result.dead:
		return nil
	case t.result.wait > 0:
		at := r.o.DB.Now() + t.result.wait.Microseconds()
		t.state, t.next = Waiting, &at
		return nil
	case t.result.Class == Class(Poison):
		var panics int64
		first := t.item.MaxAttempts - r.o.Schedule.tries()
		err := tx.NewRaw("SELECT count(*) FROM compensation_tries WHERE compensation_id = ? AND number > ? AND class = ?", t.item.ID, first, Poison).Scan(ctx, &panics)
		if err != nil {
			return fmt.Errorf("count panics: %w", err)
		}
		if panics+1 >= maxPanics {
			return nil
		}
	}
	if at, ok := r.o.Schedule.after(t.item, r.o.DB.Now()); ok {
		t.state, t.next = Waiting, &at
	}
	return nil
}

// store writes the effect of a try on its item; false = another node has it.
func (r *Runner) store(ctx context.Context, tx db.Tx, t *try) (bool, error) {
	cause, now := t.item.Cause, r.o.DB.Now()
	if !t.result.IsDone() {
		cause = Cause(t.result.Class)
	}
	var finished *int64
	if t.next == nil {
		finished = &now
	}
	more := 0 // a wait from Again uses up none of the schedule's tries
	if (t.result.wait > 0 || t.spent) && t.state == Waiting {
		more = 1
	}
	res, err := tx.NewRaw("UPDATE compensations SET state = ?, next_at = ?, lease_owner = 0, lease_until = 0, cause = ?, last_class = ?, last_error = ?, finished_at = ?, max_attempts = max_attempts + ?"+
		" WHERE id = ? AND attempts = ? AND lease_owner = ? AND state IN (?)",
		t.state, t.next, cause, t.result.Class, t.result.Text, finished, more, t.item.ID, t.item.Attempts, r.o.DB.Boot(), bun.List(Moves.From(t.state, Running))).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("write the result of a compensation: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// exceptionOf returns the exception to open for an item that died.
func exceptionOf(t *try) *exception.Item {
	x := &exception.Item{
		Kind: exception.CompensationDead, MerchantID: t.item.MerchantID, OrderNo: t.item.OrderNo, Subject: subjectOf(t.item.ID),
		Amount: t.item.Amount, Currency: t.item.Currency,
		Detail: exception.Detail(map[string]any{
			"compensation": subjectOf(t.item.ID), "type": t.item.Kind, "attempts": t.item.Attempts, "last_class": t.result.Class, "last_error": t.result.Text,
		}),
	}
	if t.item.SubjectKind == OfOrder {
		x.OrderID = t.item.SubjectID
	}
	return x
}

// subjectOf returns the exception's subject for an item.
func subjectOf(id int64) string { return strconv.FormatInt(id, 10) }
