package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Start begins what was planned, or goes on with it after an interruption.
// Errors: ErrNotFound, ErrExpired.
func Start(ctx context.Context, tx db.Tx, d *db.DB, id int64, by string) (*Plan, error) {
	p, err := Find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if p.State == Running && p.MadeBy == by {
		return p, nil
	}
	res, err := tx.NewRaw("UPDATE plans SET state = ? WHERE id = ? AND state IN (?) AND made_by = ? AND expires_at > ?",
		Running, id, bun.List(Moves.From(Running)), by, d.Now()).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("start a plan: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return nil, errors.Join(ErrExpired, err)
	}
	p.State = Running
	return p, nil
}

// tries is how often a step is tried against the dispatcher's own transactions.
const tries = 3

// Step takes up the next notifications of a running plan in one transaction, and
// returns whom to nudge and whether there is more to do. Two at once do not do
// the same step twice.
func Step(ctx context.Context, d *db.DB, book *console.Book, id int64) (nudges []queue.Nudge, more bool, err error) {
	for range tries {
		p, err := Find(ctx, d.Read, id)
		if err != nil || p.State != Running {
			return nil, false, err
		}
		if len(p.rest()) == 0 {
			return nil, false, finish(ctx, d, p, Done)
		}
		now, err := book.Matching(ctx, console.DeliveryFilter{}, p.rest(), Most)
		if err != nil {
			return nil, false, err
		}
		if p.drifted(book, now) {
			return nil, false, finish(ctx, d, p, Stopped)
		}
		nudges, err = p.step(ctx, d, book, now)
		if db.IsConflict(err) {
			continue
		}
		return nudges, true, err
	}
	return nil, true, db.ErrBusy
}

func (p *Plan) rest() []int64 { return p.IDs[min(int(p.Next), len(p.IDs)):] }

// driftParts: a plan stops where the amount differs by more than one part in so
// many.
const driftParts = 100

// drifted says whether what was taken up and what is not over yet come to another
// amount than was shown, in any currency. What goes on by itself meanwhile, as a breaker
// has closed, changes none.
func (p *Plan) drifted(book *console.Book, now []console.Delivery) bool {
	all := Tally{Send: p.Result.Sums(Send, Waits, Blocked)}
	for i := range now {
		if r := &now[i]; judge(book, &r.Delivery) != Final {
			all.add(Send, r.Currency, r.Amount)
		}
	}
	planned := p.Shown.Sums(Send, Waits)
	minor := func(sums []report.Sum, currency string) int64 {
		for _, s := range sums {
			if s.Currency == currency {
				return s.Minor
			}
		}
		return 0
	}
	for _, s := range append(slices.Clone(planned), all[Send]...) {
		shown, is := minor(planned, s.Currency), minor(all[Send], s.Currency)
		if max(shown-is, is-shown) > shown/driftParts {
			return true
		}
	}
	return false
}

// step makes the next notifications due. now is how the rest stands; each of them is
// judged again under its lock. What a breaker holds back is due all the same, and goes
// out when it closes; what was never tried is due already.
func (p *Plan) step(ctx context.Context, d *db.DB, book *console.Book, now []console.Delivery) (nudges []queue.Nudge, err error) {
	todo := p.rest()
	todo = todo[:min(len(todo), stepRows)]
	at := map[int64]console.Delivery{}
	for _, r := range now {
		at[r.ID] = r
	}
	result := Tally{}
	for o, sums := range p.Result {
		result[o] = append([]report.Sum{}, sums...)
	}
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var locked []notify.Delivery
		q := d.ForUpdate(tx.NewSelect().Model(&locked).Column("id", "merchant_id", "url", "status", "event_type").Where("d.id IN (?)", bun.List(todo)).OrderExpr("d.id"))
		if err := q.Scan(ctx); err != nil {
			return fmt.Errorf("lock the notifications of a step: %w", err)
		}
		outcome, queued := map[int64]Outcome{}, map[int64]bool{}
		for i := range locked {
			outcome[locked[i].ID], queued[locked[i].ID] = judge(book, &locked[i]), locked[i].Status == notify.Queued
		}
		for _, id := range todo {
			r := at[id]
			o, there := outcome[id]
			if !there {
				o = Final // it is past its time and gone
			}
			if (o == Send || o == Waits) && !queued[id] {
				n, err := notify.Resend(ctx, tx, d, id)
				switch {
				case errors.Is(err, notify.ErrSending):
					o = Blocked
				case err != nil:
					return err
				default:
					nudges = append(nudges, n)
				}
			}
			result.add(o, r.Currency, r.Amount)
		}
		res, err := tx.NewRaw("UPDATE plans SET next = ?, done = ? WHERE id = ? AND next = ? AND state = ?",
			p.Next+int64(len(todo)), text(result), p.ID, p.Next, Running).Exec(ctx)
		if err != nil {
			return fmt.Errorf("keep how far a plan is: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(db.ErrStale, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nudges, nil
}

func finish(ctx context.Context, d *db.DB, p *Plan, state string) error {
	_, err := d.NewRaw("UPDATE plans SET state = ?, finished_at = ? WHERE id = ? AND state IN (?) AND next = ?", state, d.Now(), p.ID, bun.List(Moves.From(state)), p.Next).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end a plan: %w", err)
	}
	return nil
}
