// Package batch sends many notifications again. What would be done is frozen and
// shown first (a plan); then it is done in bounded steps, each of which looks at
// its notifications anew, and survives the end of the process between two steps.
package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/console"
	"backstop/internal/db"
	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Limits of a plan.
const (
	// Most is how many notifications one plan may hold: their merchants hear all
	// of them at once.
	Most = 5000
	// expiry is how long what was shown may be acted on.
	expiry = 15 * time.Minute
	// stepRows bounds one transaction.
	stepRows = 500
	// kept is for how long plans can be looked at.
	kept = 30 * 24 * time.Hour
)

// Errors that a caller can act on.
var (
	ErrNothing  = errors.New("nothing matches")
	ErrNotFound = errors.New("no such plan")
	// ErrExpired says that a plan is too old, was run already, or is somebody
	// else's: look again at what would be done.
	ErrExpired = errors.New("the plan cannot be run any more: make a new one")
)

// Outcome is what a plan does, or did, with a notification.
type Outcome string

// Outcomes.
const (
	Send    Outcome = "send"
	Final   Outcome = "final"   // the merchant knows, or gave no address; or it is a ping
	Blocked Outcome = "blocked" // it is on its way already
)

// Outcomes are all of them, as they are shown.
var Outcomes = []Outcome{Send, Final, Blocked}

// States of a plan.
const (
	Planned = "planned"
	Running = "running"
	Done    = "done"
	Stopped = "stopped" // the amount was another one than was shown
)

// Tally is how many notifications, and how much money by currency, came to which
// end.
type Tally map[Outcome][]report.Sum

// Count is how many notifications came to an end.
func (t Tally) Count(o Outcome) (n int64) {
	for _, s := range t[o] {
		n += s.Orders
	}
	return n
}

func (t Tally) add(o Outcome, currency string, minor int64) {
	for i := range t[o] {
		if t[o][i].Currency == currency {
			t[o][i].Orders, t[o][i].Minor = t[o][i].Orders+1, t[o][i].Minor+minor
			return
		}
	}
	t[o] = append(t[o], report.Sum{Currency: currency, Orders: 1, Minor: minor})
}

// Plan is what somebody wants to be done.
type Plan struct {
	bun.BaseModel `bun:"table:plans,alias:pl"`

	ID         int64  `bun:"id,pk"`
	MadeBy     string `bun:"made_by"` // the operator's name
	MadeAt     int64  `bun:"made_at"`
	ExpiresAt  int64  `bun:"expires_at"`
	State      string `bun:"state"`
	Filter     string `bun:"filter"` // the list's address, for people
	Below      int64  `bun:"below"`  // what is made later has a greater id
	Deliveries string `bun:"deliveries"`
	Planned    string `bun:"planned"`
	Done       string `bun:"done"`
	Next       int64  `bun:"next"`
	FinishedAt *int64 `bun:"finished_at"`

	IDs           []int64 `bun:"-"` // of those to be sent, oldest first
	Shown, Result Tally   `bun:"-"`
}

// judge says what a plan does with a notification as it stands. A ping is never
// sent again: nobody waits for its answer any more.
func judge(x *notify.Delivery) Outcome {
	if x.EventType == notify.Ping {
		return Final
	}
	switch x.Status {
	case notify.Exhausted, notify.RetryWait:
		return Send
	case notify.Delivered, notify.Skipped:
		return Final
	}
	return Blocked
}

// Propose freezes what a filter finds, or those of the ids that it finds, and
// writes nothing else. Errors: ErrNothing, console.ErrTooMany.
func Propose(ctx context.Context, d *db.DB, book *console.Book, by, filter string, f console.DeliveryFilter, ids []int64) (*Plan, error) {
	now := d.Now()
	p := &Plan{
		ID: d.NewID(), MadeBy: by, MadeAt: now, ExpiresAt: now + expiry.Microseconds(), State: Planned, Filter: filter,
		IDs: []int64{}, Shown: Tally{}, Result: Tally{},
	}
	if p.Below = p.ID; f.To == 0 || f.To > now {
		f.To = now + time.Second.Microseconds() // ids may run ahead of the clock
	}
	rows, err := book.Matching(ctx, f, ids, Most)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		if r.ID >= p.Below {
			continue
		}
		o := judge(&r.Delivery)
		p.Shown.add(o, r.Currency, r.Amount)
		if o == Send {
			p.IDs = append(p.IDs, r.ID)
		}
	}
	if len(p.Shown) == 0 {
		return nil, ErrNothing
	}
	p.Deliveries, p.Planned, p.Done = text(p.IDs), text(p.Shown), text(p.Result)
	return p, d.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(p).Exec(ctx); err != nil {
			return fmt.Errorf("keep a plan: %w", err)
		}
		_, err := tx.NewRaw("DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE made_at < ? ORDER BY made_at LIMIT 100)", now-kept.Microseconds()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("remove old plans: %w", err)
		}
		return nil
	})
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("batch: " + err.Error()) // numbers and texts only
	}
	return string(raw)
}

// Find reads a plan. Errors: ErrNotFound.
func Find(ctx context.Context, q bun.IDB, id int64) (*Plan, error) {
	var rows []Plan
	if err := q.NewSelect().Model(&rows).Where("pl.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	if len(rows) == 0 {
		return nil, ErrNotFound
	}
	p := &rows[0]
	for from, into := range map[*string]any{&p.Deliveries: &p.IDs, &p.Planned: &p.Shown, &p.Done: &p.Result} {
		if err := json.Unmarshal([]byte(*from), into); err != nil {
			return nil, fmt.Errorf("read plan %d: %w", id, err)
		}
	}
	return p, nil
}
