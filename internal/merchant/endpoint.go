package merchant

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"slices"
	"time"
)

// Ways to choose among the addresses of one channel.
const (
	Failover = "failover" // in their order; the next one where one fails
	Weighted = "weighted" // by weight, then as with failover
	All      = "all"      // each of them is told
)

// WebhookChannel is the channel of plain addresses.
const WebhookChannel = "webhook"

// Endpoint is one address of a merchant: where, over which channel, and how it
// wants to be met. The values of Headers and Credentials and the ClientKey are
// sealed texts as stored, and readable in a Directory.
type Endpoint struct {
	Name    string            `json:"name"` // a plain address is named by its URL
	Channel string            `json:"channel"`
	URL     string            `json:"url"`
	Events  []string          `json:"events,omitempty"` // types that go here; empty = all
	Weight  int               `json:"weight"`
	Format  string            `json:"format"`
	Headers map[string]string `json:"headers,omitempty"`
	// DigestMS gathers what happens within so much time into one message; 0 = each
	// event is sent at once.
	DigestMS    int64             `json:"digest_ms,omitempty"`
	Credentials map[string]string `json:"credentials,omitempty"`
	ClientCert  string            `json:"client_cert,omitempty"` // PEM
	ClientKey   string            `json:"client_key,omitempty"`

	// Certificate is ClientCert and ClientKey, in a Directory; nil = none.
	Certificate *tls.Certificate `json:"-"`
	// Disabled says that nothing is sent here until somebody enables it again.
	Disabled bool `json:"-"`
	// Locked says that its secrets do not open on this node: what goes here waits.
	Locked bool `json:"-"`
}

// takes says whether a list of event types has one; an empty list has all.
func takes(events []string, event string) bool {
	return len(events) == 0 || slices.Contains(events, event)
}

// Takes says whether events of the type go to the endpoint.
func (e *Endpoint) Takes(event string) bool { return takes(e.Events, event) }

// Wants says whether the merchant is told of events of the type at all.
func (m *Merchant) Wants(event string) bool { return takes(m.Settings.Events, event) }

// Endpoint finds an address by its name, or nil.
func (m *Merchant) Endpoint(name string) *Endpoint {
	for i := range m.Endpoints {
		if m.Endpoints[i].Name == name {
			return &m.Endpoints[i]
		}
	}
	return nil
}

// Key names the address to people: by its name, or where that is the URL, which
// may hold a token, by a digest of it.
func (e *Endpoint) Key() string {
	if e.Name != e.URL {
		return e.Name
	}
	sum := sha256.Sum256([]byte(e.URL))
	return hex.EncodeToString(sum[:8])
}

// Channels are the channels by which events of a type reach the merchant, in the
// order of its addresses.
func (m *Merchant) Channels(event string) []string {
	var names []string
	for i := range m.Endpoints {
		if e := &m.Endpoints[i]; e.Takes(event) && !slices.Contains(names, e.Channel) {
			names = append(names, e.Channel)
		}
	}
	return names
}

// Digest is how long events of the type are gathered for a channel, as its first
// address says.
func (m *Merchant) Digest(channel, event string) time.Duration {
	for i := range m.Endpoints {
		if e := &m.Endpoints[i]; e.Channel == channel && e.Takes(event) {
			return e.Digest()
		}
	}
	return 0
}

// Digests says whether what is for an address, or for a channel's in turn where the
// name is empty, goes into a digest. Its first address says so, whichever it goes to.
func (m *Merchant) Digests(channel, endpoint, event string) bool {
	if endpoint == "" {
		return m.Digest(channel, event) > 0
	}
	e := m.Endpoint(endpoint)
	return e != nil && e.Channel == channel && e.DigestMS > 0
}

// Digest is how long events are gathered before they are sent; 0 = not at all.
func (e *Endpoint) Digest() time.Duration { return time.Duration(e.DigestMS) * time.Millisecond }

// Addresses are the plain addresses, each once, and the named ones as one list.
func (s Settings) Addresses() []Endpoint {
	all := make([]Endpoint, 0, len(s.URLs)+len(s.Endpoints))
	for i, u := range s.URLs {
		if slices.Contains(s.URLs[:i], u) {
			continue
		}
		all = append(all, Endpoint{Name: u, Channel: WebhookChannel, URL: u, Weight: 1, Format: s.Format})
	}
	return append(all, s.Endpoints...)
}
