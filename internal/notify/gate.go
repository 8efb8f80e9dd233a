package notify

import (
	"context"
	"slices"

	"backstop/internal/base/work"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
)

// gates answers what a merchant's lane may do on this node, out of its breaker, its
// settings and its connection.
type gates struct {
	o     *Options
	links links
}

// lane is the gate of a merchant's lane.
func (g *gates) lane(merchantID int64) work.Gate {
	b := g.breaker(merchantID)
	x := work.Gate{Open: b.Flow, Probe: b.Probe, Ask: b.Due && g.mayProbe(merchantID), Only: b.Delivery, Trickle: b.Release.PerSecond, Epoch: b.Generation}
	if s := g.settings(merchantID); s != nil {
		x.Max, x.PerSecond = s.MaxInFlight, s.RatePerSecond
	}
	if g.o.LinkedOnly && !g.links.mine(merchantID, Websocket) {
		x.Open, x.Probe, x.Ask = false, false, false
	}
	return x
}

// breaker is what a merchant's breaker allows; all, where it does not park. A merchant
// whose row cannot be read is let alone: what is for it waits in its rows.
func (g *gates) breaker(merchantID int64) breaker.Gate {
	b, book := g.o.Breakers.Gate(merchantID), g.o.Book()
	if book.Broken(merchantID) {
		return breaker.Gate{Generation: b.Generation}
	}
	if !b.Flow && !IsParked(g.o.Breakers, book, merchantID) {
		return breaker.Gate{Flow: true, Generation: b.Generation}
	}
	return b
}

// settings returns the merchant's settings; nil where it is gone.
func (g *gates) settings(merchantID int64) *merchant.Settings {
	if m := g.o.Book().ByID(merchantID); m != nil {
		return &m.Settings
	}
	return nil
}

// mayProbe leaves the probe of a merchant that connects to the node that it is
// connected to, for as long as rows are: any other would find nobody, and the
// breaker stay open for another round.
func (g *gates) mayProbe(merchantID int64) bool {
	m := g.o.Book().ByID(merchantID)
	connects := m != nil && slices.ContainsFunc(m.Endpoints, func(e merchant.Endpoint) bool { return e.Channel == Websocket && !e.Disabled })
	if !connects || g.links.hub == nil || g.links.hub.Linked(merchantID) {
		return true
	}
	r := g.o.Breakers.Of(merchantID)
	return r == nil || g.o.DB.Now()-max(r.OpenUntil, r.ProbeUntil) > alone
}

// probe makes sure that the one notification of a slot may be tried although the
// merchant's breaker is not closed: the right to it is leased now, unless this node has
// it.
func (g *gates) probe(ctx context.Context, x *work.Slot) (bool, error) {
	b := g.breaker(x.Lane)
	if b.Due {
		if mine, err := g.o.Breakers.LeaseProbe(ctx, x.Lane, g.o.Timeout); err != nil || !mine {
			return false, err
		}
		b = g.breaker(x.Lane)
		x.Epoch = b.Generation
	}
	return b.Flow || b.Probe && (b.Delivery == 0 || b.Delivery == x.ID), nil
}
