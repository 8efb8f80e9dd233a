package notify

import (
	"context"
	"slices"

	"backstop/internal/base/work"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/recipient"
)

// gates determines what a recipient's lane may do on this node, from its breaker, its settings
// and its connection.
type gates struct {
	o     *Options
	links links
}

// lane returns the gate of a lane, which is a recipient's id.
func (g *gates) lane(lane int64) work.Gate {
	directory := g.o.Directory()
	to := directory.RecipientOf(lane)
	b := g.breaker(to)
	x := work.Gate{
		Open: b.Flow, Probe: b.Probe, Lease: b.Due && g.mayProbe(to), Only: b.Delivery, NodeRate: b.PerSecond,
		Epoch: b.Generation,
	}
	if m := directory.ByID(lane); m != nil {
		x.Max, x.PerSecond = m.Settings.MaxInFlight, m.Settings.RatePerSecond
	}
	if g.o.paused() || g.o.LinkedOnly && !g.links.mine(to, Websocket) {
		x.Open, x.Probe, x.Lease = false, false, false
	}
	return x
}

// breaker returns what a recipient's breaker allows; everything, if it does not park. Nothing
// is sent while the settings cannot be read: the rows wait.
func (g *gates) breaker(to recipient.Recipient) breaker.Gate {
	b, directory := g.o.Breakers.Gate(to), g.o.Directory()
	if directory.Broken(to.ID) {
		return breaker.Gate{Generation: b.Generation}
	}
	if !b.Flow && !IsParked(g.o.Breakers, directory, to) {
		return breaker.Gate{Flow: true, Generation: b.Generation}
	}
	return b
}

// mayProbe leaves the probe of a merchant that connects to us to the node with the connection,
// as long as rows are left to that node: on another node the probe would fail, and the breaker
// would stay open for another round.
func (g *gates) mayProbe(to recipient.Recipient) bool {
	m := g.o.Directory().ByID(to.ID)
	connects := m != nil && slices.ContainsFunc(m.Endpoints, func(e merchant.Endpoint) bool {
		return e.Channel == Websocket &&
			!e.Disabled
	})
	if !connects || g.links.hub == nil || g.links.hub.Linked(to.ID) {
		return true
	}
	r := g.o.Breakers.Of(to)
	return r == nil || g.o.DB.Now()-max(r.OpenUntil, r.ProbeUntil) > afterIdle
}

// probe reports whether a slot's notification may be tried although the breaker is not closed:
// it leases the probe, unless this node already has it.
func (g *gates) probe(ctx context.Context, x *work.Slot) (bool, error) {
	to := g.o.Directory().RecipientOf(x.Lane)
	b := g.breaker(to)
	if b.Due {
		if mine, err := g.o.Breakers.LeaseProbe(ctx, to, g.o.Timeout); err != nil || !mine {
			return false, err
		}
		b = g.breaker(to)
		x.Epoch = b.Generation
	}
	return b.Flow || b.Probe && (b.Delivery == 0 || b.Delivery == x.ID), nil
}
