package notify

import (
	"slices"
	"time"

	"backstop/internal/merchant"
)

// Linked is an optional ability of the channel to which merchants connect: it says
// whom it can tell from this node.
type Linked interface {
	Linked(merchantID int64) bool
	Connected() []int64
}

// How long (µs) a row of a merchant that must connect is left to the node that it
// is connected to.
const (
	// alone is for one that nobody tells. After it anybody tries: where nobody has
	// the connection, the attempt says so, counts, and the schedule goes on to the
	// exception desk.
	alone = int64(time.Minute / time.Microsecond)
	// busy is for one that was told something within that minute: it has a line, and
	// who has no connection would only use up attempts of what stands in it. Whether
	// it was told over its connection is not asked, hence an end to it.
	busy = 50 * alone
)

// within limits a query for deliveries to the rows that a node with workers should
// send, and withinLinked to those of one without. Their parameters are withinArgs, of
// the merchants that are linked to it.
const (
	within = "(channel <> ? OR merchant_id IN (?) OR next_at <= ? OR (next_at <= ? AND NOT EXISTS" +
		" (SELECT 1 FROM report_merchants AS r WHERE r.merchant_id = deliveries.merchant_id AND r.last_ok_at > ?)))"
	withinLinked = "(channel = ? AND merchant_id IN (?))"
)

func (d *Dispatcher) within() string {
	if d.o.LinkedOnly {
		return withinLinked
	}
	return within
}

func (d *Dispatcher) withinArgs(linked any, now int64) []any {
	if d.o.LinkedOnly {
		return []any{Websocket, linked}
	}
	return []any{Websocket, linked, now - busy, now - alone, now - alone}
}

// mine says whether this node may send over a channel to a merchant now, or should
// leave that to another.
func (d *Dispatcher) mine(merchantID int64, channel string) bool {
	if channel != Websocket {
		return !d.o.LinkedOnly
	}
	return len(d.linked([]int64{merchantID})) > 1
}

// HasWork says whether anything could be sent from here: a node without workers looks
// for rows only while somebody is connected to it.
func (d *Dispatcher) HasWork() bool {
	hub, ok := d.o.Channels[Websocket].(Linked)
	return !d.o.LinkedOnly || ok && len(hub.Connected()) > 0
}

// linked are those of the merchants who are connected to this node.
func (d *Dispatcher) linked(merchants []int64) []int64 {
	here := []int64{0} // nobody: a list of values must not be empty
	hub, ok := d.o.Channels[Websocket].(Linked)
	if !ok {
		return here
	}
	for _, id := range merchants {
		if !slices.Contains(here, id) && hub.Linked(id) {
			here = append(here, id)
		}
	}
	return here
}

// mayProbe leaves the probe of a merchant that connects to the node that it is
// connected to, for as long as rows are: any other would find nobody, and the
// breaker stay open for another round.
func (d *Dispatcher) mayProbe(merchantID int64) bool {
	m, hub := d.o.Book().ByID(merchantID), d.o.Channels[Websocket]
	connects := m != nil && slices.ContainsFunc(m.Endpoints, func(e merchant.Endpoint) bool { return e.Channel == Websocket && !e.Disabled })
	if l, ok := hub.(Linked); !connects || !ok || l.Linked(merchantID) {
		return true
	}
	r := d.o.Breakers.Of(merchantID)
	return r == nil || d.o.DB.Now()-max(r.OpenUntil, r.ProbeUntil) > alone
}
