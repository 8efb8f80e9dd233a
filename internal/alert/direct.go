package alert

import (
	"context"
	"errors"
	"sync"
	"time"
)

// directApart is the minimum time between two direct messages about an outage: a database that
// keeps failing must not send messages all night.
const directApart = 10 * time.Minute

// directHold is how long an outage must last before a direct message: a database restart needs
// none.
const directHold = 20 * time.Second

// Direct sends alerts about the database without using it. Nothing is stored; a message that
// does not arrive is sent again while the outage lasts.
type Direct struct {
	targets []Target
	style   Style
	now     func() time.Time

	mu       sync.Mutex
	since    time.Time // start of the outage; zero = there is none
	notified bool      // of this outage
	last     time.Time // last message about an outage
}

// NewDirect returns a Direct.
func NewDirect(targets []Target, style Style) *Direct {
	return &Direct{targets: targets, style: style, now: time.Now}
}

// Observe takes the result of one check. It returns an error if no target accepted a message.
func (d *Direct) Observe(ctx context.Context, rule, subject string, trouble bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if !trouble && !d.notified {
		d.since = time.Time{}
		return nil
	}
	if trouble && d.since.IsZero() {
		d.since = now
	}
	if trouble && (d.notified || now.Sub(d.since) < directHold || !d.last.IsZero() && now.Sub(d.last) < directApart) {
		return nil
	}
	a := Alert{Rule: rule, Subject: subject, State: Firing, Value: 100, OpenedAt: d.since.UnixMicro()}
	if !trouble {
		a.State = Resolved
	}
	var failed []error
	arrived := len(d.targets) == 0
	for _, t := range d.targets {
		title, body := d.style.message(t.Name(), Rule{Name: rule, Fire: 50}, []Alert{a})
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		err := t.Send(ctx, title, body)
		cancel()
		failed, arrived = append(failed, err), arrived || err == nil
	}
	if !arrived {
		return errors.Join(failed...)
	}
	d.notified = trouble
	if trouble {
		d.last = now
	} else {
		d.since = time.Time{}
	}
	return nil
}
