package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/ledger/fact"
	"backstop/internal/merchant"
	"backstop/internal/stock"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// commit is one transaction that writes changes.
type commit struct {
	*Stored
	tx       db.Tx
	now      int64
	accounts map[string]int64 // ids of accounts at suppliers, by name
	made     map[string]int64 // ids of merchants written in this transaction, by code
}

// Commit is Write, and records the act with the outcome of each object in the audit; without
// changes nothing is recorded.
func (s *Stored) Commit(ctx context.Context, tx db.Tx, changes []Change, force bool, act audit.Act) ([]Outcome, error) {
	by := Cause{Actor: act.Actor}
	by.Approval, _ = act.Params["approval"].(string)
	outcomes, err := s.Write(ctx, tx, changes, force, by)
	if err != nil {
		return nil, err
	}
	params := Details(changes, outcomes)
	if len(params) == 0 {
		return outcomes, nil
	}
	maps.Copy(params, act.Params)
	act.Params = params
	return outcomes, audit.New(s.env.DB, s.env.Keys).Write(ctx, tx, act)
}

// Write writes checked changes to the settings that were read and to their history, and raises the
// version if servers must reload them. The audit is left to the caller. If the settings have changed
// since they were read, the error is db.ErrStale.
func (s *Stored) Write(ctx context.Context, tx db.Tx, changes []Change, force bool, by Cause) ([]Outcome, error) {
	if err := s.Confirm(ctx, tx); err != nil {
		return nil, err
	}
	w := &commit{Stored: s, tx: tx, now: s.env.DB.Now(), made: map[string]int64{}}
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
		if outcomes[i].What == Unchanged || c.bookedOnce() {
			continue
		}
		if err := w.write(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Object, err)
		}
		bump = true
	}
	if err := w.books(ctx, changes, outcomes); err != nil {
		return nil, err
	}
	if bump {
		if err := IncrementVersion(ctx, tx); err != nil {
			return nil, err
		}
	}
	return outcomes, w.writeHistory(ctx, changes, outcomes, by)
}

// Confirm locks the settings until the transaction ends, if they have not changed since they
// were read; otherwise the error is db.ErrStale, or ErrKeyChanged if secrets have been sealed
// under another key.
func (s *Stored) Confirm(ctx context.Context, tx db.Tx) error {
	if err := LockVersion(ctx, tx, s.env.DB); err != nil {
		return err
	}
	if version, err := readVersion(ctx, tx); err != nil {
		return err
	} else if version != s.version {
		return fmt.Errorf("the settings have changed: %w", db.ErrStale)
	}
	return ConfirmKey(ctx, tx, s.env.Keys)
}

// write writes a supplier, a merchant, a subscription or the rules of decisions.
func (w *commit) write(ctx context.Context, c Change) (err error) {
	var row any
	var columns []string
	var id int64
	switch v := c.After.(type) {
	case *Supplier:
		var r *SupplierRow
		r, columns, err = w.supplier(v)
		row, id = r, r.ID
	case *Merchant:
		r := w.merchant(v)
		r.SigningSecrets, r.Notify, err = w.recipient(EndpointOwner{MerchantsTable, v.Code}, v.SigningSecrets, &v.Notify)
		w.made[v.Code] = r.ID
		row, id, columns = r, r.ID, []string{
			"name", "api_key_hash", "notify", "updated_at", "resend_when_back", "refund_window",
			"payout_key_hash", "payout_ips",
		}
		for _, column := range []string{"limits", "payout_fees"} {
			if !slices.Contains(v.unread, column) {
				columns = append(columns, column) // else they stay as stored
			}
		}
	case *Approval:
		return w.approval(ctx, v)
	case *PayoutAccount:
		return w.payoutAccount(ctx, v)
	case *Role:
		return w.role(ctx, v)
	case *Subscription:
		r := w.subscription(v)
		r.SigningSecrets, r.Notify, err = w.recipient(EndpointOwner{SubscriptionsTable, v.Code}, v.SigningSecrets, &v.Notify)
		row, id, columns = r, r.ID, []string{"name", "merchants", "notify", "updated_at", "disabled_at"}
	}
	if err != nil {
		return err
	}
	if err := w.fees(ctx, id, c); err != nil {
		return err
	}
	if c.Before == nil {
		_, err = w.tx.NewInsert().Model(row).Exec(ctx)
		return err
	}
	if slices.ContainsFunc(c.Diff(), func(d Difference) bool { return d.Name == "signing_secret" }) {
		columns = append(columns, "signing_secrets") // others may be unreadable and stay as stored
	}
	for _, endpoint := range c.reenabled() {
		if err := w.env.EnableEndpoint(ctx, w.tx, id, endpoint); err != nil {
			return err
		}
	}
	_, err = w.tx.NewUpdate().Model(row).WherePK().Column(columns...).Exec(ctx)
	return err
}

// accountRow is an account at a supplier. Two suppliers with the same account share its row:
// trade numbers are unique within it.
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

// numberAccounts creates the new accounts.
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
		ID: w.env.DB.NewID(), Code: v.Code, Name: v.Name, Kind: v.Kind, AccountID: w.accounts[v.account], Enabled: v.Enabled,
		CreatedAt: w.now, UpdatedAt: w.now,
		QueryAfter: v.QueryAfter.Microseconds(), QueryRate: int64(v.QueryRate), QueryPending: v.QueryPending,
		RefundRepeat: v.RefundRepeat, PayoutQueryAfter: v.PayoutQueryAfter.Microseconds(), PayoutRepeat: v.PayoutRepeat,
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
	row.Config, err = w.config(kind, v)
	return row, []string{
		"name", "kind", "account_id", "enabled", "allow_ips", "config", "updated_at", "query_after", "query_rate", "query_pending",
		"refund_repeat", "payout_query_after", "payout_repeat",
	}, err
}

// config seals the secrets of a supplier's config. One that cannot be opened on this node stays
// as stored.
func (w *commit) config(kind supplier.Kind, v *Supplier) (json.RawMessage, error) {
	config := maps.Clone(v.Config)
	eachSecret(kind, config, func(f supplier.Field, is any) any {
		s, ok := is.(Secret)
		switch {
		case !ok:
			return is
		case s.plain == "" && s.stored != "":
			return s.stored
		}
		return w.env.Keys.Seal(configPlace(v.Code, f.Name), []byte(s.plain))
	})
	return json.Marshal(config)
}

// freeKeys clears keys before they are assigned, so that two merchants may swap theirs.
func (w *commit) freeKeys(ctx context.Context, changes []Change) error {
	for column, key := range map[string]func(*Merchant) Secret{
		"api_key_hash":    func(m *Merchant) Secret { return m.APIKey },
		"payout_key_hash": func(m *Merchant) Secret { return m.PayoutKey },
	} {
		var ids []int64
		for _, c := range changes {
			m, ok := c.After.(*Merchant)
			if before, had := c.Before.(*Merchant); ok && had && key(before).IsSet() && !key(before).Same(key(m)) {
				ids = append(ids, w.merchants[m.Code].ID)
			}
		}
		for part := range slices.Chunk(ids, chunk) {
			if _, err := w.tx.NewRaw("UPDATE merchants SET ? = NULL WHERE id IN (?)", bun.Ident(column),
				bun.List(part)).Exec(ctx); err != nil {
				return fmt.Errorf("change keys: %w", err)
			}
		}
	}
	return nil
}

func (w *commit) merchant(v *Merchant) *merchant.Row {
	row := &merchant.Row{
		ID: w.env.DB.NewID(), Code: v.Code, Name: v.Name, CreatedAt: w.now, UpdatedAt: w.now,
		ResendWhenBack: v.ResendWhenBack,
	}
	row.Limits, row.RefundWindow = storedLimits(v.Limits), v.RefundWindow.Microseconds()
	row.PayoutFees, row.PayoutIPs = storedPayoutFees(v.PayoutFees), storedRanges(v.PayoutIPs)
	if v.APIKey.IsSet() {
		row.APIKeyHash = &v.APIKey.stored
	}
	if v.PayoutKey.IsSet() {
		row.PayoutKeyHash = &v.PayoutKey.stored
	}
	if old := w.merchants[v.Code]; old != nil {
		row.ID = old.ID
	}
	return row
}

func (w *commit) subscription(v *Subscription) *SubscriptionRow {
	row := &SubscriptionRow{ID: w.env.DB.NewID(), Code: v.Code, Name: v.Name, CreatedAt: w.now, UpdatedAt: w.now}
	row.Merchants, _ = json.Marshal(v.Merchants) // a list of texts always has a form
	if !v.Enabled {
		row.DisabledAt = &w.now
	}
	if old := w.subscriptions[v.Code]; old != nil {
		if row.ID = old.ID; !v.Enabled && old.DisabledAt != nil {
			row.DisabledAt = old.DisabledAt
		}
	}
	return row
}

// recipient seals a recipient's signing secrets and notify settings. A secret that cannot be
// opened on this node stays as stored.
func (w *commit) recipient(owner EndpointOwner, secrets []Secret, n *Notify) (signing, notify json.RawMessage, err error) {
	sealed := make([]string, len(secrets))
	for i, s := range secrets {
		if sealed[i] = s.stored; s.plain == "" {
			continue
		}
		key, err := w.env.ParseSecret(s.plain)
		if err != nil {
			return nil, nil, err
		}
		sealed[i] = w.env.Keys.Seal(owner.Signing(), key)
	}
	if signing, err = json.Marshal(sealed); err != nil {
		return nil, nil, err
	}
	notify, err = json.Marshal(w.seal(owner, n))
	return signing, notify, err
}

// seal returns a recipient's notify settings in stored form.
func (w *commit) seal(owner EndpointOwner, n *Notify) merchant.Settings {
	m := merchant.Settings{
		URLs: slices.Concat([]string{}, n.URLs), Ack: n.Ack, AckText: n.AckText, Format: n.Format, Schedule: n.Schedule.Name,
		TimeoutMS: n.Timeout.Milliseconds(), MaxInFlight: n.MaxInFlight, RatePerSecond: float64(n.RateLimit),
		Breaker: merchant.Breaker{
			Failures: n.Breaker.Failures, OpenMS: n.Breaker.Open.Milliseconds(), WindowMS: n.Breaker.Window.Milliseconds(),
			MinSamples: n.Breaker.MinSamples, SlowMS: n.Breaker.Slow.Milliseconds(),
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
			ClientCert: e.ClientCert, ClientKey: secret("client_key", e.ClientKey), DigestMS: e.Digest.Milliseconds(),
		})
	}
	return m
}

// books creates SKUs and books opening balances, each once: applying them again must not undo
// later sales.
func (w *commit) books(ctx context.Context, changes []Change, outcomes []Outcome) error {
	var articles []stock.SKU
	var entries fact.Entries
	for i, c := range changes {
		switch v := c.After.(type) {
		case *SKU:
			if outcomes[i].What == Created {
				articles = append(articles, stock.SKU{ID: w.env.DB.NewID(), SKU: v.SKU, Stock: v.Stock, Applied: v.Stock})
			}
		case *Account:
			if outcomes[i].What == Opened {
				entries.Add(fact.Opening, v.values())
			}
		}
	}
	if len(articles) > 0 {
		if _, err := w.tx.NewInsert().Model(&articles).Exec(ctx); err != nil {
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

// Details are what the audit records of changes: the outcome of each object, and old and new of
// approval rules; empty = nothing was changed.
func Details(changes []Change, outcomes []Outcome) map[string]any {
	params := map[string]any{}
	for _, what := range []string{Created, Changed, Opened, disabled} {
		if text := named(outcomes, what); text != "" {
			params[what] = text
		}
	}
	if old, is := rulesChange(changes); is != "" && len(params) > 0 {
		params["old"], params["new"] = old, is
	}
	return params
}
