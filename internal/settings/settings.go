// Package settings manages suppliers, merchants and subscriptions: in the database, and in the
// memory of each node with keys parsed and secrets in plain text.
//
// Every change raises one version row in its own transaction. Each node polls that row and
// swaps in a whole new snapshot, so that no request sees half a change.
package settings

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/access"
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

	ID               int64           `bun:"id,pk"`
	Code             string          `bun:"code"`
	Name             string          `bun:"name"`
	Kind             string          `bun:"kind"`
	AccountID        int64           `bun:"account_id"`
	Enabled          bool            `bun:"enabled"`
	AllowIPs         json.RawMessage `bun:"allow_ips,type:jsonb"` // array of CIDRs
	Config           json.RawMessage `bun:"config,type:jsonb"`
	CreatedAt        int64           `bun:"created_at"`
	UpdatedAt        int64           `bun:"updated_at"`
	DisabledAt       *int64          `bun:"disabled_at"`
	QueryAfter       int64           `bun:"query_after"` // µs; 0 = the default
	QueryRate        int64           `bun:"query_rate"`  // per second; 0 = the default
	QueryPending     bool            `bun:"query_pending"`
	RefundRepeat     bool            `bun:"refund_repeat"`
	PayoutQueryAfter int64           `bun:"payout_query_after"` // µs; 0 = the default
	PayoutRepeat     bool            `bun:"payout_repeat"`
}

// Defaults for querying a supplier.
const (
	queryAfter = 2 * time.Minute
	queryRate  = 50
	// payoutQueryAfter: a refused payout is believed from this age on.
	payoutQueryAfter = 30 * time.Minute
)

// Snapshot is one version of the settings. It is immutable.
type Snapshot struct {
	Version   int64
	Suppliers *supplier.Registry
	Merchants *merchant.Directory
	Rules     Rules
	Fees      Fees
	Roles     Grants
	costs     bool // a supplier costs something
}

// Unreadable names the suppliers, merchants and subscriptions whose rows cannot be used here,
// as in "merchant m1" or "calls of supplier s1 (merchant_serial)".
func (s *Snapshot) Unreadable() []string {
	var names []string
	for _, code := range s.Suppliers.AllBroken() {
		names = append(names, "supplier "+code)
	}
	for _, e := range s.Suppliers.AllUncallable() {
		names = append(names, fmt.Sprintf("calls of supplier %s (%s)", e.Code, e.Uncallable.Field))
	}
	for _, m := range s.Merchants.AllBroken() {
		if m.Subscriber {
			names = append(names, "subscription "+m.Code)
		} else {
			names = append(names, "merchant "+m.Code)
		}
	}
	return names
}

// MerchantName returns what a merchant is called; "" = it has no name, or there is none with this code.
func (s *Snapshot) MerchantName(code string) string {
	if m := s.Merchants.ByCode(code); m != nil {
		return m.Name
	}
	return ""
}

// SupplierName returns what a supplier is called, as MerchantName.
func (s *Snapshot) SupplierName(code string) string {
	e, _ := s.Suppliers.Lookup(code)
	return e.Name
}

// Store holds the current snapshot.
type Store struct {
	db      *db.DB
	kinds   supplier.Kinds
	out     supplier.Client
	shadow  bool // see InShadow
	keys    *seal.Keyring
	log     *slog.Logger
	policy  *access.Policy // learns the own roles; nil = nothing does
	refresh sync.Mutex
	current atomic.Pointer[Snapshot]
}

// NewStore returns a Store with an empty snapshot; call Refresh.
func NewStore(d *db.DB, kinds supplier.Kinds, keys *seal.Keyring, log *slog.Logger) *Store {
	s := &Store{db: d, kinds: kinds, keys: keys, log: log}
	s.current.Store(&Snapshot{Merchants: merchant.NewDirectory(nil, nil), Rules: DefaultRules()})
	return s
}

// InShadow sets whether the installation is in shadow mode. Call it before Refresh.
func (s *Store) InShadow(shadow bool) { s.shadow = shadow }

// CallThrough sets the client for calls to suppliers. Call it before Refresh; without it,
// suppliers cannot be called.
func (s *Store) CallThrough(out supplier.Client) { s.out = out }

// Current returns the current snapshot.
func (s *Store) Current() *Snapshot { return s.current.Load() }

// Rules returns the current rules of decisions.
func (s *Store) Rules() Rules { return s.Current().Rules }

// Merchants returns the current directory of merchants.
func (s *Store) Merchants() *merchant.Directory { return s.Current().Merchants }

// Refresh reads the version row and, if it has changed, all settings. Call it at least every
// second, and when a code is not found.
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
	// In one snapshot, so that a change committed in between is not read by half.
	if err := s.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
		if next.Version, err = readVersion(ctx, tx); err != nil {
			return err
		}
		if next.Suppliers, err = s.suppliers(ctx, tx); err != nil {
			return err
		}
		if next.Merchants, err = s.merchants(ctx, tx); err != nil {
			return err
		}
		if err = s.fees(ctx, tx, next); err != nil {
			return err
		}
		if next.Roles, err = readGrants(ctx, tx); err != nil {
			return err
		}
		next.Rules, err = s.rules(ctx, tx)
		return err
	}); err != nil {
		return err
	}
	if s.policy != nil {
		s.policy.SetOwn(next.Roles)
	}
	s.current.Store(next)
	return nil
}

// Version reads the version of the settings in the database.
func Version(ctx context.Context, d *db.DB) (int64, error) { return readVersion(ctx, d.Read) }

func readVersion(ctx context.Context, q bun.IDB) (version int64, err error) {
	if err := q.NewRaw("SELECT value FROM settings WHERE name = 'config_version'").Scan(ctx, &version); err != nil {
		return 0, fmt.Errorf("read the version of the settings: %w", err)
	}
	return version, nil
}

// IncrementVersion raises the version, so that every node reloads the settings; call it in the transaction
// of the change.
func IncrementVersion(ctx context.Context, tx db.Tx) error {
	if _, err := tx.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(ctx); err != nil {
		return fmt.Errorf("raise the version of the settings: %w", err)
	}
	return nil
}

// suppliers loads all suppliers. One whose config cannot be used (for example because a key
// cannot be opened) is left out and logged; the others are used.
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
		last, _ := s.Current().Suppliers.Lookup(e.Code)
		if now := e.Uncallable; now != nil && (last.Uncallable == nil || *last.Uncallable != *now) {
			s.log.Warn("a supplier cannot be called: its settings for calls are invalid; only callbacks are processed", "supplier", e.Code,
				"error", now)
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
	adapter, err := s.kinds.New(r.Kind, r.Code, config, s.out)
	uncallable := supplier.AsField(err)
	if err != nil && (uncallable == nil || !uncallable.Calls) {
		return supplier.Entry{}, err
	}
	var allow []netip.Prefix
	if err := json.Unmarshal(r.AllowIPs, &allow); err != nil {
		return supplier.Entry{}, fmt.Errorf("allow_ips: %w", err)
	}
	return supplier.Entry{
		ID: r.ID, Code: r.Code, Name: r.Name, Kind: r.Kind, Enabled: r.Enabled && r.DisabledAt == nil,
		AllowIPs: allow, Adapter: adapter, AccountID: r.AccountID, Uncallable: uncallable,
		QueryAfter: cmp.Or(time.Duration(r.QueryAfter)*time.Microsecond, queryAfter), QueryRate: int(cmp.Or(r.QueryRate, queryRate)),
		QueryPending:     r.QueryPending,
		RefundRepeat:     r.RefundRepeat,
		PayoutQueryAfter: cmp.Or(time.Duration(r.PayoutQueryAfter)*time.Microsecond, payoutQueryAfter), PayoutRepeat: r.PayoutRepeat,
	}, nil
}

// merchants loads all merchants and subscriptions. One whose row cannot be read is marked and
// logged; the others are used.
func (s *Store) merchants(ctx context.Context, q bun.IDB) (*merchant.Directory, error) {
	rows, unread, err := readRows[merchant.Row](ctx, q, MerchantsTable)
	if err != nil {
		return nil, err
	}
	list, err := disabledEndpoints(ctx, q)
	if err != nil {
		return nil, err
	}
	disabled := make(map[endpointKey]bool, len(list))
	for _, e := range list {
		disabled[e] = true
	}
	all := make([]*merchant.Merchant, 0, len(rows))
	hashes := make(map[int64]string, len(rows))
	for _, r := range unread {
		m := s.unread(r, MerchantsTable)
		all = append(all, m)
		var hash, payout sql.NullString // its API calls get settings_unreadable
		if err := q.NewRaw("SELECT api_key_hash, payout_key_hash FROM merchants WHERE code = ?", r.Code).Scan(ctx, &hash,
			&payout); err != nil {
			return nil, fmt.Errorf("read merchants: %w", err)
		}
		hashes[r.ID], m.PayoutKey = hash.String, payout.String
	}
	for _, r := range rows {
		m := &merchant.Merchant{
			ID: r.ID, Code: r.Code, Name: r.Name, Disabled: r.DisabledAt != nil, ResendWhenBack: r.ResendWhenBack,
			RefundWindow: windowOf(r.RefundWindow),
		}
		var limits, fees, ranges error
		m.Limits, limits = readLimits(r.Limits)
		m.PayoutFees, fees = readPayoutFees(r.PayoutFees)
		m.PayoutIPs, ranges = readRanges(r.PayoutIPs)
		if r.APIKeyHash != nil {
			hashes[r.ID] = *r.APIKeyHash
		}
		if r.PayoutKeyHash != nil {
			m.PayoutKey = *r.PayoutKeyHash
		}
		s.read(m, EndpointOwner{MerchantsTable, r.Code}, r.SigningSecrets, r.Notify, disabled, errors.Join(limits, fees, ranges))
		all = append(all, m)
	}
	subscriptions, err := s.subscriptions(ctx, q, disabled)
	if err != nil {
		return nil, err
	}
	directory := merchant.NewDirectory(append(all, subscriptions...), hashes)
	directory.Shadow = s.shadow
	return directory, nil
}

// read fills in how a recipient is notified; other is what else of its row cannot be read.
// Secrets that cannot be opened are a fault of this node's keys: signed notifications wait for
// another node or a repair, and everything else continues.
func (s *Store) read(m *merchant.Merchant, owner EndpointOwner, secrets, notify json.RawMessage, disabled map[endpointKey]bool,
	other error,
) {
	var err error
	m.Secrets, err = OpenSecrets(s.keys, owner, secrets)
	if errors.Is(err, seal.ErrKey) || errors.Is(err, seal.ErrSealed) {
		m.Locked = true
		s.log.Error("signing secrets cannot be opened: notifications that they sign wait", owner.Table, owner.Code, "error", err)
		err = nil
	}
	errs := []error{err, other}
	var now merchant.Settings
	if err := json.Unmarshal(notify, &now); err != nil {
		errs = append(errs, fmt.Errorf("notify settings: %w", err))
		if last := s.Merchants().ByID(m.ID); last != nil {
			m.Settings, m.Endpoints = last.Settings, last.Endpoints
		}
	} else {
		m.Settings = now
		s.endpoints(m, owner, disabled)
	}
	if err := errors.Join(errs...); err != nil {
		m.Broken = true
		s.log.Error("settings cannot be read: nothing is sent until they are repaired", owner.Table, owner.Code, "error", err)
	}
}

// unread returns a recipient of whose row only id and code can be read. It keeps the settings
// that were last read.
func (s *Store) unread(r unreadRow, table string) *merchant.Merchant {
	s.log.Error("a row cannot be read: nothing is sent until it is repaired", table, r.Code, "error", r.err)
	m := &merchant.Merchant{ID: r.ID, Code: r.Code, Subscriber: table == SubscriptionsTable, Broken: true}
	if last := s.Merchants().ByID(r.ID); last != nil {
		m.Name, m.Settings, m.Endpoints, m.Follows, m.Disabled = last.Name, last.Settings, last.Endpoints, last.Follows, last.Disabled
	}
	return m
}
