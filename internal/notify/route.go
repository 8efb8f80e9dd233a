package notify

import (
	"slices"
	"time"

	"backstop/internal/merchant"
	"backstop/internal/recipient"
)

// Why a delivery was skipped; stored as its class.
const (
	NoAddress   Class = "no_address"   // the merchant has no endpoint for this type of event
	SwitchedOff Class = "switched_off" // the merchant does not want this type of event
	Shadow      Class = "shadow"       // it happened in shadow mode
)

// Route describes one delivery of an event.
type Route struct {
	To       recipient.Recipient
	Channel  string
	URL      string        // the order's own, if it has one
	Endpoint string        // the only one; empty = those of the channel in turn
	Skip     Class         // why nothing is sent; empty = it is sent
	Digest   time.Duration // how long events are collected first
}

func (r Route) delivery(f *Fact, now int64) Delivery {
	x := Delivery{
		RecipientID: r.To.ID, ToSubscriber: r.To.IsSubscriber(), SubjectID: f.SubjectID, EventType: f.Type,
		Channel: r.Channel, URL: r.URL, Endpoint: r.Endpoint, Status: Queued, NextAt: &now, CreatedAt: now, Trace: f.Trace,
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

// Routes returns the deliveries of a merchant's event: to the merchant, and to the subscribers
// that follow it. url is the order's own URL, which replaces the merchant's webhook endpoints.
// A merchant that is not in this node's settings is tried anyway: the row must not be lost
// because of a stale snapshot. In shadow mode there is one delivery, to the merchant, which is not
// sent.
func Routes(directory *merchant.Directory, merchantID int64, event, url string) []Route {
	if directory.Shadow {
		return []Route{{To: recipient.OfMerchant(merchantID), Channel: Webhook, URL: url, Skip: Shadow}}
	}
	m := directory.ByID(merchantID)
	if m == nil {
		return []Route{{To: recipient.OfMerchant(merchantID), Channel: Webhook, URL: url}}
	}
	routes := merchantRoutes(m, event, url)
	for _, s := range directory.Subscribers(m.Code, event) {
		routes = append(routes, subscriberRoutes(s, event)...)
	}
	return routes
}

func subscriberRoutes(m *merchant.Merchant, event string) []Route {
	if m.Broken {
		return []Route{{To: m.Recipient(), Channel: Unrouted}}
	}
	return endpointRoutes(m, event)
}

func merchantRoutes(m *merchant.Merchant, event, url string) []Route {
	to := m.Recipient()
	if m.Broken {
		return []Route{{To: to, Channel: Unrouted, URL: url}}
	}
	if !m.Wants(event) {
		return []Route{{To: to, Channel: Webhook, URL: url, Skip: SwitchedOff}}
	}
	routes := endpointRoutes(m, event)
	if url != "" {
		routes = slices.DeleteFunc(routes, func(r Route) bool { return r.Channel == Webhook })
		routes = slices.Insert(routes, 0, Route{To: to, Channel: Webhook, URL: url})
	}
	if len(routes) == 0 {
		return []Route{{To: to, Channel: Webhook, Skip: NoAddress}}
	}
	return routes
}

// endpointRoutes returns one route per channel that takes the event, or one per endpoint if all
// are notified.
func endpointRoutes(m *merchant.Merchant, event string) []Route {
	var routes []Route
	to := Route{To: m.Recipient()}
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

// byRank lists the statuses of an order's notifications: of several, the order shows the last
// in this list. Those in progress rank above ended ones.
var byRank = []string{"none", "delivered", "exhausted", "queued", "sending", "retrying", "parked"}

// OrderStatus derives an order's notify_status (contract §4) from its deliveries, newest first:
// none, queued, sending, retrying, parked, delivered or exhausted. What counts is the newest
// event that was sent, and of it what is owed to the merchant; parked is the result of
// IsParked.
func OrderStatus(newestFirst []Delivery, parked bool) string {
	var event int64
	worst := 0
	for _, d := range newestFirst {
		if d.ToSubscriber || d.Status == Skipped || event != 0 && d.EventID != event {
			continue
		}
		word := string(d.Status)
		switch {
		case parked && d.Status.Waiting():
			word = "parked"
		case d.Status == RetryWait:
			word = "retrying"
		}
		event, worst = d.EventID, max(worst, slices.Index(byRank, word))
	}
	return byRank[worst]
}
