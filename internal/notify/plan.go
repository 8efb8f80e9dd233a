package notify

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	"backstop/internal/merchant"
)

// ScheduleOf is the schedule by which a merchant's notifications are repeated; a
// merchant that is unknown or disabled has the default one, as in sending.
func ScheduleOf(m *merchant.Merchant) Schedule {
	if m == nil || m.Disabled || m.Broken {
		return Day()
	}
	return waitsOf(m.Settings)
}

// plan is one attempt before it is made.
type plan struct {
	msg   Message
	waits Schedule
	// endpoint is the merchant's address whose health the attempt tells; empty = the
	// order's own, or none.
	endpoint string
	// last says that no other address is left to be tried instead.
	last bool
	// refused is set where nothing is sent; final, where a repeat would not help.
	refused *Result
	final   bool
	// locked says that the secrets of the address do not open on this node.
	locked bool
}

func (p *plan) refuse(class Class, why string) { p.refused = &Result{Class: class, Error: why} }

// newPlan puts an attempt together but for its address. What cannot be sent fails
// like any other attempt and ends on the exception desk instead of nowhere. It is
// signed for the moment at, by the database's clock: merchants refuse what is
// minutes off, and a node whose own clock is wrong would open all their breakers.
func newPlan(m *merchant.Merchant, c claimed, longest time.Duration, at time.Time) plan {
	p := plan{waits: Day(), msg: Message{
		ID: c.publicID(), Type: c.EventType, Body: []byte(c.Body), URL: c.URL,
		MerchantID: c.MerchantID, At: at, Ack: "status", Timeout: longest,
	}}
	if m == nil || m.Disabled {
		p.msg.URL = ""
		p.refuse(BadAddress, "the merchant is gone or disabled")
		return p
	}
	s := m.Settings
	p.waits = waitsOf(s)
	p.msg.Secrets, p.msg.Ack, p.msg.AckText, p.msg.Format = m.Secrets, s.Ack, s.AckText, s.Format
	if t := m.Timeout(); t > 0 && t < longest {
		p.msg.Timeout = t
	}
	return p
}

// plan puts an attempt together.
func (d *Dispatcher) plan(m *merchant.Merchant, c claimed) plan {
	p := newPlan(m, c, d.o.Timeout, d.o.DB.NowTime())
	if c.URL == "" && p.refused == nil {
		d.choose(&p, m, c)
	}
	return p
}

// choose picks the merchant's address of this attempt: the one that the delivery
// is for, or the next of its channel that is enabled and, as long as there is
// one, well.
func (d *Dispatcher) choose(p *plan, m *merchant.Merchant, c claimed) {
	declared, usable := addresses(m, c.Channel, c.Endpoint, c.EventType)
	switch {
	case len(declared) == 0:
		p.refuse(BadAddress, "there is no address any more for events of this type: mend notify and resend")
		return
	case len(usable) == 0:
		p.refuse(BadAddress, "every address is disabled: enable one again and resend")
		p.final = true
		return
	}
	if m.Settings.Balance == merchant.Weighted {
		byWeight(usable, c.ID)
	}
	p.last = len(usable) == 1
	e := usable[next(usable, c.Attempts, func(e *merchant.Endpoint) bool {
		return e.Locked || d.passOver(m.ID, e.Name) || d.health.ill(m.ID, e.Name, d.o.DB.Now())
	})]
	p.address(e)
}

// addresses are those of the merchant that a delivery may go to, and of them those
// that are not disabled.
func addresses(m *merchant.Merchant, channel, endpoint, eventType string) (declared, usable []*merchant.Endpoint) {
	for i := range m.Endpoints {
		e := &m.Endpoints[i]
		if e.Channel != channel || endpoint != "" && e.Name != endpoint || endpoint == "" && !e.Takes(eventType) {
			continue
		}
		declared = append(declared, e)
		if !e.Disabled {
			usable = append(usable, e)
		}
	}
	return declared, usable
}

// Reachable says whether there is any address left for a delivery to the merchant.
func Reachable(m *merchant.Merchant, d *Delivery) bool {
	_, usable := addresses(m, d.Channel, d.Endpoint, d.EventType)
	return d.URL != "" || len(usable) > 0
}

func (p *plan) address(e *merchant.Endpoint) {
	p.endpoint = e.Name
	p.msg.URL, p.msg.Format = e.URL, e.Format
	p.msg.Headers, p.msg.Credentials, p.msg.ClientCert = e.Headers, e.Credentials, e.Certificate
	if p.locked = e.Locked; p.locked {
		p.refuse(Internal, "the secrets of this address cannot be opened: is the master key the right one?")
	}
}

// next is the place of an attempt's address: each attempt begins one further, and
// passes over what is ill unless all are.
func next(usable []*merchant.Endpoint, attempt int64, ill func(*merchant.Endpoint) bool) int {
	start := int((max(attempt, 1) - 1) % int64(len(usable)))
	if len(usable) == 1 {
		return start
	}
	for i := range usable {
		if at := (start + i) % len(usable); !ill(usable[at]) {
			return at
		}
	}
	return start
}

// byWeight orders addresses by chance, so that each comes first in proportion to
// its weight, also among those that are left when an ill one is passed over
// (Efraimidis and Spirakis: the smallest of -ln(u)/w). The same delivery has the
// same order at each attempt and on every node.
func byWeight(usable []*merchant.Endpoint, delivery int64) {
	keys := make(map[*merchant.Endpoint]float64, len(usable))
	for _, e := range usable {
		u := (float64(mixed(e.Name, delivery)>>11) + 1) / (1 << 53) // in (0, 1]
		keys[e] = -math.Log(u) / float64(max(e.Weight, 1))
	}
	slices.SortStableFunc(usable, func(a, b *merchant.Endpoint) int {
		switch {
		case keys[a] < keys[b]:
			return -1
		case keys[a] > keys[b]:
			return 1
		}
		return 0
	})
}

// mixed is an even 64-bit hash of a name and a number: FNV alone leaves names that
// differ in their last letter close to each other, hence the finish of splitmix64.
func mixed(name string, n int64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	x := h.Sum64() + uint64(n)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// After is the wait after the given attempt of a delivery whose schedule counts
// from attempt scheduleFrom on; false means that the schedule is used up. What is
// sent and what people are told both come from here.
func (s Schedule) After(attempt, scheduleFrom int64) (time.Duration, bool) {
	return s.Wait(int(attempt - scheduleFrom))
}

// LastAt is about when the last attempt begins if all fail: the given attempt
// begins at the moment at (Unix µs), and how long attempts take is not known.
func (s Schedule) LastAt(at, attempt, scheduleFrom int64) int64 {
	for {
		wait, more := s.After(attempt, scheduleFrom)
		if !more {
			return at
		}
		at += wait.Microseconds()
		attempt++
	}
}
