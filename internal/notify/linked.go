package notify

import (
	"slices"
	"time"

	"backstop/internal/recipient"
)

// Linked is implemented by the channel to which merchants connect: it reports which merchants
// this node can notify.
type Linked interface {
	Linked(merchantID int64) bool
	Connected() []int64
}

// How long (µs) a row of a merchant that must connect is left to the node with the connection.
const (
	// afterIdle is for a merchant that received nothing within this time. Then any node tries:
	// without a connection anywhere, the attempt fails and counts, and the schedule leads to an
	// exception.
	afterIdle = int64(time.Minute / time.Microsecond)
	// afterBusy is for a merchant that did receive something: it has a backlog, and a node
	// without the connection would only use up attempts. It is finite because the last success
	// may have been over another channel.
	afterBusy = 50 * afterIdle
)

// within restricts a query for deliveries to the rows that a node with workers should send,
// withinLinked to those of a node without. Their parameters are withinArgs, from the merchants
// linked to the node.
const (
	within = "(channel <> ? OR recipient_id IN (?) OR next_at <= ? OR (next_at <= ? AND NOT EXISTS" +
		" (SELECT 1 FROM report_recipients AS r WHERE r.recipient_id = deliveries.recipient_id AND r.last_ok_at > ?)))"
	withinLinked = "(channel = ? AND recipient_id IN (?))"
)

// links says which merchants are connected to this node.
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

// mine reports whether this node may send over a channel to a recipient now, or should leave
// that to another.
func (l links) mine(to recipient.Recipient, channel string) bool {
	if channel != Websocket {
		return !l.only
	}
	return l.hub != nil && l.hub.Linked(to.ID)
}

// any reports whether this node could send anything.
func (l links) any() bool { return !l.only || l.hub != nil && len(l.hub.Connected()) > 0 }

// of returns the ids whose merchants are connected to this node, without duplicates.
func (l links) of(ids []int64) []int64 {
	here := []int64{}
	for _, id := range ids {
		if l.hub != nil && !slices.Contains(here, id) && l.hub.Linked(id) {
			here = append(here, id)
		}
	}
	return here
}
