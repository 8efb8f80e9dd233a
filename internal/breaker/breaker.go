// Package breaker stops telling a merchant that cannot be told: after enough
// failures its notifications wait, untouched in their rows, until one of them has
// been tried and taken.
//
// There is one row per merchant, shared by all nodes and by their restarts. Nodes
// work with a copy that is at most a second old; every change is made on the row,
// under its lock. A merchant that is well costs nothing: it has no row, and none
// is read for it.
package breaker

import (
	"time"

	"github.com/uptrace/bun"
)

// State of a merchant's breaker.
type State string

// States of a breaker.
const (
	Closed   State = "closed"    // notifications flow
	Open     State = "open"      // notifications wait
	HalfOpen State = "half_open" // one of them is tried, by one node
)

// Causes of a change, as kept in the history.
const (
	InARow      = "failures_in_a_row"
	FailureRate = "failure_rate"
	ProbeDue    = "probe_due"
	ProbeTaken  = "probe_taken"
	ProbeFailed = "probe_failed"
	ByHand      = "by_hand"
)

// Policy says when a merchant's breaker opens, and for how long.
type Policy struct {
	// Failures in a row open it.
	Failures int
	// Open is how long it stays open before one notification is tried.
	Open time.Duration
	// RatePercent of failures within Window opens it too, once there are Least
	// results in the window; 0 = never.
	RatePercent int
	Window      time.Duration
	Least       int
}

// Result is what one attempt tells about its merchant.
type Result int

// Results. Unclear is an attempt that never reached the merchant through no fault
// of its own: it proves nothing, but a probe that proves nothing keeps it open.
const (
	Taken Result = iota
	Failed
	Unclear
)

// Row is a merchant's breaker as stored.
type Row struct {
	bun.BaseModel `bun:"table:breakers,alias:b"`

	MerchantID   int64  `bun:"merchant_id,pk"`
	State        State  `bun:"state"`
	Generation   int64  `bun:"generation"`
	Failures     int64  `bun:"failures"` // in a row
	WindowFrom   int64  `bun:"window_from"`
	WindowOK     int64  `bun:"window_ok"`
	WindowFailed int64  `bun:"window_failed"`
	ByHand       bool   `bun:"by_hand"` // opened by a person: stays so until closed by one
	Cause        string `bun:"cause"`
	ChangedAt    int64  `bun:"changed_at"`
	OpenUntil    int64  `bun:"open_until"`
	ProbeOwner   int64  `bun:"probe_owner"`
	ProbeUntil   int64  `bun:"probe_until"`
	UpdatedAt    int64  `bun:"updated_at"`
	// ProbeDelivery is the delivery that a person wants to be the probe; 0 = any. It
	// is kept in breaker_probes, which nodes of earlier versions do not read.
	ProbeDelivery int64 `bun:"probe_delivery,scanonly"`
}

// Change is one change of state, kept for people.
type Change struct {
	bun.BaseModel `bun:"table:breaker_history,alias:bh"`

	ID         int64  `bun:"id,pk"`
	MerchantID int64  `bun:"merchant_id"`
	Generation int64  `bun:"generation"`
	From       State  `bun:"from_state"`
	To         State  `bun:"to_state"`
	Cause      string `bun:"cause"`
	Failures   int64  `bun:"failures"`
	Actor      string `bun:"actor"`
	Reason     string `bun:"reason"`
	At         int64  `bun:"at"`
	AlertedAt  *int64 `bun:"alerted_at"`
}

// fold takes one result of an attempt that began under the given generation and
// says what changed, if anything.
func (r *Row) fold(now, generation int64, res Result, p Policy) *Change {
	// Without a generation it began while no breaker was known: the merchant was
	// well, perhaps for so long that its closed row had left the copy.
	if generation != r.Generation && (generation != 0 || r.State != Closed) {
		return nil
	}
	switch r.State {
	case HalfOpen:
		if res == Taken {
			return r.move(now, Closed, ProbeTaken, p)
		}
		return r.move(now, Open, ProbeFailed, p)
	case Open:
		return nil
	}
	if res == Unclear {
		return nil
	}
	r.roll(now, p)
	if res == Taken {
		r.Failures = 0
		r.WindowOK++
		return nil
	}
	r.Failures++
	r.WindowFailed++
	all := r.WindowOK + r.WindowFailed
	switch {
	case r.Failures >= int64(p.Failures):
		return r.move(now, Open, InARow, p)
	case p.RatePercent > 0 && all >= int64(p.Least) && r.WindowFailed*100 >= all*int64(p.RatePercent):
		return r.move(now, Open, FailureRate, p)
	}
	return nil
}

// roll begins a new window where the last one is over.
func (r *Row) roll(now int64, p Policy) {
	if now-r.WindowFrom > p.Window.Microseconds() {
		r.WindowFrom, r.WindowOK, r.WindowFailed = now, 0, 0
	}
}

// move changes the state. The failures stay until it closes: they say why.
func (r *Row) move(now int64, to State, cause string, p Policy) *Change {
	c := &Change{MerchantID: r.MerchantID, From: r.State, To: to, Cause: cause, Failures: r.Failures, At: now}
	r.State, r.Cause, r.ChangedAt = to, cause, now
	r.Generation++
	c.Generation = r.Generation
	r.ByHand = false
	r.ProbeOwner, r.ProbeUntil, r.ProbeDelivery, r.OpenUntil = 0, 0, 0, 0
	switch to {
	case Open:
		r.OpenUntil = now + p.Open.Microseconds()
	case Closed:
		r.Failures, r.WindowFrom, r.WindowOK, r.WindowFailed = 0, 0, 0, 0
	}
	return c
}

// Gate is what a merchant's breaker allows right now.
type Gate struct {
	// Flow allows notifications; Release says how fast while it has just closed.
	Flow    bool
	Release Release
	// Probe allows one, for the node that holds the probe, or for every node where it
	// is the one of Delivery: whoever claims that sends it.
	Probe    bool
	Delivery int64
	// Due allows nothing yet: a probe may be leased.
	Due bool
	// Generation belongs to the attempts that begin under this gate.
	Generation int64
}

// Shut says that nothing may be sent, and that nobody may probe yet.
func (g Gate) Shut() bool { return !g.Flow && !g.Probe && !g.Due }

// Release bounds how fast a merchant whose breaker has just closed is told again;
// the zero value bounds nothing.
type Release struct {
	PerSecond float64
}

// What was parked flows again slowly at first: the rate doubles from releaseFirst
// every releaseStep, and after releaseTime nothing holds it back any more.
const (
	releaseFirst = 10.0 // notifications a second and node
	releaseStep  = 2 * time.Second
	releaseTime  = 20 * time.Second
)

// Gate asks at the moment now (Unix µs, the database's clock) on the node of the
// given boot. A nil row belongs to a merchant that is well.
func (r *Row) Gate(now, boot int64) Gate {
	if r == nil {
		return Gate{Flow: true}
	}
	g := Gate{Generation: r.Generation}
	switch r.State {
	case Closed:
		g.Flow, g.Release = true, r.release(now)
	case Open:
		g.Due = !r.ByHand && r.OpenUntil <= now
	case HalfOpen:
		switch {
		case r.ProbeUntil <= now:
			g.Due = true
		case r.ProbeOwner == 0:
			g.Probe, g.Delivery = r.ProbeDelivery != 0, r.ProbeDelivery
		default:
			g.Probe = r.ProbeOwner == boot
		}
	}
	return g
}

func (r *Row) release(now int64) Release {
	since := time.Duration(now-r.ChangedAt) * time.Microsecond
	if r.Cause == "" || since >= releaseTime || since < 0 {
		return Release{}
	}
	rate := releaseFirst
	for at := releaseStep; at <= since; at += releaseStep {
		rate *= 2
	}
	return Release{PerSecond: rate}
}

// Tripped says that it is not closed. Whether it holds back what waits for the
// merchant, notify.IsParked knows.
func (r *Row) Tripped() bool { return r != nil && r.State != Closed }
