package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.age(time.Now().Add(2 * laneForget))
	if len(d.lanes)+len(d.known)+len(d.held)+len(d.toClaim)+len(d.toSend)+d.pledged+d.inFlight+d.sent+d.quick.inFlight+d.slow.inFlight == 0 &&
		len(d.quick.ready)+len(d.slow.ready) == 0 {
		return ""
	}
	lanes := ""
	for id, l := range d.lanes {
		lanes += fmt.Sprintf(" %d:%+v", id, *l)
	}
	return fmt.Sprintf("%d known, %d held, %d to claim, %d in flight (quick %d, slow %d), %d unwritten, %d+%d ready, lanes%s",
		len(d.known), len(d.held), len(d.toClaim), d.inFlight, d.quick.inFlight, d.slow.inFlight, d.sent,
		len(d.quick.ready), len(d.slow.ready), lanes)
}

// InFlight is how many attempts run on this node.
func (d *Dispatcher) InFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inFlight
}

// Paced says whether a merchant's lane waits for a token.
func Paced(d *Dispatcher, merchantID int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lane(merchantID).paced
}

// Bucket is a merchant's rate on this node and what may go at once.
func Bucket(d *Dispatcher, merchantID int64) (perSecond float64, burst int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lane(merchantID).limiter
	return float64(l.Limit()), l.Burst()
}

// FindTime is how long a ping waits to be found.
const FindTime = findTime

// Elapse makes it look as if so much time had passed since the dispatcher met its
// faults.
func Elapse(d *Dispatcher, by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, f := range d.faults {
		f.at = f.at.Add(-by)
		d.faults[k] = f
	}
	for a, until := range d.unusable {
		d.unusable[a] = until.Add(-by)
	}
}

// AsideFor is how long a node leaves alone what it could not send.
const AsideFor = asideFor
