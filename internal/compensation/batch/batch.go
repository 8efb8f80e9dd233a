// Package batch sends many notifications again. What would be done is frozen and
// shown first (a plan); then it is done in bounded steps, each of which looks at
// its notifications anew, and survives the end of the process between two steps.
package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/console"
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

// Outcomes of a dry run.
const (
	Send    Outcome = "send"
	Waits   Outcome = "waits"   // it is or becomes due, and waits for its merchant's breaker
	Final   Outcome = "final"   // the merchant knows, or gave no address; or it is a ping
	Blocked Outcome = "blocked" // it is on its way already
)

// Outcomes are all of them, as they are shown.
var Outcomes = []Outcome{Send, Waits, Final, Blocked}

// What came of the notifications that a run has taken up, by what is stored of them.
const (
	Notified Outcome = "notified"
	Refused  Outcome = "refused" // its last attempt failed
	Waiting  Outcome = "waiting" // for its turn, an attempt's end or a breaker
)

// Results are all of them, as they are shown.
var Results = []Outcome{Notified, Refused, Waiting}

// States of a plan, see Moves.
const (
	Planned = "planned"
	Running = "running"
	Done    = "done"
	Stopped = "stopped" // the amount was another one than was shown
)

// Tally is how many notifications, and how much money by currency, came to which
// end.
type Tally map[Outcome][]report.Sum

// Count is how many notifications came to one of some ends.
func (t Tally) Count(of ...Outcome) (n int64) {
	for _, s := range t.Sums(of...) {
		n += s.Orders
	}
	return n
}

// Sums are the notifications that came to one of some ends, and their money, by
// currency.
func (t Tally) Sums(of ...Outcome) []report.Sum {
	all := Tally{}
	for _, o := range of {
		for _, s := range t[o] {
			all.plus("", s)
		}
	}
	slices.SortFunc(all[""], func(a, b report.Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	return all[""]
}

func (t Tally) add(o Outcome, currency string, minor int64) {
	t.plus(o, report.Sum{Currency: currency, Orders: 1, Minor: minor})
}

func (t Tally) plus(o Outcome, more report.Sum) {
	for i := range t[o] {
		if s := &t[o][i]; s.Currency == more.Currency {
			s.Orders, s.Minor = s.Orders+more.Orders, s.Minor+more.Minor
			return
		}
	}
	t[o] = append(t[o], more)
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

	IDs           []int64 `bun:"-"` // of those to be sent, or to wait, oldest first
	Shown, Result Tally   `bun:"-"`
}

// judge says what a plan does with a notification as it stands. A ping is never
// sent again: nobody waits for its answer any more.
func judge(book *console.Book, x *notify.Delivery) Outcome {
	switch {
	case x.EventType == notify.Ping, x.Status == notify.Delivered, x.Status == notify.Skipped:
		return Final
	case x.Status == notify.Sending:
		return Blocked
	case book.WouldWait(x):
		return Waits
	case x.Status == notify.Queued:
		return Blocked
	}
	return Send
}

// Now is what came of the notifications that the run has taken up, as they stand.
func (p *Plan) Now(ctx context.Context, d *db.DB, book *console.Book) (Tally, error) {
	all, now := Tally{}, d.Now()
	ids := p.IDs[:min(int(p.Next), len(p.IDs))]
	if len(ids) == 0 {
		return all, nil
	}
	rows, err := book.Matching(ctx, console.DeliveryFilter{}, ids, Most)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		o, x := Waiting, &rows[i]
		switch {
		case x.Status == notify.Delivered:
			o = Notified
		case x.Status == notify.Exhausted, x.Status == notify.RetryWait && *x.NextAt > now: // it became due at once, and was tried since
			o = Refused
		}
		all.add(o, x.Currency, x.Amount)
	}
	return all, nil
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
		o := judge(book, &r.Delivery)
		p.Shown.add(o, r.Currency, r.Amount)
		if o == Send || o == Waits {
			p.IDs = append(p.IDs, r.ID)
		}
	}
	if len(p.Shown) == 0 {
		return nil, ErrNothing
	}
	p.Deliveries, p.Planned, p.Done = text(p.IDs), text(p.Shown), text(p.Result)
	return p, d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
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
