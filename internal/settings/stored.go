package settings

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/fee"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Env holds what is needed to read, check and write settings.
type Env struct {
	DB     *db.DB
	Keys   *seal.Keyring
	Kinds  supplier.Kinds
	Ledger *ledger.Ledger
	// CheckURL returns an error if notifications must not be sent to a URL.
	CheckURL func(string) error
	// Channels check addresses, by channel.
	Channels map[string]func(url string) error
	// Credentials check an endpoint's credentials, by channel. Their errors contain none.
	Credentials map[string]func(map[string]string) error
	// From package notify: event types, parsers of schedules, signing secrets and headers, and
	// how a disabled endpoint is enabled.
	Events         []string
	ParseSchedule  func(text string) (Schedule, error)
	ParseSecret    func(text string) ([]byte, error)
	CheckHeaders   func(map[string]string) error
	EnableEndpoint func(ctx context.Context, tx db.Tx, owner int64, endpoint string) error
	Defaults       Defaults
	// TestMode is on: keys that begin like its own would not reach the live merchants that they belong to.
	TestMode bool
}

// Defaults apply to recipients without their own settings. Zero values mean schedule day, 10 s,
// 10 in flight.
type Defaults struct {
	Schedule    Schedule
	Timeout     time.Duration
	MaxInFlight int
}

// Stored is the settings as of one time.
type Stored struct {
	env           Env
	version       int64
	suppliers     map[string]*SupplierRow
	merchants     map[string]*merchant.Row
	subscriptions map[string]*SubscriptionRow
	accounts      map[int64]string             // accounts at suppliers, by id
	disabled      map[int64][]string           // disabled endpoints, by owner
	payouts       map[string]*PayoutAccountRow // by merchant and code
	approval      *Approval                    // nil = not declared
	roles         map[string]*access.Own
	holders       map[string][]string // names of operators by own role
	fees          Fees
}

// Version is the version of the settings that were read.
func (s *Stored) Version() int64 { return s.version }

// Nothing returns the settings of an installation that has none.
func Nothing(env Env) *Stored {
	return &Stored{
		env: env, suppliers: map[string]*SupplierRow{}, merchants: map[string]*merchant.Row{},
		subscriptions: map[string]*SubscriptionRow{}, accounts: map[int64]string{}, disabled: map[int64][]string{},
		payouts: map[string]*PayoutAccountRow{}, roles: map[string]*access.Own{},
	}
}

// Read reads the settings.
func Read(ctx context.Context, env Env) (s *Stored, err error) {
	err = env.DB.Snapshot(ctx, func(ctx context.Context, q bun.IDB) error {
		s, err = ReadIn(ctx, env, q)
		return err
	})
	return s, err
}

// ReadIn reads the settings in a transaction, whose snapshot or lock (see LockVersion) keeps
// them from changing meanwhile.
func ReadIn(ctx context.Context, env Env, q bun.IDB) (s *Stored, err error) {
	s = Nothing(env)
	if s.version, err = readVersion(ctx, q); err != nil {
		return nil, err
	}
	if err := rowsByCode(ctx, q, s.suppliers, func(r *SupplierRow) string { return r.Code }); err != nil {
		return nil, fmt.Errorf("read suppliers: %w", err)
	}
	if err := rowsByCode(ctx, q, s.merchants, func(r *merchant.Row) string { return r.Code }); err != nil {
		return nil, fmt.Errorf("read merchants: %w", err)
	}
	if err := rowsByCode(ctx, q, s.subscriptions, func(r *SubscriptionRow) string { return r.Code },
		"CAST(disabled_at AS BIGINT) AS disabled_at"); err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	if err := rowsByCode(ctx, q, s.roles, func(r *access.Own) string { return r.Name },
		"CAST(disabled_at AS BIGINT) AS disabled_at"); err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	if s.holders, err = access.Holders(ctx, q); err != nil {
		return nil, err
	}
	accounts, err := supplierAccounts(ctx, q)
	for _, a := range accounts {
		s.accounts[a.ID] = a.Name
	}
	if err != nil {
		return nil, err
	}
	disabled, err := disabledEndpoints(ctx, q)
	for _, a := range disabled {
		s.disabled[a.RecipientID] = append(s.disabled[a.RecipientID], a.Endpoint)
	}
	if err != nil {
		return nil, err
	}
	if s.fees, err = ReadFees(ctx, q); err != nil {
		return nil, err
	}
	if err := s.readPayoutAccounts(ctx, q); err != nil {
		return nil, err
	}
	s.approval, _, err = readApproval(ctx, q)
	return s, err
}

// rowsByCode omits the timestamps: SQLite may hold text there, which must not prevent the row
// from being applied again.
func rowsByCode[R any](ctx context.Context, q bun.IDB, into map[string]*R, code func(*R) string, columns ...string) error {
	var rows []R
	read := q.NewSelect().Model(&rows).ExcludeColumn("created_at", "updated_at", "disabled_at")
	for _, c := range columns {
		read.ColumnExpr(c)
	}
	err := read.Scan(ctx)
	for i := range rows {
		into[code(&rows[i])] = &rows[i]
	}
	return err
}

// Codes returns the sorted codes of all suppliers, merchants and subscriptions.
func (s *Stored) Codes() (suppliers, merchants, subscriptions []string) {
	return sortedKeys(s.suppliers), sortedKeys(s.merchants), sortedKeys(s.subscriptions)
}

// Supplier returns a stored supplier, or nil.
func (s *Stored) Supplier(code string) *Supplier {
	r := s.suppliers[code]
	if r == nil {
		return nil
	}
	v := &Supplier{
		Code: code, Name: r.Name, Kind: r.Kind, Enabled: r.Enabled, account: s.accounts[r.AccountID],
		QueryAfter: cmp.Or(time.Duration(r.QueryAfter)*time.Microsecond, queryAfter), QueryRate: Rate(cmp.Or(r.QueryRate, queryRate)),
		QueryPending:     r.QueryPending,
		Fees:             feeOf(s.fees.At(r.ID, s.version)[fee.Any]),
		RefundRepeat:     r.RefundRepeat,
		PayoutQueryAfter: cmp.Or(time.Duration(r.PayoutQueryAfter)*time.Microsecond, payoutQueryAfter), PayoutRepeat: r.PayoutRepeat,
	}
	if json.Unmarshal(r.AllowIPs, &v.AllowIPs) != nil {
		v.unread = append(v.unread, "allow_ips")
	}
	kind, err := s.env.Kinds.Find(r.Kind)
	if err == nil {
		v.Config, err = decodeConfig(r.Config)
	}
	if err != nil {
		v.unread = append(v.unread, "config")
		return v
	}
	eachSecret(kind, v.Config, func(f supplier.Field, is any) any {
		if text, ok := is.(string); ok {
			return s.open(configPlace(code, f.Name), text)
		}
		return is
	})
	return v
}

// Merchant returns a stored merchant, or nil.
func (s *Stored) Merchant(code string) *Merchant {
	r := s.merchants[code]
	if r == nil {
		return nil
	}
	v := &Merchant{
		Code: code, Name: r.Name, ResendWhenBack: r.ResendWhenBack, recipient: recipient{disabled: s.disabled[r.ID]},
		Fees: feesOf(s.fees.At(r.ID, s.version)), RefundWindow: windowOf(r.RefundWindow),
	}
	limits, err := readLimits(r.Limits)
	if err != nil {
		v.unread = append(v.unread, "limits")
	}
	v.Limits = limitsOf(limits)
	fees, err := readPayoutFees(r.PayoutFees)
	if err != nil {
		v.unread = append(v.unread, "payout_fees")
	}
	v.PayoutFees = payoutFeesOf(fees)
	if v.PayoutIPs, err = readRanges(r.PayoutIPs); err != nil {
		v.unread = append(v.unread, "payout_ips")
	}
	if r.APIKeyHash != nil {
		v.APIKey = Secret{stored: *r.APIKeyHash}
	}
	if r.PayoutKeyHash != nil {
		v.PayoutKey = Secret{stored: *r.PayoutKeyHash}
	}
	v.SigningSecrets, v.Notify = s.recipient(&v.recipient, EndpointOwner{MerchantsTable, code}, r.SigningSecrets, r.Notify)
	return v
}

// Subscription returns a stored subscription, or nil.
func (s *Stored) Subscription(code string) *Subscription {
	r := s.subscriptions[code]
	if r == nil {
		return nil
	}
	v := &Subscription{Code: code, Name: r.Name, Enabled: r.DisabledAt == nil, recipient: recipient{disabled: s.disabled[r.ID]}}
	if json.Unmarshal(r.Merchants, &v.Merchants) != nil {
		v.Merchants, v.unread = nil, append(v.unread, "merchants")
	}
	v.SigningSecrets, v.Notify = s.recipient(&v.recipient, EndpointOwner{SubscriptionsTable, code}, r.SigningSecrets, r.Notify)
	return v
}

// Approval returns the rules of decisions: as declared, else the defaults.
func (s *Stored) Approval() *Approval {
	if s.approval == nil {
		return defaultApproval()
	}
	return s.approval
}

// Declared reports whether the rules of decisions were declared.
func (s *Stored) Declared() bool { return s.approval != nil }

// NewMerchant, NewSubscription and NewSupplier return a new entry with its defaults.
func (s *Stored) NewMerchant(code string) *Merchant {
	return &Merchant{
		Code: code, Name: code, Notify: s.defaults(), ResendWhenBack: true,
		Fees: []MerchantFee{}, PayoutFees: []PayoutFee{}, PayoutIPs: []netip.Prefix{}, Limits: []Limit{}, RefundWindow: refundWindow,
	}
}

func (s *Stored) NewSubscription(code string) *Subscription {
	return &Subscription{Code: code, Name: code, Enabled: true, Notify: s.defaults()}
}

func (s *Stored) NewSupplier(code string) *Supplier {
	return &Supplier{
		Code: code, Enabled: true, AllowIPs: []netip.Prefix{}, Config: map[string]any{},
		QueryAfter: queryAfter, QueryRate: queryRate, QueryPending: true, Fees: NewFee(), PayoutQueryAfter: payoutQueryAfter,
	}
}

func (s *Stored) defaults() Notify {
	d := s.env.Defaults
	n := Notify{
		URLs: []string{}, Ack: "status", AckText: "success", Format: "standard", Balance: merchant.Failover,
		Schedule: d.Schedule, Timeout: d.Timeout, MaxInFlight: d.MaxInFlight,
	}
	if n.Schedule.Name == "" {
		n.Schedule, _ = s.env.ParseSchedule("day")
	}
	if n.Timeout == 0 {
		n.Timeout = 10 * time.Second
	}
	if n.MaxInFlight == 0 {
		n.MaxInFlight = 10
	}
	return n
}

// open opens a sealed secret; it has no plain text if this node cannot open it.
func (s *Stored) open(place seal.Place, sealed string) Secret {
	plain, _ := s.env.Keys.Open(place, sealed)
	return Secret{plain: string(plain), stored: sealed}
}

// signingPrefix is the prefix of a signing secret in plain text.
const signingPrefix = "whsec_"

// recipient reads how a recipient is notified.
func (s *Stored) recipient(r *recipient, owner EndpointOwner, secrets, notify json.RawMessage) (signing []Secret, n Notify) {
	var sealed []string
	if json.Unmarshal(secrets, &sealed) != nil {
		r.unread = append(r.unread, "signing_secret")
	}
	for _, text := range sealed {
		secret := s.open(owner.Signing(), text)
		if secret.plain != "" {
			secret.plain = signingPrefix + base64.StdEncoding.EncodeToString([]byte(secret.plain))
		}
		signing = append(signing, secret)
	}
	return signing, s.notify(r, owner, notify)
}

// notify reads notify settings; the defaults if they cannot be read.
func (s *Stored) notify(r *recipient, owner EndpointOwner, stored json.RawMessage) Notify {
	var m merchant.Settings
	if json.Unmarshal(stored, &m) != nil {
		r.unread = append(r.unread, "notify")
		return s.defaults()
	}
	n := Notify{
		URLs: m.URLs, Ack: m.Ack, AckText: m.AckText, Format: m.Format, Schedule: Schedule{Name: m.Schedule},
		Timeout: millis(m.TimeoutMS), MaxInFlight: m.MaxInFlight, RateLimit: Rate(m.RatePerSecond),
		Breaker: Breaker{
			Failures: m.Breaker.Failures, Open: millis(m.Breaker.OpenMS), Window: millis(m.Breaker.WindowMS),
			MinSamples: m.Breaker.MinSamples, Slow: millis(m.Breaker.SlowMS),
		},
		Events: m.Events, Balance: m.Balance,
	}
	if n.Balance == "" {
		n.Balance = merchant.Failover // stored before this setting existed
	}
	for _, wait := range m.WaitsMS {
		n.Schedule.Waits = append(n.Schedule.Waits, millis(wait))
	}
	if rate := m.Breaker.RatePercent; rate != 0 {
		rate = max(rate, 0) // merchant.NoRate
		n.Breaker.Rate = &rate
	}
	for _, e := range m.Endpoints {
		open := func(field string, sealed map[string]string) map[string]Secret {
			if len(sealed) == 0 {
				return nil
			}
			all := map[string]Secret{}
			for name, text := range sealed {
				all[name] = s.open(owner.place(e.Name, field+"."+name), text)
			}
			return all
		}
		is := Endpoint{
			Name: e.Name, Channel: Channel(e.Channel), URL: e.URL, Events: e.Events, Weight: e.Weight, Format: e.Format,
			Headers: open("headers", e.Headers), Credentials: open("credentials", e.Credentials),
			ClientCert: e.ClientCert, Digest: millis(e.DigestMS),
		}
		if e.ClientKey != "" {
			is.ClientKey = s.open(owner.place(e.Name, "client_key"), e.ClientKey)
		}
		n.Endpoints = append(n.Endpoints, is)
	}
	return n
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
