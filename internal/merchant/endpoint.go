package merchant

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"slices"
	"time"
)

// Policies for choosing among the endpoints of one channel.
const (
	Failover = "failover" // in order; the next one if one fails
	Weighted = "weighted" // by weight, then as Failover
	All      = "all"      // each one, with its own attempts
)

// WebhookChannel is the channel of plain endpoints.
const WebhookChannel = "webhook"

// Endpoint is one endpoint of a merchant or subscriber. Headers, Credentials and ClientKey
// are sealed texts as stored, and plain texts in a Directory.
type Endpoint struct {
	Name    string            `json:"name"` // for a plain endpoint its URL
	Channel string            `json:"channel"`
	URL     string            `json:"url"`
	Events  []string          `json:"events,omitempty"` // event types sent to it; empty = all
	Weight  int               `json:"weight"`
	Format  string            `json:"format"`
	Headers map[string]string `json:"headers,omitempty"`
	// DigestMS combines the events of this time span into one message; 0 = each event is
	// sent at once.
	DigestMS    int64             `json:"digest_ms,omitempty"`
	Credentials map[string]string `json:"credentials,omitempty"`
	ClientCert  string            `json:"client_cert,omitempty"` // PEM
	ClientKey   string            `json:"client_key,omitempty"`

	// Certificate is ClientCert and ClientKey, in a Directory; nil = none.
	Certificate *tls.Certificate `json:"-"`
	// Disabled means that nothing is sent here until an operator enables it again.
	Disabled bool `json:"-"`
	// Locked means that its secrets do not open on this node: its notifications wait.
	Locked bool `json:"-"`
}

// takes reports whether a list of event types includes one; an empty list includes all.
func takes(events []string, event string) bool {
	return len(events) == 0 || slices.Contains(events, event)
}

// Takes reports whether events of the type are sent to the endpoint.
func (e *Endpoint) Takes(event string) bool { return takes(e.Events, event) }

// Wants reports whether the merchant is notified of events of the type.
func (m *Merchant) Wants(event string) bool { return takes(m.Settings.Events, event) }

// Endpoint returns the endpoint with the name, or nil.
func (m *Merchant) Endpoint(name string) *Endpoint {
	for i := range m.Endpoints {
		if m.Endpoints[i].Name == name {
			return &m.Endpoints[i]
		}
	}
	return nil
}

// Key identifies the endpoint in URLs and forms: its name, or a digest of it if that is
// the URL, which may contain a token.
func (e *Endpoint) Key() string {
	if e.Name != e.URL {
		return e.Name
	}
	sum := sha256.Sum256([]byte(e.URL))
	return hex.EncodeToString(sum[:8])
}

// Channels returns the channels for events of a type, in the order of the endpoints.
func (m *Merchant) Channels(event string) []string {
	var names []string
	for i := range m.Endpoints {
		if e := &m.Endpoints[i]; e.Takes(event) && !slices.Contains(names, e.Channel) {
			names = append(names, e.Channel)
		}
	}
	return names
}

// Digest returns the digest period of a channel for an event type: that of the first endpoint
// that takes the type.
func (m *Merchant) Digest(channel, event string) time.Duration {
	for i := range m.Endpoints {
		if e := &m.Endpoints[i]; e.Channel == channel && e.Takes(event) {
			return e.Digest()
		}
	}
	return 0
}

// Digests reports whether deliveries to an endpoint, or to a channel if the name is empty,
// are combined into a digest. For a channel its first endpoint decides.
func (m *Merchant) Digests(channel, endpoint, event string) bool {
	if endpoint == "" {
		return m.Digest(channel, event) > 0
	}
	e := m.Endpoint(endpoint)
	return e != nil && e.Channel == channel && e.DigestMS > 0
}

// Digest returns the period of one digest; 0 = none.
func (e *Endpoint) Digest() time.Duration { return time.Duration(e.DigestMS) * time.Millisecond }

// Addresses returns the plain endpoints without duplicates, followed by the named ones.
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
