// Package merchant is who sells: keys, and how it wants to be told.
package merchant

import (
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

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
}

// Settings is how a merchant wants to be told (contract, `notify:`).
type Settings struct {
	URLs        []string `json:"urls"`
	Ack         string   `json:"ack"` // "status" or "text"
	AckText     string   `json:"ack_text"`
	Format      string   `json:"format"`
	Schedule    string   `json:"schedule"` // the preset's name, or "list"
	WaitsMS     []int64  `json:"waits_ms"`
	TimeoutMS   int64    `json:"timeout_ms"`
	MaxInFlight int      `json:"max_in_flight"`
	// RatePerSecond bounds the attempts of all nodes together; 0 = no bound.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	// Breaker holds what differs from the program's own; zero fields do not.
	Breaker Breaker `json:"breaker,omitzero"`
	// Events are the types that are sent; empty = all. The others are skipped.
	Events  []string `json:"events,omitempty"`
	Balance string   `json:"balance,omitempty"` // Failover (also where empty), Weighted or All
	// Endpoints are the addresses beside URLs.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// NoRate is a breaker's RatePercent where no rate of failures opens it: 0 stands
// for the program's own.
const NoRate = -1

// Breaker says when a merchant counts as unreachable.
type Breaker struct {
	Failures    int   `json:"failures,omitempty"`
	OpenMS      int64 `json:"open_ms,omitempty"`
	RatePercent int   `json:"rate_percent,omitempty"` // or NoRate
	WindowMS    int64 `json:"window_ms,omitempty"`
	Least       int   `json:"least,omitempty"`
	// SlowMS is the answer time from which on an answer counts as a failure; 0 =
	// none does.
	SlowMS int64 `json:"slow_ms,omitempty"`
}

// Merchant is a merchant as this node works with it: secrets open, in memory.
type Merchant struct {
	ID       int64
	Code     string
	Settings Settings
	// Secrets sign notifications, newest first.
	Secrets  [][]byte
	Disabled bool
	// Locked says that they do not open on this node: what is to be signed waits.
	Locked bool
	// Broken says that its row cannot be read here: nothing is taken from it or sent to
	// it until the row is repaired. Its settings are those that were read last, if any.
	Broken bool
	// Endpoints are all addresses, the plain ones first, with their secrets open.
	Endpoints []Endpoint
	// House marks one of the house's own systems: it is told like a merchant, but
	// sells nothing and is found by id alone. Follows are the merchants whose
	// events it is told; empty = all.
	House   bool
	Follows []string
}

// Recipient is whom notifications of it are for.
func (m *Merchant) Recipient() recipient.Recipient { return recipient.Of(m.ID, m.House) }

// Timeout is the longest that one notification attempt may take.
func (m *Merchant) Timeout() time.Duration {
	return time.Duration(m.Settings.TimeoutMS) * time.Millisecond
}

// Directory finds merchants. It is a snapshot: immutable, swapped as a whole.
type Directory struct {
	byID   map[int64]*Merchant
	byCode map[string]*Merchant
	byKey  map[string]*Merchant // by hash of the API key
	house  []*Merchant          // enabled ones
	broken []*Merchant
}

// NewDirectory makes a Directory; keyHashes holds a merchant's API key hash by its id.
func NewDirectory(all []*Merchant, keyHashes map[int64]string) *Directory {
	b := &Directory{byID: map[int64]*Merchant{}, byCode: map[string]*Merchant{}, byKey: map[string]*Merchant{}}
	for _, m := range all {
		b.byID[m.ID] = m
		if m.Broken || m.Locked {
			b.broken = append(b.broken, m)
		}
		if m.House {
			if !m.Disabled {
				b.house = append(b.house, m)
			}
			continue
		}
		b.byCode[m.Code] = m
		if h := keyHashes[m.ID]; h != "" && !m.Disabled {
			b.byKey[h] = m
		}
	}
	return b
}

// Subscribers are the house's own systems that are told of a merchant's events of
// a type. Of one whose row cannot be read it is not known: it is among them, and what
// it follows is looked at again when it is (Subscribes).
func (b *Directory) Subscribers(code, event string) []*Merchant {
	var all []*Merchant
	for _, h := range b.house {
		if h.Broken || h.Subscribes(code, event) {
			all = append(all, h)
		}
	}
	return all
}

// Subscribes says whether one of the house's own systems is told of a merchant's
// events of a type.
func (m *Merchant) Subscribes(code, event string) bool {
	return takes(m.Follows, code) && m.Wants(event)
}

// AllBroken are the merchants and systems of the house whose rows cannot be read, or
// whose secrets do not open here.
func (b *Directory) AllBroken() []*Merchant { return b.broken }

// Broken says whether the row of a merchant, or of a system of the house, cannot be
// read.
func (b *Directory) Broken(id int64) bool {
	m := b.byID[id]
	return m != nil && m.Broken
}

// Subscriber returns the enabled system of the house with the code, or nil.
func (b *Directory) Subscriber(code string) *Merchant {
	for _, h := range b.house {
		if h.Code == code {
			return h
		}
	}
	return nil
}

// ByID returns the merchant, or the system of the house, or nil.
func (b *Directory) ByID(id int64) *Merchant { return b.byID[id] }

// ByCode returns the merchant, or nil.
func (b *Directory) ByCode(code string) *Merchant { return b.byCode[code] }

// ByKeyHash returns the enabled merchant of an API key's hash, or nil.
func (b *Directory) ByKeyHash(hash string) *Merchant { return b.byKey[hash] }
