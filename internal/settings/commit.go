package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/stock"

	"github.com/uptrace/bun"
)

// commit is one transaction that writes changes.
type commit struct {
	*Stored
	tx  db.Tx
	now int64
	// names are the accounts at suppliers, by name.
	accounts map[string]int64
}

// Commit writes changes that Check found right against the settings as they were read,
// raises their version where servers must read them again, and leaves the act, with
// what became of which object, in the audit. What changes nothing leaves nothing. Where
// somebody else was faster it is db.ErrStale: read again.
func (s *Stored) Commit(ctx context.Context, tx db.Tx, changes []Change, force bool, act audit.Act) ([]Outcome, error) {
	if err := LockVersion(ctx, tx, s.env.DB); err != nil {
		return nil, err
	}
	if version, err := readVersion(ctx, tx); err != nil {
		return nil, err
	} else if version != s.version {
		return nil, fmt.Errorf("the settings have changed: %w", db.ErrStale)
	}
	if err := ConfirmKey(ctx, tx, s.env.Keys); err != nil {
		return nil, err
	}
	w := &commit{Stored: s, tx: tx, now: s.env.DB.Now()}
	if err := w.freeKeys(ctx, changes); err != nil {
		return nil, err
	}
	if err := w.numberAccounts(ctx, changes); err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(changes))
	bump := false
	for i, c := range changes {
		outcomes[i] = c.Outcome(force)
		if outcomes[i].What == Unchanged {
			continue
		}
		raises, err := w.write(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Object, err)
		}
		bump = bump || raises
	}
	if err := w.books(ctx, changes, outcomes); err != nil {
		return nil, err
	}
	if bump {
		if err := Bump(ctx, tx); err != nil {
			return nil, err
		}
	}
	return outcomes, w.keep(ctx, outcomes, act)
}

// write writes a supplier, a merchant or a subscription.
func (w *commit) write(ctx context.Context, c Change) (raises bool, err error) {
	var row any
	var columns []string
	var owner int64
	switch v := c.After.(type) {
	case *Supplier:
		row, columns, err = w.supplier(v)
	case *Merchant:
		var r *merchant.Row
		if r, columns, err = w.merchant(v, c.Diff()); err == nil {
			row, owner = r, r.ID
		}
	case *Subscription:
		var r *SubscriptionRow
		if r, columns, err = w.subscription(v, c.Diff()); err == nil {
			row, owner = r, r.ID
		}
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if c.Before == nil {
		_, err = w.tx.NewInsert().Model(row).Exec(ctx)
		return true, err
	}
	for _, address := range c.reenabled() {
		if err := w.env.EnableEndpoint(ctx, w.tx, owner, address); err != nil {
			return false, err
		}
	}
	_, err = w.tx.NewUpdate().Model(row).WherePK().Column(columns...).Exec(ctx)
	return true, err
}

// accountRow is an account at a supplier. Two suppliers of one account share its
// number: trade numbers are unique within it.
type accountRow struct {
	bun.BaseModel `bun:"table:supplier_accounts"`

	ID   int64  `bun:"id,pk"`
	Name string `bun:"name"`
}

func supplierAccounts(ctx context.Context, q bun.IDB) (rows []accountRow, err error) {
	if err := q.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read supplier accounts: %w", err)
	}
	return rows, nil
}

// numberAccounts makes the accounts that are new.
func (w *commit) numberAccounts(ctx context.Context, changes []Change) error {
	w.accounts = map[string]int64{}
	for id, name := range w.Stored.accounts {
		w.accounts[name] = id
	}
	var made []accountRow
	for _, c := range changes {
		if s, ok := c.After.(*Supplier); ok && w.accounts[s.account] == 0 {
			a := accountRow{ID: w.env.DB.NewID(), Name: s.account}
			w.accounts[a.Name], made = a.ID, append(made, a)
		}
	}
	if len(made) == 0 {
		return nil
	}
	if _, err := w.tx.NewInsert().Model(&made).Exec(ctx); err != nil {
		return fmt.Errorf("write supplier accounts: %w", err)
	}
	return nil
}

func (w *commit) supplier(v *Supplier) (row *SupplierRow, columns []string, err error) {
	row = &SupplierRow{
		ID: w.env.DB.NewID(), Code: v.Code, Kind: v.Kind, AccountID: w.accounts[v.account], Enabled: v.Enabled,
		CreatedAt: w.now, UpdatedAt: w.now,
	}
	if old := w.suppliers[v.Code]; old != nil {
		row.ID = old.ID
	}
	if row.AllowIPs, err = json.Marshal(slices.Concat([]netip.Prefix{}, v.AllowIPs)); err != nil {
		return nil, nil, err
	}
	kind, err := w.env.Kinds.Find(v.Kind)
	if err != nil {
		return nil, nil, err
	}
	plain, err := plainConfig(kind, v.Config)
	if err != nil {
		return nil, nil, err
	}
	row.Config, err = SealConfig(kind, w.env.Keys, v.Code, plain)
	return row, []string{"kind", "account_id", "enabled", "allow_ips", "config", "updated_at"}, err
}

// freeKeys takes API keys away before they are given out, so that two merchants
// may swap theirs.
func (w *commit) freeKeys(ctx context.Context, changes []Change) error {
	var ids []int64
	for _, c := range changes {
		m, ok := c.After.(*Merchant)
		if before, had := c.Before.(*Merchant); ok && had && before.APIKey.IsSet() && !before.APIKey.Same(m.APIKey) {
			ids = append(ids, w.merchants[m.Code].ID)
		}
	}
	for part := range slices.Chunk(ids, chunk) {
		if _, err := w.tx.NewRaw("UPDATE merchants SET api_key_hash = NULL WHERE id IN (?)", bun.List(part)).Exec(ctx); err != nil {
			return fmt.Errorf("change API keys: %w", err)
		}
	}
	return nil
}

func (w *commit) merchant(v *Merchant, diff []Difference) (row *merchant.Row, columns []string, err error) {
	row = &merchant.Row{ID: w.env.DB.NewID(), Code: v.Code, Name: v.Name, CreatedAt: w.now, UpdatedAt: w.now}
	columns = []string{"name", "api_key_hash", "notify", "updated_at"}
	if v.APIKey.IsSet() {
		row.APIKeyHash = &v.APIKey.stored
	}
	if old := w.merchants[v.Code]; old != nil {
		row.ID = old.ID
	}
	if row.SigningSecrets, err = w.signing(SecretPlace(v.Code), v.SigningSecrets); err != nil {
		return nil, nil, err
	}
	if names(diff, "signing_secret") {
		columns = append(columns, "signing_secrets")
	}
	row.Notify, err = w.seal(EndpointOwner{MerchantsTable, v.Code}, &v.Notify)
	return row, columns, err
}

func (w *commit) subscription(v *Subscription, diff []Difference) (row *SubscriptionRow, columns []string, err error) {
	row = &SubscriptionRow{ID: w.env.DB.NewID(), Code: v.Code, Name: v.Name, CreatedAt: w.now, UpdatedAt: w.now}
	columns = []string{"name", "merchants", "notify", "updated_at", "disabled_at"}
	if !v.Enabled {
		row.DisabledAt = &w.now
	}
	if old := w.subscriptions[v.Code]; old != nil {
		if row.ID = old.ID; !v.Enabled && old.DisabledAt != nil {
			row.DisabledAt = old.DisabledAt
		}
	}
	if row.Merchants, err = json.Marshal(v.Merchants); err != nil {
		return nil, nil, err
	}
	if row.SigningSecrets, err = w.signing(SubscriptionSecretPlace(v.Code), v.SigningSecrets); err != nil {
		return nil, nil, err
	}
	if names(diff, "signing_secret") {
		columns = append(columns, "signing_secrets")
	}
	row.Notify, err = w.seal(EndpointOwner{SubscriptionsTable, v.Code}, &v.Notify)
	return row, columns, err
}

func names(diff []Difference, name string) bool {
	return slices.ContainsFunc(diff, func(d Difference) bool { return d.Name == name })
}

// signing seals signing secrets; one that does not open here stays as it is.
func (w *commit) signing(place seal.Place, all []Secret) (json.RawMessage, error) {
	sealed := make([]string, len(all))
	for i, s := range all {
		if sealed[i] = s.stored; s.plain == "" {
			continue
		}
		key, err := w.env.ParseSecret(s.plain)
		if err != nil {
			return nil, err
		}
		sealed[i] = w.env.Keys.Seal(place, key)
	}
	return json.Marshal(sealed)
}

// seal is how a recipient is notified, as it is stored.
func (w *commit) seal(owner EndpointOwner, n *Notify) (json.RawMessage, error) {
	m := merchant.Settings{
		URLs: slices.Concat([]string{}, n.URLs), Ack: n.Ack, AckText: n.AckText, Format: n.Format, Schedule: n.Schedule.Name,
		TimeoutMS: n.Timeout.Milliseconds(), MaxInFlight: n.MaxInFlight, RatePerSecond: float64(n.RateLimit),
		Breaker: merchant.Breaker{
			Failures: n.Breaker.Failures, OpenMS: n.Breaker.Open.Milliseconds(), WindowMS: n.Breaker.Window.Milliseconds(),
			Least: n.Breaker.MinSamples, SlowMS: n.Breaker.Slow.Milliseconds(),
		},
		Events: n.Events, Balance: n.Balance,
	}
	for _, wait := range n.Schedule.Waits {
		m.WaitsMS = append(m.WaitsMS, wait.Milliseconds())
	}
	if rate := n.Breaker.Rate; rate != nil && *rate == 0 {
		m.Breaker.RatePercent = merchant.NoRate
	} else if rate != nil {
		m.Breaker.RatePercent = *rate
	}
	for _, e := range n.Endpoints {
		secret := func(field string, s Secret) string {
			if s.plain == "" {
				return s.stored
			}
			return w.env.Keys.Seal(owner.place(e.Name, field), []byte(s.plain))
		}
		secrets := func(field string, all map[string]Secret) map[string]string {
			sealed := map[string]string{}
			for name, s := range all {
				sealed[name] = secret(field+"."+name, s)
			}
			return sealed
		}
		m.Endpoints = append(m.Endpoints, merchant.Endpoint{
			Name: e.Name, Channel: string(e.Channel), URL: e.URL, Events: e.Events, Weight: e.Weight, Format: e.Format,
			Headers: secrets("headers", e.Headers), Credentials: secrets("credentials", e.Credentials),
			ClientCert: e.ClientCert, ClientKey: secret("client_key", e.ClientKey), DigestMS: int64(e.Digest / time.Millisecond),
		})
	}
	return json.Marshal(m)
}

// books declares articles and books opening balances, each once. Stock lives from then
// on: a second look must not undo what was sold since.
func (w *commit) books(ctx context.Context, changes []Change, outcomes []Outcome) error {
	var made []stock.SKU
	var entries []ledger.Entry
	for i, c := range changes {
		switch v := c.After.(type) {
		case *SKU:
			if outcomes[i].What == Created {
				made = append(made, stock.SKU{ID: w.env.DB.NewID(), SKU: v.SKU, Stock: v.Stock, Applied: v.Stock})
			}
		case *Account:
			if outcomes[i].What == Opened {
				entries = append(entries, ledger.Entry{
					Debit: ledger.Opening, Credit: ledger.MerchantAccount(v.Merchant), Amount: v.Balance, Currency: v.Currency, Ref: v.Ref(),
				})
			}
		}
	}
	if len(made) > 0 {
		if _, err := w.tx.NewInsert().Model(&made).Exec(ctx); err != nil {
			return fmt.Errorf("write skus: %w", err)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	writes := w.tx.Writes()
	if err := w.env.Ledger.Post(ctx, w.tx, writes, entries); err != nil {
		return err
	}
	return writes.Exec(ctx)
}

// keep leaves in the audit what became of the objects.
func (w *commit) keep(ctx context.Context, outcomes []Outcome, act audit.Act) error {
	params := map[string]any{}
	for _, what := range []string{Created, Changed, Opened, disabled} {
		if text := named(outcomes, what); text != "" {
			params[what] = text
		}
	}
	if len(params) == 0 {
		return nil
	}
	for name, v := range act.Params {
		params[name] = v
	}
	act.Params = params
	return audit.New(w.env.DB, w.env.Keys).Write(ctx, w.tx, act)
}
