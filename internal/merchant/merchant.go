// Package merchant holds merchants and subscribers: keys, notify settings and endpoints.
package merchant

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"backstop/internal/fee"
	"backstop/internal/recipient"
)

// Row is a merchant as stored. Secrets are sealed, the API key is a hash.
type Row struct {
	bun.BaseModel `bun:"table:merchants,alias:m"`

	ID             int64           `bun:"id,pk"`
	Code           string          `bun:"code"`
	Name           string          `bun:"name"`
	APIKeyHash     *string         `bun:"api_key_hash"`
	SigningSecrets json.RawMessage `bun:"signing_secrets,type:jsonb"` // array of sealed texts, newest first
	Notify         json.RawMessage `bun:"notify,type:jsonb"`          // Settings
	CreatedAt      int64           `bun:"created_at"`
	UpdatedAt      int64           `bun:"updated_at"`
	DisabledAt     *int64          `bun:"disabled_at"`
	ResendWhenBack bool            `bun:"resend_when_back"`
	Limits         string          `bun:"limits"`        // JSON, Limit by currency; "" = the defaults
	RefundWindow   int64           `bun:"refund_window"` // µs; 0 = the default
	PayoutKeyHash  *string         `bun:"payout_key_hash"`
	PayoutIPs      string          `bun:"payout_ips"`  // JSON array of CIDRs; "" = any address
	PayoutFees     string          `bun:"payout_fees"` // JSON, fee.Rules; "" = none
}

// Settings are the notify settings of a merchant or subscriber, as stored.
type Settings struct {
	URLs        []string `json:"urls"`
	Ack         string   `json:"ack"` // "status" or "text"
	AckText     string   `json:"ack_text"`
	Format      string   `json:"format"`
	Schedule    string   `json:"schedule"` // the preset's name, or "list"
	WaitsMS     []int64  `json:"waits_ms"`
	TimeoutMS   int64    `json:"timeout_ms"`
	MaxInFlight int      `json:"max_in_flight"`
	// RatePerSecond limits the attempts of all nodes together; 0 = no limit.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	// Breaker overrides the program's settings, except in zero fields.
	Breaker Breaker `json:"breaker,omitzero"`
	// Events are the types to send; empty = all. Others are skipped.
	Events  []string `json:"events,omitempty"`
	Balance string   `json:"balance,omitempty"` // Failover (also if empty), Weighted or All
	// Endpoints are the endpoints in addition to URLs.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// NoRate is a breaker's RatePercent if no failure rate opens it: 0 stands for the
// program's setting.
const NoRate = -1

// Breaker holds the limits of a circuit breaker.
type Breaker struct {
	Failures    int   `json:"failures,omitempty"`
	OpenMS      int64 `json:"open_ms,omitempty"`
	RatePercent int   `json:"rate_percent,omitempty"` // or NoRate
	WindowMS    int64 `json:"window_ms,omitempty"`
	MinSamples  int   `json:"least,omitempty"`
	// SlowMS is the response time above which a response counts as a failure; 0 = none.
	SlowMS int64 `json:"slow_ms,omitempty"`
}

// Merchant is a merchant or subscriber in memory, with its secrets in plain text.
type Merchant struct {
	ID       int64
	Code     string
	Name     string // "" = its code
	Settings Settings
	// Secrets sign notifications, newest first.
	Secrets  [][]byte
	Disabled bool
	// ResendWhenBack: notifications given up while it was unavailable are resent once when its
	// breaker closes.
	ResendWhenBack bool
	// RefundWindow is how long a payment can be refunded.
	RefundWindow time.Duration
	// Limits are its own, by currency; see Limit.
	Limits map[string]Limit
	// PayoutKey is the hash of the key for its payouts; "" = none. PayoutIPs are the client addresses
	// that may use it; empty = any. PayoutFees are its fees for payouts.
	PayoutKey  string
	PayoutIPs  []netip.Prefix
	PayoutFees fee.Rules
	// Locked means that its secrets cannot be opened on this node: signed notifications wait.
	Locked bool
	// Broken means that its row cannot be read: its API calls are rejected and nothing is
	// sent until the row is repaired. Its settings are those that were read last, if any.
	Broken bool
	// Endpoints are all endpoints, the plain ones first, with their secrets in plain text.
	Endpoints []Endpoint
	// Subscriber: it is notified like a merchant, but has no orders and is found by id only.
	// Follows are the merchants whose events it gets; empty = all.
	Subscriber bool
	Follows    []string
}

// Limit is what is allowed to a merchant in one currency, in minor units.
type Limit struct {
	PayoutEach    int64 `json:"payout_each,omitempty"` // the largest payout; 0 = no limit
	PayoutDay     int64 `json:"payout_day,omitempty"`  // the sum of payouts in a day; 0 = no limit
	PayoutAuto    int64 `json:"payout_auto,omitempty"` // a payout up to which no person is asked
	RefundAuto    int64 `json:"refund_auto"`           // a refund up to which no person is asked
	RefundAutoDay int64 `json:"refund_auto_day"`       // the sum of these in a day
	Overdraft     int64 `json:"overdraft"`             // how far below zero refunds and payouts may take its balance
}

// DefaultLimit is that of a currency without one of its own.
var DefaultLimit = Limit{RefundAuto: 100_000, RefundAutoDay: 1_000_000}

// Limit is what is allowed to it in a currency.
func (m *Merchant) Limit(currency string) Limit {
	if own, ok := m.Limits[currency]; ok {
		return own
	}
	return DefaultLimit
}

// Recipient identifies it as the recipient of notifications.
func (m *Merchant) Recipient() recipient.Recipient { return recipient.Of(m.ID, m.Subscriber) }

// Timeout is the time limit of one attempt.
func (m *Merchant) Timeout() time.Duration {
	return time.Duration(m.Settings.TimeoutMS) * time.Millisecond
}

// Directory finds merchants. It is a snapshot: immutable, swapped as a whole.
type Directory struct {
	byID        map[int64]*Merchant
	byCode      map[string]*Merchant
	byKey       map[string]*Merchant // by hash of the API key
	byPayoutKey map[string]*Merchant // by hash
	subs        []*Merchant          // enabled subscribers
	broken      []*Merchant

	// Shadow means that nobody is notified of anything: another system does that.
	Shadow bool
}

// NewDirectory returns a Directory; keyHashes maps merchant ids to hashes of their API keys.
func NewDirectory(all []*Merchant, keyHashes map[int64]string) *Directory {
	b := &Directory{
		byID: map[int64]*Merchant{}, byCode: map[string]*Merchant{}, byKey: map[string]*Merchant{},
		byPayoutKey: map[string]*Merchant{},
	}
	for _, m := range all {
		b.byID[m.ID] = m
		if m.Broken || m.Locked {
			b.broken = append(b.broken, m)
		}
		if m.Subscriber {
			if !m.Disabled {
				b.subs = append(b.subs, m)
			}
			continue
		}
		b.byCode[m.Code] = m
		if h := keyHashes[m.ID]; h != "" && !m.Disabled {
			b.byKey[h] = m
		}
		if m.PayoutKey != "" && !m.Disabled {
			b.byPayoutKey[m.PayoutKey] = m
		}
	}
	return b
}

// All returns all merchants and subscribers, in no order.
func (b *Directory) All() []*Merchant { return slices.Collect(maps.Values(b.byID)) }

// Subscribers returns the enabled subscribers to a merchant's events of a type. A subscriber
// whose row cannot be read is included, and is checked again (Subscribes) once it can be.
func (b *Directory) Subscribers(code, event string) []*Merchant {
	var all []*Merchant
	for _, m := range b.subs {
		if m.Broken || m.Subscribes(code, event) {
			all = append(all, m)
		}
	}
	return all
}

// Subscribes reports whether a subscriber is notified of a merchant's events of a type.
func (m *Merchant) Subscribes(code, event string) bool {
	return takes(m.Follows, code) && m.Wants(event)
}

// AllBroken returns the merchants and subscribers whose rows cannot be read, or whose signing
// secrets cannot be opened on this node.
func (b *Directory) AllBroken() []*Merchant { return b.broken }

// Broken reports whether the row of a merchant or subscriber cannot be read.
func (b *Directory) Broken(id int64) bool {
	m := b.byID[id]
	return m != nil && m.Broken
}

// Subscriber returns the enabled subscriber with the code, or nil.
func (b *Directory) Subscriber(code string) *Merchant {
	for _, m := range b.subs {
		if m.Code == code {
			return m
		}
	}
	return nil
}

// ByID returns the merchant or subscriber, or nil.
func (b *Directory) ByID(id int64) *Merchant { return b.byID[id] }

// ByCode returns the merchant, or nil.
func (b *Directory) ByCode(code string) *Merchant { return b.byCode[code] }

// ByKeyHash returns the enabled merchant with the API key's hash, or nil.
func (b *Directory) ByKeyHash(hash string) *Merchant { return b.byKey[hash] }

// ByPayoutKeyHash returns the enabled merchant with the payout key's hash, or nil.
func (b *Directory) ByPayoutKeyHash(hash string) *Merchant { return b.byPayoutKey[hash] }
