package notify

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/base/work"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// pausedAfter: an attempt that ends this long after its timeout was delayed by a stop of the
// process or of the whole machine.
const pausedAfter = time.Second

// outcome is the effect of one attempt on its delivery.
type outcome struct {
	attempt    Attempt
	claimed    claimed
	status     Status
	nextAt     *int64 // of RetryWait
	generation int64  // of the breaker when the attempt began
	paused     bool   // this process was stopped meanwhile: a failure is not the recipient's
	endpoint   string // endpoint whose health the attempt affects; empty = none
	origin     string // which asks us to send nothing until waitUntil (Unix µs); 0 = it does not ask
	waitUntil  int64
	tried      bool // its result may be committed
}

func (o *outcome) endpointKey() endpointKey { return endpointKey{o.claimed.Recipient(), o.endpoint} }

// sender makes attempts.
type sender struct {
	o      *Options
	gates  *gates
	faults *faults
	health *health
	forget func(lane int64) // drops a lane from memory; its rows remain
}

// untried means that no attempt was made, for rows that are released or rerouted.
var untried work.Ran[*outcome]

// run makes one attempt, including everything in the same digest.
func (s *sender) run(ctx context.Context, x work.Slot, l *load) work.Ran[*outcome] {
	now, c := s.o.DB.Now(), l.claimed
	releaseNow := work.Ran[*outcome]{ReleaseAt: now}
	if now+s.o.Timeout.Microseconds() > c.Lease {
		// This process was stopped, or the database was slow: the attempt might outlast the
		// lease.
		return releaseNow
	}
	m := s.o.Directory().ByID(c.RecipientID)
	switch {
	case m != nil && m.Broken: // became so after the claim
		return releaseNow
	case m != nil && c.Channel == Unrouted:
		if err := s.route(c, m); err != nil {
			s.o.Log.Error("route a delivery", "notification", c.PublicID(), "error", db.ErrorText(err))
			return releaseNow
		}
		return untried
	}
	p := s.plan(m, c)
	if cause, why := s.faultOf(m, c, p); cause != "" {
		return s.stepAside(l, p.endpoint, cause, why)
	}
	if p.until > 0 && c.LastClass != Resent {
		s.postpone(c, func(d *Delivery) int64 { return s.health.waitOf(m, d, now) })
		return work.Ran[*outcome]{ReleaseAt: p.until}
	}
	generation, until := s.protected(ctx, x, c, p)
	if until > 0 {
		s.postpone(c, func(d *Delivery) int64 {
			if d.URL == "" {
				return 0
			}
			return until
		})
		return work.Ran[*outcome]{ReleaseAt: until}
	}
	p.msg.More = parts(l.more)
	start := s.o.DB.Now()
	failpoint.Hit("before_send")
	span := s.o.Tracer.Continue(c.Trace, "delivery")
	res := s.send(ctx, c, p)
	endSpan(span, c, p.msg, res)
	failpoint.Hit("after_send")
	if res.Class == Cancelled {
		return work.Ran[*outcome]{ReleaseAt: s.o.DB.Now()}
	}
	if s.blockedHere(res) {
		return s.stepAside(l, p.endpoint, BlockedHere, fmt.Sprintf("blocked on node %s alone: %s", s.o.DB.NodeName(), res.Error))
	}
	if res.Class == OK {
		s.faults.end(c)
	}
	end := s.o.DB.Now()
	ran := work.Ran[*outcome]{OK: res.Class == OK, Took: res.Took}
	for i, c := range l.all() {
		o := judge(s.o.DB, c, p, start, end, res)
		if o.generation = generation; i > 0 { // a message counts once for breaker and health
			o.generation, o.endpoint = noGeneration, ""
		}
		ran.Results = append(ran.Results, o)
	}
	if ran.OK {
		s.o.Acks.note(ran.Results)
		failpoint.Hit("after_ack")
	}
	return ran
}

// plan is one attempt before it is made.
type plan struct {
	msg   Message
	waits Schedule
	// endpoint is the recipient's endpoint; empty = the order's own URL, or none.
	endpoint string
	// last means that there is no other endpoint to try instead.
	last bool
	// until is when the first address may be used that asks us to wait; 0 = one may be used now.
	until int64
	// refused means that nothing is sent; final, that a repeat would not help.
	refused *Result
	final   bool
	// locked means that the endpoint's secrets cannot be opened on this node.
	locked bool
}

func (p *plan) refuse(class Class, why string) { p.refused = &Result{Class: class, Error: why} }

// newPlan prepares an attempt except for its endpoint. Notifications that cannot be sent fail
// like any other attempt and end as an exception. It is signed for the time at, by the
// database's clock: merchants refuse timestamps that are minutes off, and a node with a wrong
// clock would open all their breakers.
func newPlan(m *merchant.Merchant, c claimed, longest time.Duration, at time.Time) plan {
	p := plan{waits: Day(), msg: Message{
		ID: c.PublicID(), Type: c.EventType, Body: []byte(c.Body), URL: c.URL,
		To: c.Recipient(), At: at, Ack: "status", Timeout: longest,
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

// plan prepares an attempt.
func (s *sender) plan(m *merchant.Merchant, c claimed) plan {
	p := newPlan(m, c, s.o.Timeout, s.o.DB.NowTime())
	switch {
	case p.refused != nil:
	case c.URL == "":
		s.choose(&p, m, c)
	default:
		p.last, p.until = true, s.health.waitUntil(c.RecipientID, c.URL, s.o.DB.Now())
	}
	return p
}

// choose picks the endpoint of this attempt: the one that the delivery is for, or the next
// enabled one of its channel that does not ask us to wait, preferring healthy ones.
func (s *sender) choose(p *plan, m *merchant.Merchant, c claimed) {
	declared, usable := endpointsFor(m, c.Channel, c.Endpoint, c.EventType)
	switch {
	case len(declared) == 0:
		p.refuse(BadAddress, "no endpoint takes events of this type any more: fix the merchant's notify settings and resend")
		return
	case len(usable) == 0:
		p.refuse(BadAddress, "every endpoint is disabled: enable one and resend")
		p.final = true
		if c.LastClass == Gone { // so the last of them was disabled by this delivery, or beside it
			p.refused.Class = Gone
		}
		return
	}
	if m.Settings.Balance == merchant.Weighted {
		byWeight(usable, c.ID)
	}
	p.last = len(usable) == 1
	usable, p.until = s.health.open(m, usable, s.o.DB.Now())
	e := usable[next(usable, c.Attempts, func(e *merchant.Endpoint) bool {
		k := endpointKey{m.Recipient(), e.Name}
		return e.Locked || s.faults.unusable(k) || s.health.unhealthy(k, s.o.DB.Now())
	})]
	p.use(e)
}

// endpointsFor returns the endpoints to which a delivery may go, and those of them that are not
// disabled.
func endpointsFor(m *merchant.Merchant, channel, endpoint, eventType string) (declared, usable []*merchant.Endpoint) {
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

// Reachable reports whether any endpoint is left for a delivery.
func Reachable(m *merchant.Merchant, d *Delivery) bool {
	_, usable := endpointsFor(m, d.Channel, d.Endpoint, d.EventType)
	return d.URL != "" || len(usable) > 0
}

func (p *plan) use(e *merchant.Endpoint) {
	p.endpoint = e.Name
	p.msg.URL, p.msg.Format = e.URL, e.Format
	p.msg.Headers, p.msg.Credentials, p.msg.ClientCert = e.Headers, e.Credentials, e.Certificate
	if p.locked = e.Locked; p.locked {
		p.refuse(Internal, "the secrets of this endpoint cannot be opened: check the master key")
	}
}

// next returns the index of an attempt's endpoint: each attempt starts one further and skips
// unhealthy endpoints unless all are unhealthy.
func next(usable []*merchant.Endpoint, attempt int64, unhealthy func(*merchant.Endpoint) bool) int {
	start := int((max(attempt, 1) - 1) % int64(len(usable)))
	if len(usable) == 1 {
		return start
	}
	for i := range usable {
		if at := (start + i) % len(usable); !unhealthy(usable[at]) {
			return at
		}
	}
	return start
}

// byWeight orders endpoints randomly, so that each comes first in proportion to its weight,
// also among those that remain when an unhealthy one is skipped (Efraimidis and Spirakis: the
// smallest of -ln(u)/w). A delivery has the same order at each attempt and on every node.
func byWeight(usable []*merchant.Endpoint, delivery int64) {
	keys := make(map[*merchant.Endpoint]float64, len(usable))
	for _, e := range usable {
		u := (float64(mixed(e.Name, delivery)>>11) + 1) / (1 << 53) // in (0, 1]
		keys[e] = -math.Log(u) / float64(max(e.Weight, 1))
	}
	slices.SortStableFunc(usable, func(a, b *merchant.Endpoint) int { return cmp.Compare(keys[a], keys[b]) })
}

// mixed is a uniform 64-bit hash of a name and a number. FNV alone leaves names that differ
// only in the last letter close together, hence splitmix64's final mix.
func mixed(name string, n int64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	x := h.Sum64() + uint64(n)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// protected returns until when an attempt must wait because it would call out although the
// breaker is not closed; 0 = it may go ahead, under the returned generation, possibly as the
// probe. This concerns attempts at an order's own URL if all endpoints of the merchant are
// disabled: nothing else of the merchant ends in a call, so nothing is parked.
func (s *sender) protected(ctx context.Context, x work.Slot, c claimed, p plan) (generation, until int64) {
	to := c.Recipient()
	g := s.o.Breakers.Gate(to)
	if g.Probe && g.Delivery == c.ID {
		return g.Generation, 0
	}
	if x.Probe || p.refused != nil || g.Flow || IsParked(s.o.Breakers, s.o.Directory(), to) {
		return x.Epoch, 0
	}
	mine := false
	if g.Due {
		ctx, cancel := context.WithTimeout(ctx, claimTimeout)
		defer cancel()
		var err error
		if mine, err = s.o.Breakers.LeaseProbe(ctx, to, s.o.Timeout); err != nil {
			s.o.Log.Error("lease a probe", "recipient_id", to.ID, "error", db.ErrorText(err))
		}
	}
	r := s.o.Breakers.Of(to)
	if mine || !r.Tripped() {
		return s.o.Breakers.Gate(to).Generation, 0
	}
	return x.Epoch, max(r.OpenUntil, r.ProbeUntil, s.o.DB.Now()+time.Second.Microseconds())
}

// maxPostponed bounds the rows per statement.
const maxPostponed = 500

// postpone lets the recipient's other due rows wait as well, each until its time by until; 0 =
// it may be sent. What an operator has resent does not wait.
func (s *sender) postpone(c claimed, until func(*Delivery) int64) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	now := s.o.DB.Now()
	var due []Delivery
	err := s.o.DB.Read.NewSelect().Model(&due).Column("id", "recipient_id", "channel", "url", "endpoint", "event_type").
		Where("recipient_id = ? AND next_at <= ? AND last_class <> ? AND "+waiting, c.RecipientID, now, Resent).
		OrderExpr("next_at").Limit(maxPostponed).Scan(ctx)
	ids := map[int64][]int64{} // by time
	for i := range due {
		if at := until(&due[i]); at > 0 {
			ids[at] = append(ids[at], due[i].ID)
		}
	}
	for at, of := range ids {
		if err != nil {
			break
		}
		// Another node may do the same now.
		still := s.o.DB.SkipLocked(s.o.DB.NewSelect().Table("deliveries").Column("id").Where("id IN (?) AND next_at <= ? AND "+waiting,
			bun.List(of), now))
		_, err = s.o.DB.NewRaw("UPDATE deliveries SET next_at = ? WHERE id IN (?) AND next_at <= ? AND "+waiting, at, still, now).Exec(ctx)
	}
	if err != nil {
		s.o.Log.Error("postpone deliveries", "recipient_id", c.RecipientID, "error", db.ErrorText(err))
	}
}

// send makes the planned attempt. A panic in a channel fails the attempt instead of the node,
// which would panic again after each start. The panic's value is not logged, because it may
// contain what was sent.
func (s *sender) send(ctx context.Context, c claimed, p plan) (res Result) {
	start := time.Now()
	defer func() {
		if recover() != nil {
			res = Result{Class: Internal, Took: time.Since(start), Error: "the channel " + c.Channel + " failed internally"}
			s.o.Log.Error("a channel panicked", "channel", c.Channel, "notification", p.msg.ID, "stack", string(debug.Stack()))
		}
	}()
	return send(ctx, s.o.Channels, c.Channel, p)
}

// send makes the planned attempt.
func send(ctx context.Context, channels map[string]Channel, channel string, p plan) Result {
	ch, msg := channels[channel], p.msg
	if ch == nil {
		return Result{Class: Internal, Error: fmt.Sprintf("channel %q is not part of this program", channel)}
	}
	if p.refused != nil {
		return *p.refused
	}
	if len(msg.Body) == 0 {
		return Result{Class: Internal, Error: "the event behind this notification is gone"}
	}
	res := ch.Send(ctx, msg)
	metric.Attempts.WithLabelValues(string(res.Class)).Inc()
	metric.AttemptSeconds.Observe(res.Took.Seconds())
	return res
}

// judge turns a result into the delivery's next state. Waits count from the end of the attempt:
// deliveries that failed in one message are due again at the same time.
func judge(d *db.DB, c claimed, p plan, start, end int64, res Result) *outcome {
	o := &outcome{claimed: c, endpoint: p.endpoint, attempt: newAttempt(d, c, p, start, res)}
	o.paused = res.Took > p.msg.Timeout+pausedAfter
	if p.refused != nil || o.paused && res.Class != OK {
		o.endpoint = "" // nothing was sent, or no process was running to read the response: this proves nothing about the endpoint
	}
	if res.RetryAfter > 0 {
		o.origin, o.waitUntil = originOf(p.msg.URL), end+res.RetryAfter.Microseconds()
	}
	wait, again := p.waits.After(c.Attempts, c.ScheduleFrom)
	if p.final || p.last && res.Class == Gone {
		again = false
	}
	switch {
	case res.Class == OK:
		o.status = Delivered
	case again:
		at := end + wait.Microseconds()
		if p.last {
			at = max(at, o.waitUntil)
		}
		o.status, o.nextAt = RetryWait, &at
	default:
		o.status = Exhausted
	}
	return o
}

// newAttempt returns the record of an attempt. Its texts come from outside.
func newAttempt(d *db.DB, c claimed, p plan, start int64, res Result) Attempt {
	a := Attempt{
		ID: d.NewID(), DeliveryID: c.ID, RecipientID: c.RecipientID, Number: c.Attempts, URL: Shown(p.msg.URL),
		Class: res.Class, HTTPStatus: res.Status, StartedAt: start, TookUS: res.Took.Microseconds(),
		Node: d.NodeName(), RequestHeader: textlimit.Storable(res.RequestHeader), ResponseHeader: textlimit.Storable(res.ResponseHeader),
		ResponseBody: res.ResponseBody, Error: textlimit.Storable(res.Error),
	}
	if a.ResponseBody == nil {
		a.ResponseBody = []byte{}
	}
	return a
}
