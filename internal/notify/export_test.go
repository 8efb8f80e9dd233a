package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/work"
)

// ResendAll makes a set of notifications due at once.
var ResendAll = resendAll

// Resend makes one notification due at once.
func Resend(ctx context.Context, tx db.Tx, d *db.DB, deliveryID int64) (queue.Nudge, error) {
	nudges, refused, err := resendAll(ctx, tx, d, map[int64]Status{deliveryID: ""})
	if err = errors.Join(err, refused[deliveryID]); err != nil {
		return queue.Nudge{}, err
	}
	return nudges[0], nil
}

// Left says what a dispatcher still holds once it has been idle for long enough to
// forget everybody: empty where that is nothing.
func Left(d *Dispatcher) string {
	d.slots.Age(d.o.DB.Now() + (2 * time.Minute).Microseconds())
	s, pending := d.slots.Stats(), d.worker.Pending()
	if s == (work.Stats{}) && pending == 0 {
		return ""
	}
	return fmt.Sprintf("%+v, %d pending", s, pending)
}

// Reading reports whether a recipient's due rows are being read, or are about to be.
func Reading(d *Dispatcher, recipient int64) bool { return d.slots.Lane(recipient).Reading }

// InFlight is how many attempts run on this node.
func (d *Dispatcher) InFlight() int {
	s := d.slots.Stats()
	return s.Quick + s.Slow
}

// Paced says whether a merchant's lane waits for a token.
func Paced(d *Dispatcher, merchantID int64) bool { return d.slots.Lane(merchantID).Paced }

// Bucket is a merchant's rate on this node and what may go at once.
func Bucket(d *Dispatcher, merchantID int64) (perSecond float64, burst int) {
	l := d.slots.Lane(merchantID)
	return l.PerSecond, l.Burst
}

// FindTime is how long a ping waits to be found.
const FindTime = findTime

// Elapse pretends that so much time has passed since the dispatcher met its faults.
func Elapse(d *Dispatcher, by time.Duration) {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	for k, f := range d.faults.of {
		f.at = f.at.Add(-by)
		d.faults.of[k] = f
	}
	for a, until := range d.faults.passOver {
		d.faults.passOver[a] = until.Add(-by)
	}
}

// SkipFor is how long a node skips what it could not send.
const SkipFor = skipFor

// IsSlow reports whether this node notifies a recipient in the slow pool.
func (d *Dispatcher) IsSlow(id int64) bool { return d.slots.Lane(id).Slow }

// CommitTwice makes a node's attempt at deliveries that are due, and commits its results in two
// transactions, as when the first commit was not confirmed. A naive repeat stores what is not its
// claim any more without looking for it.
func CommitTwice(ctx context.Context, d *Dispatcher, naive bool, class Class, nudges ...queue.Nudge) error {
	slots := make([]work.Slot, len(nudges))
	for i, n := range nudges {
		slots[i] = work.Slot{ID: n.Delivery, Lane: n.Recipient}
	}
	s := &source{&d.o, d.links, d.gates, d.faults}
	now := d.o.DB.Now()
	claims, err := s.claimEach(ctx, slots, work.Lease{Owner: d.o.DB.Boot(), Until: now + time.Minute.Microseconds()})
	if err != nil || len(claims) != len(nudges) {
		return fmt.Errorf("%d of %d claimed: %w", len(claims), len(nudges), err)
	}
	results := make([]*outcome, len(claims))
	for i, c := range claims {
		p := d.sender.plan(d.o.Directory().ByID(c.Row.RecipientID), c.Row.claimed)
		results[i] = judge(d.o.DB, c.Row.claimed, p, now, now, Result{Class: class, Took: time.Millisecond})
	}
	for try := range 2 {
		err := d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			if try == 0 || !naive {
				_, err := d.results.commit(ctx, tx, results)
				return err
			}
			attempts := make([]Attempt, len(results))
			for i, o := range results {
				attempts[i] = o.attempt
			}
			_, err := tx.NewInsert().Model(&attempts).On("CONFLICT (id) DO NOTHING").Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenSmallAcks opens files of a small size.
func OpenSmallAcks(folder string, limit int64) (*Acks, error) {
	return openAcks(folder, limit, slog.New(slog.DiscardHandler))
}

// Note remembers an acknowledged attempt.
func Note(a *Acks, x Attempt) { a.note([]*outcome{{attempt: x}}) }

// Earlier are the deliveries that an earlier life has left.
func Earlier(a *Acks) map[int64]bool {
	all := map[int64]bool{}
	for id := range a.earlier {
		all[id] = true
	}
	return all
}

// AddressWaits counts the addresses that this node leaves alone because they asked for it.
func AddressWaits(d *Dispatcher) int {
	d.health.mu.Lock()
	defer d.health.mu.Unlock()
	return len(d.health.waits)
}

// ForgetWaits makes a node forget that addresses asked it to wait.
func ForgetWaits(d *Dispatcher) {
	d.health.mu.Lock()
	defer d.health.mu.Unlock()
	clear(d.health.waits)
}

// LastAdvance sets when the dispatcher's node last knew of an advance of claims_checked (Unix µs).
func LastAdvance(d *Dispatcher, at int64) { d.lost.checkedAt = at }

// HealthWrites is how many rows the success of an endpoint writes that has failed before: in a
// transaction, in its repeat, and after its commit.
func HealthWrites(now int64) (first, repeat, after int) {
	won := []*outcome{{attempt: Attempt{Class: OK}, endpoint: "a"}}
	h := &health{failing: map[endpointKey]condition{won[0].endpointKey(): {unhealthyAfter, 0}}, okAt: map[endpointKey]int64{}}
	rows, _ := h.note(won, now)
	again, noted := h.note(won, now)
	noted()
	last, _ := h.note(won, now+1)
	return len(rows), len(again), len(last)
}
