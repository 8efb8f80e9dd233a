package notify

import (
	"cmp"
	"context"
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

// A fault of ours keeps this node from sending: nothing went out, and another node or a
// repair can end it. The delivery is released uncounted, with the cause as its last class,
// and this node skips deliveries of its kind for a while, so that other nodes claim them.
// These causes are never the class of an attempt.
const (
	Locked      Class = "locked"       // secrets do not open: the master key is missing or another one
	NoChannel   Class = "no_channel"   // this build does not have the channel
	BlockedHere Class = "blocked_here" // blocked here, while another node reaches other ranges
)

// Faults are all of them.
var Faults = []Class{Locked, NoChannel, BlockedHere}

// IsFault reports whether a delivery's last class is a fault of ours.
func IsFault(c Class) bool { return slices.Contains(Faults, c) }

const (
	// skipFor is how long a node skips what it could not send.
	skipFor = 30 * time.Second
	// faultForget is longer than two tries are apart: until then a fault is remembered.
	faultForget = skipFor + 15*time.Second
	// faultLate is how long after its moment a due row counts as waiting for the fault, and
	// not only for the next tick of a node that can send it.
	faultLate = 5 * time.Second
	// maxFaultCounted bounds what is counted of one fault.
	maxFaultCounted = 10_000
)

// faultKind is what a fault concerns: the deliveries of one type of event to one recipient
// over one channel and endpoint.
type faultKind struct {
	RecipientID int64  `json:"merchant"`
	Channel     string `json:"channel"`
	Endpoint    string `json:"endpoint"`
	Event       string `json:"event"`
	Own         bool   `json:"own"` // to the orders' own URLs
}

func (d *Delivery) kind() faultKind {
	return faultKind{d.RecipientID, d.Channel, d.Endpoint, d.EventType, d.URL != ""}
}

// where limits a query for deliveries of one recipient to the kind.
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

// signs reports whether messages of a channel are signed with the recipient's secrets.
func signs(channel string) bool { return channel == Webhook || channel == AMQP || channel == Kafka }

// FaultOf is the fault for which a delivery waits, as far as its row and its recipient's
// settings on this node show it; "" = none.
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

// blockedHere reports whether an address that is blocked on this node may be allowed on
// another; also where that cannot be read: nothing was sent.
func (s *sender) blockedHere(res Result) bool {
	if res.Class != Blocked {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	others, err := s.o.DB.OthersReach(ctx)
	if err != nil {
		s.o.Log.Error("read what other nodes reach", "error", db.ErrorText(err))
	}
	return others || err != nil
}

// stepAside releases claims that this node could not even try to send, uncounted and due
// for any other node at once, and skips what is of their kind.
func (s *sender) stepAside(l *load, endpoint string, cause Class, why string) work.Ran[*outcome] {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	all := l.all()
	if err := release(ctx, s.o.DB, cause, why, s.o.DB.Now(), all...); err != nil {
		s.o.Log.Error("release what cannot be sent here", "error", db.ErrorText(err))
	}
	s.faults.add(cause, why, endpoint, all)
	s.forget(l.RecipientID) // the next read leaves out what is skipped
	return untried
}

// faults is what this node could not send lately for a fault of ours, and endpoints that it
// passes over for that reason while there are others.
type faults struct {
	log *slog.Logger

	mu        sync.Mutex
	of        map[faultKind]fault
	passOver  map[endpointKey]time.Time
	published published
}

func newFaults(log *slog.Logger) *faults {
	return &faults{log: log, of: map[faultKind]fault{}, passOver: map[endpointKey]time.Time{}}
}

// add records a fault.
func (f *faults) add(cause Class, why, endpoint string, all []claimed) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range all {
		if _, known := f.of[c.kind()]; !known {
			f.log.Warn("released uncounted", "cause", cause, "recipient_id", c.RecipientID, "channel", c.Channel, "error", why)
		}
		f.of[c.kind()] = fault{cause, now}
		if endpoint != "" {
			f.passOver[endpointKey{c.Recipient(), endpoint}] = now.Add(2 * skipFor)
		}
	}
}

// skips reports whether this node skips a kind.
func (f *faults) skips(k faultKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[k].isRecent()
}

func (x fault) isRecent() bool { return x.cause != "" && time.Since(x.at) < skipFor }

// skippedOf are the kinds of a recipient that this node skips.
func (f *faults) skippedOf(recipientID int64) (kinds []faultKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, x := range f.of {
		if k.RecipientID == recipientID && x.isRecent() {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// unusable reports whether this node could not use an endpoint lately.
func (f *faults) unusable(k endpointKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.passOver[k])
}

// end forgets a fault: a delivery of the kind was just sent.
func (f *faults) end(c claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, c.kind())
}

// publishedFault is a fault as the other nodes read it.
type publishedFault struct {
	Cause Class `json:"cause"`
	faultKind
}

// list forgets the faults that did not occur again, and returns the others.
func (f *faults) list(now time.Time) []publishedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of, func(_ faultKind, x fault) bool { return now.Sub(x.at) > faultForget })
	maps.DeleteFunc(f.passOver, func(_ endpointKey, until time.Time) bool { return now.After(until) })
	all := make([]publishedFault, 0, len(f.of))
	for k, x := range f.of {
		all = append(all, publishedFault{x.cause, k})
	}
	slices.SortFunc(all, func(a, b publishedFault) int {
		return cmp.Or(cmp.Compare(a.RecipientID, b.RecipientID), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Event, b.Event))
	})
	return all
}

// PublishFaults publishes what this node cannot send. It is for the tick, and writes only
// when that has changed.
func (d *Dispatcher) PublishFaults(ctx context.Context) error {
	return publish(ctx, d.o.DB, &d.faults.published, "faults", d.faults.list(time.Now()))
}

// FaultWaiting is what waits for one cause to end.
type FaultWaiting struct {
	Cause Class
	Count int64
	Sums  map[string]int64 // minor units by currency
}

// FaultsWaiting counts the notifications that wait for a fault of any running node, by
// cause; causes for which nothing waits are left out.
func FaultsWaiting(ctx context.Context, d *db.DB) ([]FaultWaiting, error) {
	all, err := readPublished[publishedFault](ctx, d, "faults")
	if err != nil {
		return nil, err
	}
	seen, by := map[faultKind]bool{}, map[Class]*FaultWaiting{}
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
		Where("recipient_id = ? AND next_at <= ? AND ?", k.RecipientID, d.Now()-faultLate.Microseconds(), k.where()).Limit(maxFaultCounted)
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
