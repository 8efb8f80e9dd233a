package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"

	"github.com/uptrace/bun"
)

const (
	// tries bounds the attempts at a step that conflicts with other transactions.
	tries = 3
	// A batch stops if, of its lastRows last rows, mostFailed failed for one cause.
	lastRows   = 100
	mostFailed = 20
	// callsAtOnce is how many rows of one batch are called at a time; suppliers have their own
	// limits.
	callsAtOnce = 16
)

// errLost means that another process runs the batch, or none does any more.
var errLost = errors.New("this process does not run the batch")

// end is the result of one row.
type end struct {
	Row
	now *act.Subject // as judged now; nil = deleted
}

// is sets how a row ended.
func (e *end) is(state RowState, outcome act.Effect, cause string) {
	e.State, e.Outcome, e.Cause = state, outcomeOf(outcome, e.Outcome), cause
}

func outcomeOf(p act.Effect, shown string) string {
	if p == "" {
		return shown
	}
	return outcome(p)
}

// word returns the end as in a Tally; see ends.
func (e *end) word() string {
	switch {
	case e.State == RowSkipped:
		return e.Outcome
	case e.State == RowDone && e.Cause == MerchantBreaker:
		return string(act.Waits)
	}
	return string(e.State)
}

// step processes at most n next rows of a batch that this process has claimed, and returns how
// many. Errors: errLost.
func (b *Batches) step(ctx context.Context, id int64, n int) (done int, err error) {
	for range tries {
		x, k, err := b.claimed(ctx, id)
		if err != nil {
			return 0, err
		}
		rows, err := b.next(ctx, x, n)
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, b.finish(ctx, x, Done, "")
		}
		if k.Set.Call != nil {
			return b.callStep(ctx, k, x, rows)
		}
		err = b.setStep(ctx, k, x, rows)
		switch {
		case err == nil:
			return len(rows), nil
		case errors.Is(err, errDown):
			return 0, b.finish(ctx, x, Stopped, ByBreaker)
		case db.IsConflict(err) || errors.Is(err, db.ErrStale) || errors.Is(err, act.ErrChanged):
			continue
		case db.IsUnavailable(err) || ctx.Err() != nil:
			return 0, err
		}
		return b.oneByOne(ctx, k, x, rows, err)
	}
	return 0, db.ErrBusy
}

// claimed reads a batch that this process runs.
func (b *Batches) claimed(ctx context.Context, id int64) (*Batch, *act.Kind, error) {
	x, err := Find(ctx, b.o.DB, id)
	if err != nil {
		return nil, nil, err
	}
	k, ok := b.kind(x.Action, x.Object)
	if !ok || x.State != Running || x.LeaseOwner != b.o.DB.Boot() {
		return nil, nil, errLost
	}
	return x, k, nil
}

// next reads the next waiting rows.
func (b *Batches) next(ctx context.Context, x *Batch, n int) (rows []Row, err error) {
	err = b.o.DB.NewSelect().Model(&rows).Where("br.batch_id = ?", x.ID).Where("br.number > ?", x.ProcessedTo).Where("br.number <= ?", x.ToDo).
		Where("br.state = ?", RowWaiting).OrderExpr("br.number").Limit(int64(n)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the rows of a batch: %w", err)
	}
	return rows, nil
}

// errDown means that the breaker of a supplier of these rows is open.
var errDown = errors.New("a supplier's breaker is open")

// setStep acts on rows in their current state and ends them, in one transaction. Rows deleted
// at the end of their retention count as over.
func (b *Batches) setStep(ctx context.Context, k *act.Kind, x *Batch, rows []Row) error {
	return b.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		all, acts, err := b.judged(ctx, tx, k, rows)
		if err != nil {
			return err
		}
		if len(acts) > 0 {
			if err := b.do(ctx, tx, k, x, acts); err != nil {
				return err
			}
		}
		if err := b.write(ctx, tx, x, all, Running); err != nil {
			return err
		}
		failpoint.Hit("batch_step")
		return nil
	})
}

// judged reloads rows and ends those that need no action any more. acts are the others. Errors:
// errDown.
func (b *Batches) judged(ctx context.Context, q bun.IDB, k *act.Kind, rows []Row) (all, acts []*end, err error) {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ObjectID
	}
	found, err := load(ctx, q, k, ids)
	if err != nil {
		return nil, nil, err
	}
	of := make(map[int64]*act.Subject, len(found))
	for i := range found {
		of[found[i].Row] = &found[i]
	}
	for _, r := range rows {
		e := &end{Row: r, now: of[r.ObjectID]}
		all = append(all, e)
		switch {
		case e.now == nil:
			e.is(RowSkipped, act.Final, "gone")
		case !e.now.Effect.Acts():
			e.is(RowSkipped, e.now.Effect, "")
		case e.now.SupplierID != 0 && b.o.Down != nil && b.o.Down(e.now.SupplierID):
			return nil, nil, errDown
		default:
			acts = append(acts, e)
		}
	}
	return all, acts, nil
}

// do acts on rows in one transaction.
func (b *Batches) do(ctx context.Context, tx db.Tx, k *act.Kind, x *Batch, acts []*end) error {
	in := act.Input{By: act.Actor{Name: x.MadeBy}, Reason: x.Reason}
	var err error
	if in.Params, err = k.Params.Read(nil); err != nil {
		return err
	}
	subjects := make([]act.Subject, len(acts))
	for i, e := range acts {
		subjects[i] = *e.now
	}
	outs, err := k.Do(ctx, tx, in, subjects)
	if err != nil {
		return err
	}
	for i, o := range outs {
		switch e := acts[i]; {
		case o.Err == nil && o.Effect == act.Waits:
			e.is(RowDone, act.Will, MerchantBreaker)
		case o.Err == nil:
			e.is(RowDone, "", "")
		case o.Effect == act.Final || o.Effect == act.Unknown || o.Effect == act.Blocked:
			e.is(RowSkipped, o.Effect, "")
		default:
			e.is(RowFailed, "", causeOf(o.Err))
		}
	}
	return nil
}

// maxCause bounds a cause, in bytes.
const maxCause = 60

// causeOf returns the cause of a row that failed in the database: the kind of the error, which
// contains no data.
func causeOf(err error) string {
	text := db.Kind(err)
	if text == "" {
		text = "refused"
	}
	return text[:min(len(text), maxCause)]
}

// oneByOne repeats a failed step row by row, so that one bad row does not hold up the others.
func (b *Batches) oneByOne(ctx context.Context, k *act.Kind, x *Batch, rows []Row, cause error) (done int, err error) {
	b.o.Log.Error("a step of a batch failed; its rows are done one by one", "batch", x.No(), "error", db.ErrorText(cause))
	for i := range rows {
		x, _, err := b.claimed(ctx, x.ID)
		if err != nil {
			return done, err
		}
		err = b.setStep(ctx, k, x, rows[i:i+1])
		if err != nil && !db.IsConflict(err) && !db.IsUnavailable(err) && !errors.Is(err, db.ErrStale) && !errors.Is(err, errDown) &&
			ctx.Err() == nil {
			e := &end{Row: rows[i], now: nil}
			e.now = &act.Subject{Amount: e.Amount, Currency: e.Currency}
			e.is(RowFailed, "", causeOf(err))
			err = b.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return b.write(ctx, tx, x, []*end{e}, Running) })
		}
		if err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// callStep makes the calls for rows, several at a time, and then ends the rows that were
// called. It begins no further call once the batch is no longer running.
func (b *Batches) callStep(ctx context.Context, k *act.Kind, x *Batch, rows []Row) (done int, err error) {
	all, acts, err := b.judged(ctx, b.o.DB, k, rows)
	if errors.Is(err, errDown) {
		return 0, b.finish(ctx, x, Stopped, ByBreaker)
	}
	if err != nil {
		return 0, err
	}
	goes, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		b.watch(goes, x.ID, stop)
	}()
	var calls sync.WaitGroup
	slots := make(chan struct{}, callsAtOnce)
	queried := make([]bool, len(acts))
	for i, e := range acts {
		select {
		case slots <- struct{}{}:
		case <-goes.Done():
		}
		if goes.Err() != nil || b.o.Down != nil && e.now.SupplierID != 0 && b.o.Down(e.now.SupplierID) {
			break
		}
		queried[i] = true
		calls.Go(func() {
			defer func() { <-slots }()
			state, r := RowDone, k.Set.Call(ctx, *e.now)
			if r.Failed {
				state = RowFailed
			}
			e.is(state, "", r.Cause)
		})
	}
	calls.Wait()
	stop()
	<-watched
	for i, e := range acts {
		if !queried[i] {
			all = slices.DeleteFunc(all, func(x *end) bool { return x == e })
		}
	}
	if ctx.Err() != nil { // this process is ending; another one repeats the calls
		return 0, ctx.Err()
	}
	if len(all) == 0 {
		return 0, nil
	}
	err = b.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := b.write(ctx, tx, x, all, Running, Paused, Stopped); err != nil {
			return err
		}
		failpoint.Hit("batch_step")
		return nil
	})
	return len(all), err
}

// write ends rows, adds up the results, and stops the batch if it must not continue. The
// results of calls are written even if the batch was paused or stopped meanwhile.
func (b *Batches) write(ctx context.Context, tx db.Tx, x *Batch, all []*end, in ...State) error {
	result, drift, now := x.Result.clone(), x.Drift.clone(), b.o.DB.Now()
	type how struct {
		state          RowState
		outcome, cause string
	}
	groups := map[how][]int64{}
	next, failed := x.ProcessedTo, false
	for _, e := range all {
		s := act.Subject{Amount: e.Amount, Currency: e.Currency}
		if e.now != nil {
			s = *e.now
		}
		result.add(e.word(), s)
		if e.State == RowSkipped && e.Outcome == string(act.Final) {
			drift.moved(&e.Row, nil)
		} else {
			drift.moved(&e.Row, e.now)
		}
		k := how{e.State, e.Outcome, e.Cause}
		groups[k] = append(groups[k], e.Number)
		failed = failed || e.State == RowFailed
		if e.Number == next+1 {
			next = e.Number
		}
	}
	w := tx.Writes()
	for k, numbers := range groups {
		w.Guard(tx.NewRaw(
			"UPDATE batch_rows SET state = ?, outcome = ?, cause = ?, at = ? WHERE batch_id = ? AND number IN (?) AND state IN (?)",
			k.state, k.outcome, k.cause, now, x.ID, bun.List(numbers), bun.List(RowMoves.From(k.state))), len(numbers))
	}
	w.Guard(tx.NewRaw(
		"UPDATE batches SET processed_to = ?, steps = steps + 1, result = ?, drift = ?, lease_until = ? WHERE id = ? AND steps = ? AND lease_owner = ? AND state IN (?)",
		next, result, drift, now+lease.Microseconds(), x.ID, x.Steps, b.o.DB.Boot(), bun.List(in)), 1)
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("write a step of a batch: %w", err)
	}
	because := ""
	if failed {
		var err error
		if because, err = failing(ctx, tx, x.ID, all[len(all)-1].Number); err != nil {
			return err
		}
	}
	if because == "" && drifted(x.Planned.Acts(), drift.Sums("")) {
		because = ByDrift
	}
	if because == "" {
		return nil
	}
	y := *x
	y.Result, y.Drift = result, drift
	_, err := b.end(ctx, tx, &y, Stopped, because)
	return err // a batch that was paused meanwhile is stopped by its next step
}
