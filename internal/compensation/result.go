package compensation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
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
	var tries []*Try
	for _, t := range all {
		t.result.Text = textlimit.Clip(textlimit.Storable(t.result.Text), maxText)
		tries = append(tries, &Try{
			ID: r.o.DB.NewID(), CompensationID: t.item.ID, Number: t.item.Attempts, At: t.at, TookUS: t.took.Microseconds(),
			Class: t.result.Class, Error: t.result.Text, CallID: t.result.Call,
		})
		if err := r.decide(ctx, tx, t); err != nil {
			return nil, err
		}
	}
	mine, err := r.store(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	w := tx.Writes()
	var dead []*exception.Item
	var over []string
	for _, t := range all {
		switch {
		case !mine[t]:
			t.next = nil
		case t.state == Dead || t.spent:
			metric.Exceptions.WithLabelValues(exception.CompensationDead).Inc()
			dead = append(dead, exceptionOf(t))
		case t.state == Done && t.item.only():
			over = append(over, subjectOf(t.item.ID))
		}
	}
	if len(over) > 0 {
		w.Add(exception.Resolve(tx, r.o.DB, exception.CompensationDead, over...))
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
// One that nothing can replace does not die: it is tried daily and, if it only crashed, by its
// age; and operators are told.
func (r *Runner) decide(ctx context.Context, tx db.Tx, t *try) error {
	err := r.decideAny(ctx, tx, t)
	if t.spent = err == nil && t.state == Dead && t.item.only(); t.spent {
		wait := Daily
		if t.result.Class == Class(Poison) {
			wait, _ = WaitSince(t.item.Age(r.o.DB.Now()))
		}
		t.retry(r.o.DB.Now(), wait)
	}
	return err
}

// retry gives an item a wait that uses up none of the schedule's tries.
func (t *try) retry(now int64, wait time.Duration) {
	at := now + wait.Microseconds()
	t.state, t.next, t.renew = Waiting, &at, true
}

func (r *Runner) decideAny(ctx context.Context, tx db.Tx, t *try) error {
	t.state, t.next, t.renew = Dead, nil, false
	switch {
	case t.result.IsDone():
		t.state = Done
		return nil
	case t.result.dead:
		return nil
	case t.result.wait > 0:
		t.retry(r.o.DB.Now(), t.result.wait)
		return nil
	}
	left := t.item.MaxAttempts - t.item.Attempts
	if t.result.Class == Class(Poison) || t.item.only() {
		tries, panics, err := r.ended(ctx, tx, t.item)
		if err != nil {
			return err
		}
		if t.result.Class == Class(Poison) && panics+1 >= maxPanics {
			return nil
		}
		if t.item.only() { // tries that ended with their node say nothing
			left = r.o.Schedule.tries() - tries - 1
		}
	}
	if at, ok := r.o.Schedule.after(left, r.o.DB.Now()); ok {
		t.state, t.next = Waiting, &at
	}
	return nil
}

// ended counts the tries of the current schedule that have a result, and how many panicked.
func (r *Runner) ended(ctx context.Context, tx db.Tx, x *Item) (tries, panics int64, err error) {
	err = tx.NewRaw("SELECT count(*), coalesce(sum(CASE WHEN class = ? THEN 1 ELSE 0 END), 0) FROM compensation_tries"+
		" WHERE compensation_id = ? AND number > ?", Poison, x.ID, x.MaxAttempts-r.o.Schedule.tries()).Scan(ctx, &tries, &panics)
	if err != nil {
		return 0, 0, fmt.Errorf("count the tries of a compensation: %w", err)
	}
	return tries, panics, nil
}

// stored is the effect of a try on its item, as store writes it.
type stored struct {
	Item, Try        int64
	ToState          State
	NextAt, Finished *int64
	Cause            Cause
	Class            Class
	Error            string
	More             int64
}

// storeQuery guards by lease and number of the try: a lease is of an item that is running.
var storeQuery = "WITH _v ? UPDATE compensations SET state = _v.to_state, next_at = _v.next_at, lease_owner = 0, lease_until = 0, cause = _v.cause, last_class = _v.class," +
	" last_error = _v.error, finished_at = _v.finished, max_attempts = max_attempts + _v.more" +
	" FROM _v WHERE compensations.id = _v.item AND compensations.attempts = _v.try AND lease_owner = ? AND " + Moves.In("state", Running) +
	" RETURNING id, attempts"

// store writes the effects of tries on their items, and returns those whose items no other node
// has.
func (r *Runner) store(ctx context.Context, tx db.Tx, all []*try) (map[*try]bool, error) {
	type claim struct{ ID, Attempts int64 }
	now, rows, of := r.o.DB.Now(), make([]stored, 0, len(all)), map[claim]*try{}
	for _, t := range all {
		of[claim{t.item.ID, t.item.Attempts}] = t
		x := stored{
			Item: t.item.ID, Try: t.item.Attempts, ToState: t.state, NextAt: t.next, Cause: t.item.Cause, Class: t.result.Class,
			Error: t.result.Text,
		}
		if !t.result.IsDone() {
			x.Cause = Cause(t.result.Class)
		}
		if t.next == nil {
			x.Finished = &now
		}
		if t.renew { // also gives back the tries that ended with their node
			x.More = t.item.Attempts + r.o.Schedule.tries() - t.item.MaxAttempts
		}
		rows = append(rows, x)
	}
	var written []claim
	if err := tx.Prepared(ctx, &written, storeQuery, bulk.Each(&rows), r.o.DB.Boot()); err != nil {
		return nil, fmt.Errorf("write the results of compensations: %w", err)
	}
	mine := make(map[*try]bool, len(written))
	for _, c := range written {
		mine[of[c]] = true
	}
	return mine, nil
}

// exceptionOf returns the exception to open for an item that died.
func exceptionOf(t *try) *exception.Item {
	x := &exception.Item{
		Kind: exception.CompensationDead, MerchantID: t.item.MerchantID, OrderNo: t.item.OrderNo, Subject: subjectOf(t.item.ID),
		Amount: t.item.Amount, Currency: t.item.Currency,
		Detail: exception.Detail(map[string]any{
			"compensation": subjectOf(t.item.ID), "type": t.item.Kind, "attempts": t.item.Attempts, "last_class": t.result.Class,
			"last_error": t.result.Text,
		}),
	}
	if t.item.SubjectKind == OfOrder {
		x.OrderID = t.item.SubjectID
	}
	return x
}

// subjectOf returns the exception's subject for an item.
func subjectOf(id int64) string { return strconv.FormatInt(id, 10) }
