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

// A fault of ours keeps this node from sending: nothing went out, and another node or a repair
// can fix it. The delivery is released uncounted, with the cause as its last class, and this
// node skips deliveries of this kind for a while, so that other nodes claim them. These causes
// are never the class of an attempt.
const (
	Locked      Class = "locked"       // secrets cannot be opened: the master key is missing or wrong
	NoChannel   Class = "no_channel"   // this build lacks the channel
	BlockedHere Class = "blocked_here" // blocked here, while another node may reach it
)

// Faults lists all faults.
var Faults = []Class{Locked, NoChannel, BlockedHere}

// Causes returns everything that the last class of a delivery can be: how an attempt ended, or
// why there was none.
func Causes() []Class {
	return slices.Concat(Classes, Faults, []Class{NoAddress, SwitchedOff, Shadow, Resent})
}

// IsFault reports whether a delivery's last class is a fault of ours.
func IsFault(c Class) bool { return slices.Contains(Faults, c) }

const (
	// skipFor is how long a node skips what it could not send.
	skipFor = 30 * time.Second
	// faultForget is when a fault is forgotten: later than two tries are apart.
	faultForget = skipFor + 15*time.Second
	// faultLate is how long after its due time a row counts as waiting because of the fault,
	// rather than just for the next tick of a node that can send it.
	faultLate = 5 * time.Second
	// maxFaultCounted bounds the count for one fault.
	maxFaultCounted = 10_000
)

// faultKind is the scope of a fault: deliveries of one type of event to one recipient over one
// channel and endpoint.
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

// where restricts a query for a recipient's deliveries to the kind.
func (k faultKind) where() any {
	own := "url = ''"
	if k.Own {
		own = "url <> ''"
	}
	return bun.SafeQuery("(channel = ? AND endpoint = ? AND event_type = ? AND "+own+")", k.Channel, k.Endpoint, k.Event)
}

// fault is a fault that this node encountered.
type fault struct {
	cause Class
	at    time.Time // the last time
}

// signs reports whether messages of a channel are signed with the recipient's secrets.
func signs(channel string) bool { return channel == Webhook || channel == AMQP || channel == Kafka }

// FaultOf returns the fault for which a delivery waits, as far as its row and its recipient's
// settings on this node show; "" = none.
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
		return Locked, fmt.Sprintf("the secrets cannot be opened on node %s: check its master key", s.o.DB.NodeName())
	}
	return "", ""
}

// blockedHere reports whether an address blocked on this node may be allowed on another, also
// if that cannot be read: nothing was sent.
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

// stepAside releases claims that this node could not even try to send, uncounted and due at
// once for any other node, and skips their kind.
func (s *sender) stepAside(l *load, endpoint string, cause Class, why string) work.Ran[*outcome] {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	all := l.all()
	if err := release(ctx, s.o.DB, cause, why, s.o.DB.Now(), all...); err != nil {
		s.o.Log.Error("release what cannot be sent here", "error", db.ErrorText(err))
	}
	s.faults.add(cause, why, endpoint, all)
	s.forget(l.RecipientID) // the next read leaves out skipped kinds
	return untried
}

// faults is what this node recently could not send because of faults of ours, and the endpoints
// that it avoids for that reason while there are others.
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

// skippedOf returns the kinds of a recipient that this node skips.
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

// unusable reports whether this node recently could not use an endpoint.
func (f *faults) unusable(k endpointKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.passOver[k])
}

// end clears a fault: a delivery of the kind was just sent.
func (f *faults) end(c claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, c.kind())
}

// publishedFault is a fault as read by other nodes.
type publishedFault struct {
	Cause Class `json:"cause"`
	faultKind
}

// list drops the faults that have not recurred, and returns the others.
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
		return cmp.Or(cmp.Compare(a.RecipientID, b.RecipientID), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Endpoint, b.Endpoint),
			cmp.Compare(a.Event, b.Event))
	})
	return all
}

// PublishFaults publishes what this node cannot send. It is called by the tick, and writes only
// changes.
func (d *Dispatcher) PublishFaults(ctx context.Context) error {
	return publish(ctx, d.o.DB, &d.faults.published, "faults", d.faults.list(time.Now()))
}

// Faults returns the causes for which this node cannot send notifications now.
func (d *Dispatcher) Faults() (causes []Class) {
	for _, x := range d.faults.list(time.Now()) {
		if !slices.Contains(causes, x.Cause) {
			causes = append(causes, x.Cause)
		}
	}
	return causes
}

// FaultWaiting is what waits for one cause to be fixed.
type FaultWaiting struct {
	Cause Class
	Count int64
	Sums  map[string]int64 // minor units by currency
}

// FaultsWaiting counts by cause the notifications that wait because of faults of any running
// node; causes without waiting notifications are left out.
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
	err := d.Read.NewRaw("SELECT currency, count(*) AS n, CAST(sum(amount) AS BIGINT) AS minor FROM (?) AS waiting GROUP BY currency",
		due).Scan(ctx, &rows)
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
