package notify

import (
	"slices"
	"time"

	"backstop/internal/merchant"
	"backstop/internal/recipient"
)

// Why a delivery is skipped, kept as its class.
const (
	NoAddress   Class = "no_address"   // the merchant gave none for this type of event
	SwitchedOff Class = "switched_off" // the merchant does not want this type of event
)

// Route is one delivery that an event is to have.
type Route struct {
	To       recipient.Recipient
	Channel  string
	URL      string        // the order's own address, if it gave one
	Endpoint string        // the one address that this is for; empty = the channel's in turn
	Skip     Class         // why nothing is sent; empty = it is sent
	Digest   time.Duration // for how long events are gathered first
}

func (r Route) delivery(f *Fact, now int64) Delivery {
	x := Delivery{
		MerchantID: r.To.ID, SubjectID: f.SubjectID, EventType: f.Type, Channel: r.Channel, URL: r.URL, Endpoint: r.Endpoint,
		House: r.To.IsSubscriber(), Status: Queued, NextAt: &now, CreatedAt: now, Trace: f.Trace,
	}
	if r.Digest > 0 {
		due := nextDigest(now, r.Digest)
		x.NextAt = &due
	}
	if !r.To.IsSubscriber() {
		x.Currency, x.Amount = f.Currency, f.Amount
	}
	if r.Skip != "" {
		x.Status, x.LastClass, x.NextAt, x.FinishedAt = Skipped, r.Skip, nil, &now
	}
	return x
}

// Routes says which deliveries an event of a merchant has: its own, and those of
// the subscribers that follow it. own is the order's own address, which
// stands in for the merchant's webhook addresses. A merchant that is unknown to
// this node is tried: the row must not be lost to a stale snapshot.
func Routes(book *merchant.Directory, merchantID int64, event, own string) []Route {
	m := book.ByID(merchantID)
	if m == nil {
		return []Route{{To: recipient.Of(merchantID, false), Channel: Webhook, URL: own}}
	}
	routes := ownRoutes(m, event, own)
	for _, h := range book.Subscribers(m.Code, event) {
		routes = append(routes, subscriberRoutes(h, event)...)
	}
	return routes
}

func subscriberRoutes(h *merchant.Merchant, event string) []Route {
	if h.Broken {
		return []Route{{To: h.Recipient(), Channel: Unrouted}}
	}
	return reach(h, event, Route{To: h.Recipient()})
}

func ownRoutes(m *merchant.Merchant, event, own string) []Route {
	if m.Broken {
		return []Route{{To: m.Recipient(), Channel: Unrouted, URL: own}}
	}
	to := Route{To: m.Recipient()}
	if !m.Wants(event) {
		return []Route{{To: m.Recipient(), Channel: Webhook, URL: own, Skip: SwitchedOff}}
	}
	routes := reach(m, event, to)
	if own != "" {
		routes = slices.DeleteFunc(routes, func(r Route) bool { return r.Channel == Webhook })
		routes = slices.Insert(routes, 0, Route{To: m.Recipient(), Channel: Webhook, URL: own})
	}
	if len(routes) == 0 {
		return []Route{{To: m.Recipient(), Channel: Webhook, Skip: NoAddress}}
	}
	return routes
}

// reach is one route per channel that takes the event, or one per address where
// all are told.
func reach(m *merchant.Merchant, event string, to Route) []Route {
	var routes []Route
	if m.Settings.Balance != merchant.All {
		for _, to.Channel = range m.Channels(event) {
			to.Digest = m.Digest(to.Channel, event)
			routes = append(routes, to)
		}
		return routes
	}
	for i := range m.Endpoints {
		if e := &m.Endpoints[i]; e.Takes(event) {
			to.Channel, to.Endpoint, to.Digest = e.Channel, e.Name, e.Digest()
			routes = append(routes, to)
		}
	}
	return routes
}

// standing ranks what becomes of a delivery: of several, the order shows the
// highest. What goes on comes before what is over, the worst first.
var standing = []string{"none", "delivered", "exhausted", "queued", "sending", "retrying", "parked"}

// OrderStatus derives an order's notify_status (contract §4) from its deliveries,
// newest first: none, queued, sending, retrying, parked, delivered or exhausted.
// The newest event that was sent counts, and of it what the merchant must get;
// parked is what IsParked says of the merchant.
func OrderStatus(newestFirst []Delivery, parked bool) string {
	var event int64
	worst := 0
	for _, d := range newestFirst {
		if d.Recipient().IsSubscriber() || d.Status == Skipped || event != 0 && d.EventID != event {
			continue
		}
		word := string(d.Status)
		switch {
		case parked && d.Status.Waiting():
			word = "parked"
		case d.Status == RetryWait:
			word = "retrying"
		}
		event, worst = d.EventID, max(worst, slices.Index(standing, word))
	}
	return standing[worst]
}
