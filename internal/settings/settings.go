// Package settings is what `apply` declared, as this node sees it: suppliers with
// their keys parsed and merchants with their secrets open, in memory.
//
// Every change bumps one version row in its own transaction. Each node looks at
// that row and swaps in a whole new snapshot, so that a request never sees half
// of a change.
package settings

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// SupplierRow is a supplier as stored. The values of secret fields inside Config
// are sealed texts.
type SupplierRow struct {
	bun.BaseModel `bun:"table:suppliers,alias:su"`

	ID         int64           `bun:"id,pk"`
	Code       string          `bun:"code"`
	Kind       string          `bun:"kind"`
	AccountID  int64           `bun:"account_id"`
	Enabled    bool            `bun:"enabled"`
	AllowIPs   json.RawMessage `bun:"allow_ips,type:jsonb"` // array of CIDRs
	Config     json.RawMessage `bun:"config,type:jsonb"`
	CreatedAt  int64           `bun:"created_at"`
	UpdatedAt  int64           `bun:"updated_at"`
	DisabledAt *int64          `bun:"disabled_at"`
}

// Snapshot is one version of the settings. It is immutable.
type Snapshot struct {
	Version   int64
	Suppliers *supplier.Registry
	Merchants *merchant.Directory
}

// Unreadable names the suppliers, merchants and subscriptions whose rows cannot be used
// here, as in "merchant m1".
func (s *Snapshot) Unreadable() []string {
	var names []string
	for _, code := range s.Suppliers.AllBroken() {
		names = append(names, "supplier "+code)
	}
	for _, m := range s.Merchants.AllBroken() {
		if m.House {
			names = append(names, "subscription "+m.Code)
		} else {
			names = append(names, "merchant "+m.Code)
		}
	}
	return names
}

// Store holds the current snapshot.
type Store struct {
	db      *db.DB
	kinds   supplier.Kinds
	keys    *seal.Keyring
	log     *slog.Logger
	refresh sync.Mutex
	current atomic.Pointer[Snapshot]
}

// NewStore returns a Store with an empty snapshot; call Refresh.
func NewStore(d *db.DB, kinds supplier.Kinds, keys *seal.Keyring, log *slog.Logger) *Store {
	s := &Store{db: d, kinds: kinds, keys: keys, log: log}
	s.current.Store(&Snapshot{Merchants: merchant.NewDirectory(nil, nil)})
	return s
}

// Current is the snapshot in force.
func (s *Store) Current() *Snapshot { return s.current.Load() }

// Merchants is the current book of merchants.
func (s *Store) Merchants() *merchant.Directory { return s.Current().Merchants }

// Refresh reads the version row and, where it has moved, everything.
// Call it at least every second, and on a miss.
func (s *Store) Refresh(ctx context.Context) error {
	s.refresh.Lock()
	defer s.refresh.Unlock()
	version, err := Version(ctx, s.db)
	if err != nil {
		return err
	}
	if version == s.Current().Version {
		return nil
	}
	next := new(Snapshot)
	// As of one moment: a change of a supplier and a merchant that is committed while
	// they are read would be in force by half.
	if err := s.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
		if next.Version, err = readVersion(ctx, tx); err != nil {
			return err
		}
		if next.Suppliers, err = s.suppliers(ctx, tx); err != nil {
			return err
		}
		next.Merchants, err = s.merchants(ctx, tx)
		return err
	}); err != nil {
		return err
	}
	s.current.Store(next)
	return nil
}

// Version is the version of the settings in the database.
func Version(ctx context.Context, d *db.DB) (int64, error) { return readVersion(ctx, d.Read) }

func readVersion(ctx context.Context, q bun.IDB) (version int64, err error) {
	if err := q.NewRaw("SELECT value FROM settings WHERE name = 'config_version'").Scan(ctx, &version); err != nil {
		return 0, fmt.Errorf("read the version of the settings: %w", err)
	}
	return version, nil
}

// Bump says to every node that the settings changed; call it in the transaction
// of the change.
func Bump(ctx context.Context, tx db.Tx) error {
	if _, err := tx.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(ctx); err != nil {
		return fmt.Errorf("bump the version of the settings: %w", err)
	}
	return nil
}

// suppliers loads all suppliers. One whose config cannot be used (a key that no
// longer opens, say) is left out and logged: the others must go on.
func (s *Store) suppliers(ctx context.Context, q bun.IDB) (*supplier.Registry, error) {
	rows, unread, err := readRows[SupplierRow](ctx, q, "suppliers")
	if err != nil {
		return nil, err
	}
	entries, broken := make([]supplier.Entry, 0, len(rows)), map[string]int64{}
	for _, r := range unread {
		s.log.Error("a supplier cannot be used", "supplier", r.Code, "error", r.err)
		broken[r.Code] = r.ID
	}
	for _, r := range rows {
		e, err := s.entry(r)
		if err != nil {
			s.log.Error("a supplier cannot be used", "supplier", r.Code, "error", err)
			broken[r.Code] = r.ID
			continue
		}
		entries = append(entries, e)
	}
	return supplier.NewRegistry(entries, broken)
}

func (s *Store) entry(r SupplierRow) (supplier.Entry, error) {
	config, err := OpenConfig(s.kinds, s.keys, r)
	if err != nil {
		return supplier.Entry{}, err
	}
	adapter, err := s.kinds.New(r.Kind, r.Code, config)
	if err != nil {
		return supplier.Entry{}, err
	}
	var allow []netip.Prefix
	if err := json.Unmarshal(r.AllowIPs, &allow); err != nil {
		return supplier.Entry{}, fmt.Errorf("allow_ips: %w", err)
	}
	return supplier.Entry{
		ID: r.ID, Code: r.Code, Kind: r.Kind, Enabled: r.Enabled && r.DisabledAt == nil,
		AllowIPs: allow, Adapter: adapter, AccountID: r.AccountID,
	}, nil
}

// SecretPlace is where a merchant's signing secrets are sealed.
func SecretPlace(code string) seal.Place {
	return seal.Place{Table: "merchants", Row: code, Field: "signing_secret"}
}

// merchants loads all merchants. One whose row cannot be read is marked and logged: the
// others must go on.
func (s *Store) merchants(ctx context.Context, q bun.IDB) (*merchant.Directory, error) {
	rows, unread, err := readRows[merchant.Row](ctx, q, MerchantsTable)
	if err != nil {
		return nil, err
	}
	addresses, err := disabledAddresses(ctx, q)
	if err != nil {
		return nil, err
	}
	disabled := make(map[addressKey]bool, len(addresses))
	for _, a := range addresses {
		disabled[a] = true
	}
	all := make([]*merchant.Merchant, 0, len(rows))
	hashes := make(map[int64]string, len(rows))
	for _, r := range unread {
		all = append(all, s.unread(r, MerchantsTable))
		var hash sql.NullString // its calls are answered as what they are: its own
		if err := q.NewRaw("SELECT api_key_hash FROM merchants WHERE code = ?", r.Code).Scan(ctx, &hash); err != nil {
			return nil, fmt.Errorf("read merchants: %w", err)
		}
		hashes[r.ID] = hash.String
	}
	for _, r := range rows {
		m := &merchant.Merchant{ID: r.ID, Code: r.Code, Disabled: r.DisabledAt != nil}
		if r.APIKeyHash != nil {
			hashes[r.ID] = *r.APIKeyHash
		}
		var unsigned error
		m.Secrets, unsigned = OpenSecrets(s.keys, r)
		s.read(m, EndpointOwner{MerchantsTable, r.Code}, r.Notify, disabled, unsigned)
		all = append(all, m)
	}
	house, err := s.house(ctx, q, disabled)
	if err != nil {
		return nil, err
	}
	return merchant.NewDirectory(append(all, house...), hashes), nil
}

// read fills in how a recipient is notified. What else of its row cannot be read is in
// errs. Secrets that do not open are a fault of this node's keys: what is to be signed
// waits, for another node or a repair, and everything else goes on.
func (s *Store) read(m *merchant.Merchant, owner EndpointOwner, notify json.RawMessage, disabled map[addressKey]bool, errs ...error) {
	errs = slices.DeleteFunc(errs, func(err error) bool {
		if !errors.Is(err, seal.ErrKey) && !errors.Is(err, seal.ErrSealed) {
			return false
		}
		m.Locked = true
		s.log.Error("signing secrets cannot be opened: notifications that they sign wait", owner.Table, owner.Code, "error", err)
		return true
	})
	var now merchant.Settings
	if err := json.Unmarshal(notify, &now); err != nil {
		errs = append(errs, fmt.Errorf("notify settings: %w", err))
		if last := s.Merchants().ByID(m.ID); last != nil {
			m.Settings, m.Endpoints = last.Settings, last.Endpoints
		}
	} else {
		m.Settings = now
		s.address(m, owner, disabled)
	}
	if err := errors.Join(errs...); err != nil {
		m.Broken = true
		s.log.Error("settings cannot be read: it is sent nothing until they are repaired", owner.Table, owner.Code, "error", err)
	}
}

// unread is a recipient of whose row nothing but its id and code can be read. It keeps
// the settings that were read last.
func (s *Store) unread(r unreadRow, table string) *merchant.Merchant {
	s.log.Error("a row cannot be read: it is sent nothing until it is repaired", table, r.Code, "error", r.err)
	m := &merchant.Merchant{ID: r.ID, Code: r.Code, House: table == SubscriptionsTable, Broken: true}
	if last := s.Merchants().ByID(r.ID); last != nil {
		m.Settings, m.Endpoints, m.Follows, m.Disabled = last.Settings, last.Endpoints, last.Follows, last.Disabled
	}
	return m
}

// OpenSecrets returns a merchant's signing keys, newest first.
func OpenSecrets(keys *seal.Keyring, r merchant.Row) ([][]byte, error) {
	return openSecrets(keys, SecretPlace(r.Code), r.SigningSecrets)
}

// OpenSubscriptionSecrets returns a subscription's signing keys, newest first.
func OpenSubscriptionSecrets(keys *seal.Keyring, r SubscriptionRow) ([][]byte, error) {
	return openSecrets(keys, SubscriptionSecretPlace(r.Code), r.SigningSecrets)
}

func openSecrets(keys *seal.Keyring, place seal.Place, stored json.RawMessage) ([][]byte, error) {
	var sealed []string
	if err := json.Unmarshal(stored, &sealed); err != nil {
		return nil, fmt.Errorf("signing secrets: %w", err)
	}
	open := make([][]byte, len(sealed))
	for i, text := range sealed {
		var err error
		if open[i], err = keys.Open(place, text); err != nil {
			return nil, err
		}
	}
	return open, nil
}
