package settings

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// SubscriptionRow is a subscription as stored.
type SubscriptionRow struct {
	bun.BaseModel `bun:"table:subscriptions,alias:sb"`

	ID             int64           `bun:"id,pk"`
	Code           string          `bun:"code"`
	Name           string          `bun:"name"`
	Merchants      json.RawMessage `bun:"merchants,type:jsonb"`       // array of codes, or null for all
	SigningSecrets json.RawMessage `bun:"signing_secrets,type:jsonb"` // array of sealed texts, newest first
	Notify         json.RawMessage `bun:"notify,type:jsonb"`          // merchant.Settings
	CreatedAt      int64           `bun:"created_at"`
	UpdatedAt      int64           `bun:"updated_at"`
	DisabledAt     *int64          `bun:"disabled_at"`
}

// Tables that own endpoints, as places of secrets.
const (
	MerchantsTable     = "merchants"
	SubscriptionsTable = "subscriptions"
)

// EndpointOwner is a merchant or subscription: the row that its secrets are sealed for.
type EndpointOwner struct{ Table, Code string }

// Signing is the place of its signing secrets.
func (o EndpointOwner) Signing() seal.Place {
	return seal.Place{Table: o.Table, Row: o.Code, Field: "signing_secret"}
}

func (o EndpointOwner) place(endpoint, field string) seal.Place {
	return seal.Place{Table: o.Table, Row: o.Code, Field: "notify.endpoints." + endpoint + "." + field}
}

// SecretPlace is the place of a merchant's signing secrets.
func SecretPlace(code string) seal.Place { return EndpointOwner{MerchantsTable, code}.Signing() }

// MapSecret converts a stored secret: to sealed, plain or resealed form.
type MapSecret func(place seal.Place, text string) (string, error)

func sealing(keys *seal.Keyring) MapSecret {
	return func(place seal.Place, text string) (string, error) { return keys.Seal(place, []byte(text)), nil }
}

func opening(keys *seal.Keyring) MapSecret {
	return func(place seal.Place, text string) (string, error) {
		plain, err := keys.Open(place, text)
		return string(plain), err
	}
}

// MapSigning returns signing secrets with each one changed.
func MapSigning(owner EndpointOwner, stored json.RawMessage, change MapSecret) (texts []string, err error) {
	if err := json.Unmarshal(stored, &texts); err != nil {
		return nil, fmt.Errorf("signing secrets: %w", err)
	}
	for i := range texts {
		if texts[i], err = change(owner.Signing(), texts[i]); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// OpenSecrets returns signing keys, newest first.
func OpenSecrets(keys *seal.Keyring, owner EndpointOwner, stored json.RawMessage) ([][]byte, error) {
	texts, err := MapSigning(owner, stored, opening(keys))
	if err != nil {
		return nil, err
	}
	open := make([][]byte, len(texts))
	for i, text := range texts {
		open[i] = []byte(text)
	}
	return open, nil
}

// SealEndpoints returns copies with their secrets sealed.
func SealEndpoints(keys *seal.Keyring, owner EndpointOwner, plain []merchant.Endpoint) []merchant.Endpoint {
	sealed, _ := MapEndpoints(owner, plain, sealing(keys)) // sealing does not fail
	return sealed
}

// MapEndpoints returns copies with every secret changed.
func MapEndpoints(owner EndpointOwner, all []merchant.Endpoint, change MapSecret) ([]merchant.Endpoint, error) {
	out := slices.Clone(all)
	for i := range out {
		e := &out[i]
		e.Headers, e.Credentials = maps.Clone(e.Headers), maps.Clone(e.Credentials)
		for field, values := range map[string]map[string]string{"headers": e.Headers, "credentials": e.Credentials} {
			for name, v := range values {
				changed, err := change(owner.place(e.Name, field+"."+name), v)
				if err != nil {
					return nil, fmt.Errorf("endpoint %s: %s.%s: %w", e.Name, field, name, err)
				}
				values[name] = changed
			}
		}
		if e.ClientKey == "" {
			continue
		}
		changed, err := change(owner.place(e.Name, "client_key"), e.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: client_key: %w", e.Name, err)
		}
		e.ClientKey = changed
	}
	return out, nil
}

// endpointKey identifies an endpoint of a merchant or subscription.
type endpointKey struct {
	RecipientID int64
	Endpoint    string
}

// disabledEndpoints reads the disabled endpoints.
func disabledEndpoints(ctx context.Context, q bun.IDB) (all []endpointKey, err error) {
	err = q.NewRaw("SELECT recipient_id, endpoint FROM endpoint_health WHERE disabled_at IS NOT NULL ORDER BY recipient_id, endpoint").Scan(
		ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read disabled endpoints: %w", err)
	}
	return all, nil
}

// endpoints fills in a recipient's endpoints. Notifications to endpoints whose secrets cannot
// be opened wait.
func (s *Store) endpoints(m *merchant.Merchant, owner EndpointOwner, disabled map[endpointKey]bool) {
	open, err := MapEndpoints(owner, m.Settings.Endpoints, opening(s.keys))
	if err != nil {
		s.log.Error("the secrets of endpoints cannot be opened", owner.Table, owner.Code, "error", err)
		open = slices.Clone(m.Settings.Endpoints)
		for i := range open {
			open[i].Locked, open[i].ClientCert = true, ""
		}
	}
	m.Settings.Endpoints = open
	m.Endpoints = m.Settings.Addresses()
	for i := range m.Endpoints {
		e := &m.Endpoints[i]
		e.Disabled = disabled[endpointKey{m.ID, e.Name}]
		if e.ClientCert == "" {
			continue
		}
		pair, err := tls.X509KeyPair([]byte(e.ClientCert), []byte(e.ClientKey))
		if err != nil {
			s.log.Error("a client certificate cannot be used", owner.Table, owner.Code, "endpoint", e.Name, "error", err)
			continue
		}
		e.Certificate = &pair
	}
}

// subscriptions loads all subscriptions.
func (s *Store) subscriptions(ctx context.Context, q bun.IDB, disabled map[endpointKey]bool) ([]*merchant.Merchant, error) {
	rows, unread, err := readRows[SubscriptionRow](ctx, q, SubscriptionsTable)
	if err != nil {
		return nil, err
	}
	all := make([]*merchant.Merchant, 0, len(rows))
	for _, r := range unread {
		all = append(all, s.unread(r, SubscriptionsTable))
	}
	for _, r := range rows {
		m := &merchant.Merchant{ID: r.ID, Code: r.Code, Disabled: r.DisabledAt != nil, Subscriber: true}
		unknown := json.Unmarshal(r.Merchants, &m.Follows)
		if unknown != nil {
			unknown = fmt.Errorf("merchants: %w", unknown)
		}
		s.read(m, EndpointOwner{SubscriptionsTable, r.Code}, r.SigningSecrets, r.Notify, disabled, unknown)
		all = append(all, m)
	}
	return all, nil
}
