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

// SubscriptionRow is one of the house's own systems as stored.
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

// SubscriptionSecretPlace is where a subscription's signing secrets are sealed.
func SubscriptionSecretPlace(code string) seal.Place {
	return seal.Place{Table: SubscriptionsTable, Row: code, Field: "signing_secret"}
}

// EndpointOwner is the row whose endpoints are sealed.
type EndpointOwner struct{ Table, Code string }

func (o EndpointOwner) place(endpoint, field string) seal.Place {
	return seal.Place{Table: o.Table, Row: o.Code, Field: "notify.endpoints." + endpoint + "." + field}
}

// SealEndpoints seals the secret fields of endpoints.
func SealEndpoints(keys *seal.Keyring, owner EndpointOwner, open []merchant.Endpoint) []merchant.Endpoint {
	sealed, _ := mapEndpoints(owner, open, func(p seal.Place, v string) (string, error) {
		return keys.Seal(p, []byte(v)), nil
	})
	return sealed
}

// OpenEndpoints makes the secret fields of stored endpoints readable.
func OpenEndpoints(keys *seal.Keyring, owner EndpointOwner, sealed []merchant.Endpoint) ([]merchant.Endpoint, error) {
	return mapEndpoints(owner, sealed, func(p seal.Place, v string) (string, error) {
		plain, err := keys.Open(p, v)
		return string(plain), err
	})
}

// AnySecret says whether a stored secret of the endpoints is as asked.
func AnySecret(all []merchant.Endpoint, is func(sealed string) bool) bool {
	found := false
	_, _ = mapEndpoints(EndpointOwner{}, all, func(_ seal.Place, v string) (string, error) {
		found = found || is(v)
		return v, nil
	})
	return found
}

// mapEndpoints returns copies with every secret changed.
func mapEndpoints(owner EndpointOwner, all []merchant.Endpoint, change func(seal.Place, string) (string, error)) ([]merchant.Endpoint, error) {
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

// addressKey names one address of a merchant or subscription.
type addressKey struct {
	OwnerID  int64
	Endpoint string
}

// disabledAddresses reads the addresses to which nothing is sent.
func disabledAddresses(ctx context.Context, q bun.IDB) (all []addressKey, err error) {
	err = q.NewRaw("SELECT owner_id, endpoint FROM endpoint_health WHERE disabled_at IS NOT NULL ORDER BY owner_id, endpoint").Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read disabled addresses: %w", err)
	}
	return all, nil
}

// address fills in a merchant's endpoints. Where secrets do not open, what goes there
// waits.
func (s *Store) address(m *merchant.Merchant, owner EndpointOwner, disabled map[addressKey]bool) {
	open, err := OpenEndpoints(s.keys, owner, m.Settings.Endpoints)
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
		e.Disabled = disabled[addressKey{m.ID, e.Name}]
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

// house loads the house's own systems.
func (s *Store) house(ctx context.Context, q bun.IDB, disabled map[addressKey]bool) ([]*merchant.Merchant, error) {
	rows, unread, err := readRows[SubscriptionRow](ctx, q, SubscriptionsTable)
	if err != nil {
		return nil, err
	}
	all := make([]*merchant.Merchant, 0, len(rows))
	for _, r := range unread {
		all = append(all, s.unread(r, SubscriptionsTable))
	}
	for _, r := range rows {
		m := &merchant.Merchant{ID: r.ID, Code: r.Code, Disabled: r.DisabledAt != nil, House: true}
		var unsigned error
		m.Secrets, unsigned = OpenSubscriptionSecrets(s.keys, r)
		unknown := json.Unmarshal(r.Merchants, &m.Follows)
		if unknown != nil {
			unknown = fmt.Errorf("merchants: %w", unknown)
		}
		s.read(m, EndpointOwner{SubscriptionsTable, r.Code}, r.Notify, disabled, unsigned, unknown)
		all = append(all, m)
	}
	return all, nil
}
