package notify

import (
	"slices"
	"time"
)

// Linked is an optional ability of the channel to which merchants connect: it says
// whom it can tell from this node.
type Linked interface {
	Linked(merchantID int64) bool
}

// alone is how long (µs) a row of a merchant that must connect is left to the node
// that it is connected to. After it anybody tries: where nobody has the
// connection, the attempt says so, counts, and the schedule goes on to the
// exception desk.
const alone = int64(time.Minute / time.Microsecond)

// within limits a query to the rows that this node should send. Its parameters are
// Websocket, the merchants that are linked to this node, and now - alone.
const within = "(channel <> ? OR merchant_id IN (?) OR next_at <= ?)"

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
