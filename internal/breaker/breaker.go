// Package breaker is the circuit breaker of a merchant, subscriber or supplier. After enough
// failures the recipient's notifications (or the calls to the supplier) wait, untouched in
// their rows, until one of them has succeeded as a probe.
//
// There is one row per recipient, shared by all nodes and kept over restarts. Nodes work with a
// copy that is at most a second old; changes are made to the row, under its lock. A healthy
// recipient costs nothing: no row is written or read for it.
package breaker

import (
	"math"
	"time"

	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

// State of a breaker.
type State string

// States of a breaker.
const (
	Closed   State = "closed"    // notifications are sent
	Open     State = "open"      // notifications wait
	HalfOpen State = "half_open" // a probe is leased to one node, or to one delivery
)

// Causes of a change, as stored in the history.
const (
	InARow      = "failures_in_a_row"
	FailureRate = "failure_rate"
	ProbeDue    = "probe_due"
	ProbeTaken  = "probe_taken"
	ProbeFailed = "probe_failed"
	ByHand      = "by_hand"
)

// Policy says when a breaker opens, and for how long.
type Policy struct {
	// Failures is how many failures in a row open it.
	Failures int
	// Open is how long it stays open before a probe.
	Open time.Duration
	// RatePercent is the share of failures within Window that also opens it, once the window
	// has MinSamples results; 0 = never.
	RatePercent int
	Window      time.Duration
	MinSamples  int
}

// Result is what one attempt shows about its recipient.
type Result int

// Results. Unclear is an attempt that did not reach the recipient for a reason outside the
// recipient. It proves nothing, but as a probe it keeps the breaker open.
const (
	Succeeded Result = iota
	Failed
	Unclear
)

// Row is a recipient's breaker as stored.
type Row struct {
	bun.BaseModel `bun:"table:breakers,alias:b"`

	OwnerID      int64          `bun:"owner_id,pk"`
	OwnerKind    recipient.Kind `bun:"owner_kind"`
	State        State          `bun:"state"`
	Generation   int64          `bun:"generation"`
	Failures     int64          `bun:"failures"` // in a row
	WindowFrom   int64          `bun:"window_from"`
	WindowOK     int64          `bun:"window_ok"`
	WindowFailed int64          `bun:"window_failed"`
	ByHand       bool           `bun:"by_hand"` // opened by an operator: open until an operator closes it
	Cause        string         `bun:"cause"`
	ChangedAt    int64          `bun:"changed_at"`
	OpenUntil    int64          `bun:"open_until"`
	ProbeOwner   int64          `bun:"probe_owner"`
	ProbeUntil   int64          `bun:"probe_until"`
	UpdatedAt    int64          `bun:"updated_at"`
	// ProbeDelivery is the delivery that an operator chose as the probe; 0 = any. It is stored
	// in breaker_probes.
	ProbeDelivery int64 `bun:"probe_delivery,scanonly"`
	// FailedProbes counts the probes that this node has seen fail since the breaker opened.
	FailedProbes int `bun:"-"`
}

// Change is one change of state, as stored in the history.
type Change struct {
	bun.BaseModel `bun:"table:breaker_history,alias:bh"`

	ID         int64          `bun:"id,pk"`
	OwnerID    int64          `bun:"owner_id"`
	OwnerKind  recipient.Kind `bun:"owner_kind"`
	Generation int64          `bun:"generation"`
	From       State          `bun:"from_state"`
	To         State          `bun:"to_state"`
	Cause      string         `bun:"cause"`
	Failures   int64          `bun:"failures"`
	Actor      string         `bun:"actor"`
	Reason     string         `bun:"reason"`
	At         int64          `bun:"at"`
	AlertedAt  *int64         `bun:"alerted_at"`
}

// fold adds the result of an attempt that began under the given generation, and returns the
// change of state, if any.
func (r *Row) fold(now, generation int64, res Result, p Policy) *Change {
	// Generation 0: the attempt began while this node's copy had no row. The recipient was
	// healthy, perhaps for so long that its closed row had left the copy.
	if generation != r.Generation && (generation != 0 || r.State != Closed) {
		return nil
	}
	switch r.State {
	case HalfOpen:
		if res == Succeeded {
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
	if res == Succeeded {
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
	case p.RatePercent > 0 && all >= int64(p.MinSamples) && r.WindowFailed*100 >= all*int64(p.RatePercent):
		return r.move(now, Open, FailureRate, p)
	}
	return nil
}

// roll begins a new window if the last one has ended.
func (r *Row) roll(now int64, p Policy) {
	if now-r.WindowFrom > p.Window.Microseconds() {
		r.WindowFrom, r.WindowOK, r.WindowFailed = now, 0, 0
	}
}

// move changes the state. The failures stay until it closes, because they are the reason.
func (r *Row) move(now int64, to State, cause string, p Policy) *Change {
	c := &Change{OwnerID: r.OwnerID, OwnerKind: r.OwnerKind, From: r.State, To: to, Cause: cause, Failures: r.Failures, At: now}
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

// Gate is what a breaker currently allows.
type Gate struct {
	// Flow allows notifications: PerSecond of them on each node while the breaker has just
	// closed; 0 = unlimited.
	Flow      bool
	PerSecond float64
	// Probe allows one notification: on the node that has leased the probe or, with Delivery,
	// that delivery on any node.
	Probe    bool
	Delivery int64
	// Due means that nothing is allowed yet, but a probe may be leased.
	Due bool
	// Generation is that of attempts that begin under this gate.
	Generation int64
}

// Shut reports that nothing may be sent and no probe may be leased yet.
func (g Gate) Shut() bool { return !g.Flow && !g.Probe && !g.Due }

// Parked notifications are released slowly at first: the rate doubles from releaseFirst every
// releaseStep and is unlimited after releaseTime.
const (
	releaseFirst = 10.0 // notifications per second and node
	releaseStep  = 2 * time.Second
	releaseTime  = 20 * time.Second
)

// Gate returns what the breaker allows at the time now (Unix µs, the database's clock) on the
// node of the given boot. A nil row means a healthy recipient.
func (r *Row) Gate(now, boot int64) Gate {
	if r == nil {
		return Gate{Flow: true}
	}
	g := Gate{Generation: r.Generation}
	switch r.State {
	case Closed:
		g.Flow, g.PerSecond = true, r.releaseRate(now)
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

func (r *Row) releaseRate(now int64) float64 {
	since := time.Duration(now-r.ChangedAt) * time.Microsecond
	if r.Cause == "" || since >= releaseTime || since < 0 {
		return 0
	}
	return math.Ldexp(releaseFirst, int(since/releaseStep))
}

// Owner returns whose breaker it is.
func (r *Row) Owner() recipient.Recipient {
	return recipient.Recipient{Kind: r.OwnerKind, ID: r.OwnerID}
}

// Tripped reports whether the breaker is open or half open. Whether that parks the recipient's
// notifications is up to notify.IsParked.
func (r *Row) Tripped() bool { return r != nil && r.State != Closed }
