package notify

import (
	"slices"
	"time"
)

// Linked is an optional ability of the channel to which merchants connect: it says
// whom it can notify from this node.
type Linked interface {
	Linked(merchantID int64) bool
	Connected() []int64
}

// How long (µs) a row of a merchant that must connect is left to the node that it
// is connected to.
const (
	// alone is for one that nobody notifies. After it anybody tries: where nobody has
	// the connection, the attempt says so, counts, and the schedule goes on to the
	// exception desk.
	alone = int64(time.Minute / time.Microsecond)
	// busy is for one that was notified of something within that minute: it has a line,
	// and who has no connection would only use up attempts of what waits in it. Whether
	// it was notified over its connection is not asked, hence an end to it.
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

// links is who is connected to this node.
type links struct {
	hub  Linked // nil = the channel is not part of this program
	only bool   // of a process without workers
}

func newLinks(o Options) links {
	hub, _ := o.Channels[Websocket].(Linked)
	return links{hub, o.LinkedOnly}
}

func (l links) within() string {
	if l.only {
		return withinLinked
	}
	return within
}

func (l links) withinArgs(linked any, now int64) []any {
	if l.only {
		return []any{Websocket, linked}
	}
	return []any{Websocket, linked, now - busy, now - alone, now - alone}
}

// mine says whether this node may send over a channel to a merchant now, or should
// leave that to another.
func (l links) mine(merchantID int64, channel string) bool {
	if channel != Websocket {
		return !l.only
	}
	return l.hub != nil && l.hub.Linked(merchantID)
}

// any says whether anything could be sent from here.
func (l links) any() bool { return !l.only || l.hub != nil && len(l.hub.Connected()) > 0 }

// of are those of the merchants who are connected to this node.
func (l links) of(merchants []int64) []int64 {
	here := []int64{0} // nobody: a list of values must not be empty
	if l.hub == nil {
		return here
	}
	for _, id := range merchants {
		if !slices.Contains(here, id) && l.hub.Linked(id) {
			here = append(here, id)
		}
	}
	return here
}
