package alert

import (
	"context"
	"errors"
	"sync"
	"time"
)

// directApart is the least time between two direct messages of one state: a
// database that comes and goes must not ring all night.
const directApart = 10 * time.Minute

// directHold is how long trouble must last before it is told past the database: a
// restart of the database is no news.
const directHold = 20 * time.Second

// Direct tells people past the database, of the database itself. Nothing is kept:
// what does not arrive is tried again while the trouble lasts.
type Direct struct {
	targets []Target
	style   Style
	now     func() time.Time

	mu    sync.Mutex
	since time.Time // since when there is trouble, zero = there is none
	told  bool
	last  time.Time
}

// NewDirect returns a Direct.
func NewDirect(targets []Target, style Style) *Direct {
	return &Direct{targets: targets, style: style, now: time.Now}
}

// Say takes one look's result. It returns an error when no target took the text.
func (d *Direct) Say(ctx context.Context, rule, subject string, trouble bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if !trouble && !d.told {
		d.since = time.Time{}
		return nil
	}
	if trouble && d.since.IsZero() {
		d.since = now
	}
	if trouble && (d.told || now.Sub(d.since) < directHold || !d.last.IsZero() && now.Sub(d.last) < directApart) {
		return nil
	}
	a := Alert{Rule: rule, Subject: subject, State: Firing, Value: 100, OpenedAt: d.since.UnixMicro()}
	if !trouble {
		a.State = Resolved
	}
	title, body := d.style.compose(Rule{Name: rule, Fire: 50}, []Alert{a})
	var failed []error
	arrived := len(d.targets) == 0
	for _, t := range d.targets {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		err := t.Send(ctx, title, body)
		cancel()
		failed, arrived = append(failed, err), arrived || err == nil
	}
	if !arrived {
		return errors.Join(failed...)
	}
	d.told = trouble
	if trouble {
		d.last = now
	} else {
		d.since = time.Time{}
	}
	return nil
}
