package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/work"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// A fault of ours keeps this node from sending: nothing went out, and another node or
// a repair can end it. The delivery is released uncounted, with the cause as its last
// class, and this node leaves what is like it alone for a while, so that others come
// to it. These causes are never the class of an attempt.
const (
	Locked      Class = "locked"       // secrets do not open: the master key is missing or another one
	NoChannel   Class = "no_channel"   // this build does not have the channel
	BlockedHere Class = "blocked_here" // blocked here, while another node reaches other ranges
)

// Faults are all of them.
var Faults = []Class{Locked, NoChannel, BlockedHere}

// IsFault says whether a delivery's last class is a fault of ours.
func IsFault(c Class) bool { return slices.Contains(Faults, c) }

const (
	// asideFor is how long a node leaves alone what it could not send.
	asideFor = 30 * time.Second
	// faultForget is longer than two tries are apart: until then a fault is kept.
	faultForget = asideFor + 15*time.Second
	// faultLate is from when on what is due waits for the fault, and not only for the
	// next look of a node that can send it.
	faultLate = 5 * time.Second
	// maxFaults bounds what one node publishes, maxFaultCounted what is counted of one
	// fault.
	maxFaults       = 1000
	maxFaultCounted = 10_000
)

// faultKind is what a fault concerns: all deliveries to one recipient that go the same
// way.
type faultKind struct {
	Merchant int64  `json:"merchant"`
	Channel  string `json:"channel"`
	Endpoint string `json:"endpoint"`
	Event    string `json:"event"`
	Own      bool   `json:"own"` // to the orders' own addresses
}

func (c claimed) kind() faultKind {
	return faultKind{c.MerchantID, c.Channel, c.Endpoint, c.EventType, c.URL != ""}
}

func (d *Delivery) kind() faultKind {
	return faultKind{d.MerchantID, d.Channel, d.Endpoint, d.EventType, d.URL != ""}
}

// where limits a query for deliveries of one merchant to the kind.
func (k faultKind) where() any {
	own := "url = ''"
	if k.Own {
		own = "url <> ''"
	}
	return bun.SafeQuery("(channel = ? AND endpoint = ? AND event_type = ? AND "+own+")", k.Channel, k.Endpoint, k.Event)
}

// fault is one that this node met.
type fault struct {
	cause Class
	at    time.Time // the last time
}

// signs says whether messages of a channel are signed with the merchant's secrets.
func signs(channel string) bool { return channel == Webhook || channel == AMQP || channel == Kafka }

// FaultOf is the fault by which a delivery waits, as far as can be seen from its row and
// its merchant's settings on this node; "" = none.
func FaultOf(m *merchant.Merchant, d *Delivery) Class {
	switch {
	case IsFault(d.LastClass):
		return d.LastClass
	case m != nil && m.Locked && signs(d.Channel):
		return Locked
	}
	return ""
}

// faultOf finds a fault of ours in a planned attempt, before anything is sent.
func (s *sender) faultOf(m *merchant.Merchant, c claimed, p plan) (cause Class, why string) {
	switch {
	case s.o.Channels[c.Channel] == nil:
		return NoChannel, fmt.Sprintf("the version of node %s has no channel %q", s.o.DB.NodeName(), c.Channel)
	case p.locked, p.refused == nil && m != nil && m.Locked && signs(c.Channel):
		return Locked, fmt.Sprintf("the secrets do not open on node %s: is its master key the one in use?", s.o.DB.NodeName())
	}
	return "", ""
}

// blockedHere says whether an address that is blocked on this node may be none on
// another. What cannot be known now is taken for that: nothing was sent.
func (s *sender) blockedHere(res Result) bool {
	if res.Class != Blocked {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	others, err := s.o.DB.OthersReach(ctx)
	if err != nil {
		s.o.Log.Error("ask what other nodes reach", "error", db.ErrorText(err))
	}
	return others || err != nil
}

// stepAside releases claims that this node could not even try to send, uncounted and
// due for any other node at once, and leaves what is like them alone.
func (s *sender) stepAside(l *load, endpoint string, cause Class, why string) work.Ran[*outcome] {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	all := l.all()
	if err := release(ctx, s.o.DB, cause, why, s.o.DB.Now(), all...); err != nil {
		s.o.Log.Error("release what cannot be sent here", "error", db.ErrorText(err))
	}
	s.faults.met(cause, why, endpoint, all)
	s.forget(l.MerchantID) // what of it is left alone, the next look leaves out
	return untried
}

// faults is what this node could not send lately through a fault of ours, and addresses
// that it passes over for that while there are others.
type faults struct {
	db  *db.DB
	log *slog.Logger

	mu        sync.Mutex
	of        map[faultKind]fault
	passOver  map[address]time.Time
	published string // as the other nodes know it
}

func newFaults(d *db.DB, log *slog.Logger) *faults {
	return &faults{db: d, log: log, of: map[faultKind]fault{}, passOver: map[address]time.Time{}}
}

// met notes a fault.
func (f *faults) met(cause Class, why, endpoint string, all []claimed) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range all {
		if _, known := f.of[c.kind()]; !known {
			f.log.Warn("released uncounted", "cause", cause, "merchant_id", c.MerchantID, "channel", c.Channel, "error", why)
		}
		f.of[c.kind()] = fault{cause, now}
		if endpoint != "" {
			f.passOver[address{c.MerchantID, endpoint}] = now.Add(2 * asideFor)
		}
	}
}

// aside says whether this node leaves a kind alone.
func (f *faults) aside(k faultKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[k].lately()
}

func (x fault) lately() bool { return x.cause != "" && time.Since(x.at) < asideFor }

// asideOf are the kinds of a merchant that this node leaves alone.
func (f *faults) asideOf(merchantID int64) (kinds []faultKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, x := range f.of {
		if k.Merchant == merchantID && x.lately() {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// unusable says whether this node could not use an address lately.
func (f *faults) unusable(owner int64, endpoint string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.passOver[address{owner, endpoint}])
}

// end forgets a fault: something like it was just sent.
func (f *faults) end(c claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, c.kind())
}

// publishedFault is a fault as the other nodes know it.
type publishedFault struct {
	Cause Class `json:"cause"`
	faultKind
}

// list forgets what was not met again, and returns the others, as many as are published.
func (f *faults) list(now time.Time) []publishedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of, func(_ faultKind, x fault) bool { return now.Sub(x.at) > faultForget })
	maps.DeleteFunc(f.passOver, func(_ address, until time.Time) bool { return now.After(until) })
	all := make([]publishedFault, 0, len(f.of))
	for k, x := range f.of {
		all = append(all, publishedFault{x.cause, k})
	}
	slices.SortFunc(all, func(a, b publishedFault) int {
		return cmp.Or(cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Event, b.Event))
	})
	return all[:min(len(all), maxFaults)]
}

// PublishFaults lets all nodes know what this one cannot send. It is for the tick, and
// writes only when that has changed.
func (d *Dispatcher) PublishFaults(ctx context.Context) error { return d.faults.publish(ctx) }

func (f *faults) publish(ctx context.Context) error {
	text := ""
	if all := f.list(time.Now()); len(all) > 0 {
		list, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("list faults: %w", err)
		}
		text = string(list)
	}
	if text == f.published {
		return nil
	}
	if _, err := f.db.NewRaw("UPDATE nodes SET faults = ? WHERE boot = ?", text, f.db.Boot()).Exec(ctx); err != nil {
		return fmt.Errorf("publish faults: %w", err)
	}
	f.published = text
	return nil
}

// FaultWaiting is what waits for one cause to end.
type FaultWaiting struct {
	Cause Class
	Count int64
	Sums  map[string]int64 // minor units by currency
}

// FaultsWaiting counts the notifications that wait for a fault of any running node, by
// cause; a cause of which nothing waits is not among them.
func FaultsWaiting(ctx context.Context, d *db.DB) ([]FaultWaiting, error) {
	var lists []string
	err := d.Read.NewRaw("SELECT faults FROM nodes WHERE faults <> '' AND seen_at > ?", d.Now()-db.NodeGone.Microseconds()).Scan(ctx, &lists)
	if err != nil {
		return nil, fmt.Errorf("read the faults of nodes: %w", err)
	}
	seen, by := map[faultKind]bool{}, map[Class]*FaultWaiting{}
	for _, list := range lists {
		var all []publishedFault
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			return nil, fmt.Errorf("the faults of a node: %w", err)
		}
		for _, f := range all {
			if seen[f.faultKind] {
				continue
			}
			seen[f.faultKind] = true
			if by[f.Cause] == nil {
				by[f.Cause] = &FaultWaiting{Cause: f.Cause, Sums: map[string]int64{}}
			}
			if err := by[f.Cause].count(ctx, d, f.faultKind); err != nil {
				return nil, err
			}
		}
	}
	var waiting []FaultWaiting
	for _, cause := range Faults {
		if w := by[cause]; w != nil && w.Count > 0 {
			waiting = append(waiting, *w)
		}
	}
	return waiting, nil
}

func (w *FaultWaiting) count(ctx context.Context, d *db.DB, k faultKind) error {
	var rows []struct {
		Currency string
		N, Minor int64
	}
	due := d.Read.NewSelect().Table("deliveries").Column("currency", "amount").
		Where("merchant_id = ? AND next_at <= ? AND ?", k.Merchant, d.Now()-faultLate.Microseconds(), k.where()).Limit(maxFaultCounted)
	err := d.Read.NewRaw("SELECT currency, count(*) AS n, CAST(sum(amount) AS BIGINT) AS minor FROM (?) AS waiting GROUP BY currency", due).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("count what waits for a fault: %w", err)
	}
	for _, r := range rows {
		w.Count += r.N
		if r.Currency != "" {
			w.Sums[r.Currency] += r.Minor
		}
	}
	return nil
}
