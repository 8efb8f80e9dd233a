package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
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
	// faultForget is longer than two tries are apart: until then a fault stands.
	faultForget = asideFor + 15*time.Second
	// faultLate is from when on what is due waits for the fault, and not only for the
	// next look of a node that can send it.
	faultLate = 5 * time.Second
	// faultsMost bounds what one node publishes, faultCounted what is counted of one
	// fault.
	faultsMost   = 1000
	faultCounted = 10_000
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
func (d *Dispatcher) faultOf(m *merchant.Merchant, c claimed, p plan) (cause Class, why string) {
	switch {
	case d.o.Channels[c.Channel] == nil:
		return NoChannel, fmt.Sprintf("the version of node %s has no channel %q", d.o.DB.NodeName(), c.Channel)
	case p.locked, p.refused == nil && m != nil && m.Locked && signs(c.Channel):
		return Locked, fmt.Sprintf("the secrets do not open on node %s: is its master key the one in use?", d.o.DB.NodeName())
	}
	return "", ""
}

// blockedHere says whether an address that is blocked on this node may be none on
// another. What cannot be known now is taken for that: nothing was sent.
func (d *Dispatcher) blockedHere(res Result) bool {
	if res.Class != Blocked {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	others, err := d.o.DB.OthersReach(ctx)
	if err != nil {
		d.o.Log.Error("ask what other nodes reach", "error", db.Explain(err))
	}
	return others || err != nil
}

// stepAside releases claims that this node could not even try to send, uncounted and
// due for any other node at once, and leaves what is like them alone.
func (d *Dispatcher) stepAside(t *ticket, endpoint string, cause Class, why string, all ...claimed) {
	d.giveBackAs(cause, why, d.o.DB.Now(), all...)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range all {
		if _, known := d.faults[c.kind()]; !known {
			d.o.Log.Warn("released uncounted", "cause", cause, "merchant_id", c.MerchantID, "channel", c.Channel, "error", why)
		}
		d.faults[c.kind()] = fault{cause, now}
		if endpoint != "" {
			d.unusable[address{c.MerchantID, endpoint}] = now.Add(2 * asideFor)
		}
	}
	if t.probe {
		t.lane.probed = 0 // nothing was tried
	}
	for _, id := range t.lane.waiting {
		delete(d.known, id) // what of them is left alone, the next look leaves out
	}
	t.lane.waiting, t.lane.more = nil, true
	d.release(t)
}

// aside says whether this node leaves a kind alone. Called with d.mu held.
func (d *Dispatcher) aside(k faultKind) bool {
	f, ok := d.faults[k]
	return ok && time.Since(f.at) < asideFor
}

// asideOf are the kinds of a merchant that this node leaves alone.
func (d *Dispatcher) asideOf(merchantID int64) (kinds []faultKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.faults {
		if k.Merchant == merchantID && d.aside(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// passOver says whether this node could not use an address lately.
func (d *Dispatcher) passOver(owner int64, endpoint string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.unusable[address{owner, endpoint}])
}

// ended forgets a fault: something like it was just sent. Called with d.mu held.
func (d *Dispatcher) ended(c claimed) {
	if len(d.faults) > 0 {
		delete(d.faults, c.kind())
	}
}

// forgetFaults forgets what was not met again. Called with d.mu held.
func (d *Dispatcher) forgetFaults(now time.Time) {
	for k, f := range d.faults {
		if now.Sub(f.at) > faultForget {
			delete(d.faults, k)
		}
	}
	for a, until := range d.unusable {
		if now.After(until) {
			delete(d.unusable, a)
		}
	}
}

// published is a fault as the other nodes know it.
type published struct {
	Cause Class `json:"cause"`
	faultKind
}

// faultsHere are this node's faults, as many as are published.
func (d *Dispatcher) faultsHere() []published {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetFaults(time.Now())
	all := make([]published, 0, len(d.faults))
	for k, f := range d.faults {
		all = append(all, published{f.cause, k})
	}
	slices.SortFunc(all, func(a, b published) int {
		return cmp.Or(cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Event, b.Event))
	})
	return all[:min(len(all), faultsMost)]
}

// TellFaults publishes what this node cannot send. It is for the tick, and writes only
// when that has changed.
func (d *Dispatcher) TellFaults(ctx context.Context) error {
	text := ""
	if all := d.faultsHere(); len(all) > 0 {
		list, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("list faults: %w", err)
		}
		text = string(list)
	}
	if text == d.toldFaults {
		return nil
	}
	if _, err := d.o.DB.NewRaw("UPDATE nodes SET faults = ? WHERE boot = ?", text, d.o.DB.Boot()).Exec(ctx); err != nil {
		return fmt.Errorf("publish faults: %w", err)
	}
	d.toldFaults = text
	return nil
}

// FaultWaiting is what waits for one cause to end.
type FaultWaiting struct {
	Cause Class
	Count int64
	Sums  map[string]int64 // minor units by currency
}

// FaultsWaiting counts the notifications that wait for a fault of any living node, by
// cause; a cause of which nothing waits is not among them.
func FaultsWaiting(ctx context.Context, d *db.DB) ([]FaultWaiting, error) {
	var lists []string
	err := d.Read.NewRaw("SELECT faults FROM nodes WHERE faults <> '' AND seen_at > ?", d.Now()-db.NodeGone.Microseconds()).Scan(ctx, &lists)
	if err != nil {
		return nil, fmt.Errorf("read the faults of nodes: %w", err)
	}
	seen, by := map[faultKind]bool{}, map[Class]*FaultWaiting{}
	for _, list := range lists {
		var all []published
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
		Where("merchant_id = ? AND next_at <= ? AND ?", k.Merchant, d.Now()-faultLate.Microseconds(), k.where()).Limit(faultCounted)
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
