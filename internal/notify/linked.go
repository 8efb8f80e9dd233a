package notify

import (
	"slices"
	"time"

	"backstop/internal/recipient"
)

// Linked is an optional ability of the channel to which merchants connect: it returns
// which merchants it can notify from this node.
type Linked interface {
	Linked(merchantID int64) bool
	Connected() []int64
}

// How long (µs) a row of a merchant that must connect is left to the node with the
// connection.
const (
	// afterIdle is for a merchant that was not notified of anything within this time.
	// Then any node tries: without a connection anywhere, the attempt fails and counts,
	// and the schedule goes on to an exception.
	afterIdle = int64(time.Minute / time.Microsecond)
	// afterBusy is for one that was: it has a backlog, and a node without the connection
	// would only use up attempts of what waits. It ends because the last success may have
	// been over another channel.
	afterBusy = 50 * afterIdle
)

// within limits a query for deliveries to the rows that a node with workers should
// send, and withinLinked to those of one without. Their parameters are withinArgs, of
// the merchants that are linked to it.
const (
	within = "(channel <> ? OR recipient_id IN (?) OR next_at <= ? OR (next_at <= ? AND NOT EXISTS" +
		" (SELECT 1 FROM report_recipients AS r WHERE r.recipient_id = deliveries.recipient_id AND r.last_ok_at > ?)))"
	withinLinked = "(channel = ? AND recipient_id IN (?))"
)

// links is which merchants are connected to this node.
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
	return []any{Websocket, linked, now - afterBusy, now - afterIdle, now - afterIdle}
}

// mine reports whether this node may send over a channel to a recipient now, or should
// leave that to another.
func (l links) mine(to recipient.Recipient, channel string) bool {
	if channel != Websocket {
		return !l.only
	}
	return l.hub != nil && l.hub.Linked(to.ID)
}

// any reports whether anything could be sent from here.
func (l links) any() bool { return !l.only || l.hub != nil && len(l.hub.Connected()) > 0 }

// of returns those of the ids whose merchants are connected to this node, each once.
func (l links) of(ids []int64) []int64 {
	here := []int64{}
	for _, id := range ids {
		if l.hub != nil && !slices.Contains(here, id) && l.hub.Linked(id) {
			here = append(here, id)
		}
	}
	return here
}
