package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

func (w *writer) suppliers(ctx context.Context, all []supplierDecl) error {
	if len(all) == 0 {
		return nil
	}
	accounts, err := w.supplierAccounts(ctx, all)
	if err != nil {
		return err
	}
	var rows []settings.SupplierRow
	if err := w.tx.NewSelect().Model(&rows).ExcludeColumn("created_at", "updated_at", "disabled_at").Scan(ctx); err != nil {
		return fmt.Errorf("read suppliers: %w", err)
	}
	known := make(map[string]*settings.SupplierRow, len(rows))
	for i := range rows {
		known[rows[i].Code] = &rows[i]
	}
	for _, s := range all {
		if err := w.supplier(ctx, s, known[s.code], accounts[s.account]); err != nil {
			return fmt.Errorf("supplier %s: %w", s.code, err)
		}
	}
	return nil
}

// supplierAccounts numbers the supplier-side accounts. Two suppliers of one
// account share the number: trade numbers are unique within it.
func (w *writer) supplierAccounts(ctx context.Context, all []supplierDecl) (map[string]int64, error) {
	type account struct {
		bun.BaseModel `bun:"table:supplier_accounts"`

		ID   int64  `bun:"id,pk"`
		Name string `bun:"name"`
	}
	var rows []account
	if err := w.tx.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read supplier accounts: %w", err)
	}
	ids := make(map[string]int64, len(rows))
	for _, a := range rows {
		ids[a.Name] = a.ID
	}
	var made []account
	for _, s := range all {
		if ids[s.account] == 0 {
			a := account{ID: w.env.DB.NewID(), Name: s.account}
			ids[s.account], made = a.ID, append(made, a)
		}
	}
	if len(made) == 0 {
		return ids, nil
	}
	if _, err := w.tx.NewInsert().Model(&made).Exec(ctx); err != nil {
		return nil, fmt.Errorf("write supplier accounts: %w", err)
	}
	return ids, nil
}

func (w *writer) supplier(ctx context.Context, s supplierDecl, old *settings.SupplierRow, accountID int64) error {
	if old != nil && s.keepsEnabled {
		s.enabled = old.Enabled
	}
	if old != nil && s.keepsAllowIPs {
		s.allowIPs = old.AllowIPs
	}
	row := settings.SupplierRow{
		Code: s.code, Kind: s.kind.Name, AccountID: accountID, Enabled: s.enabled, AllowIPs: s.allowIPs, UpdatedAt: w.now,
	}
	var err error
	if old == nil {
		if row.Config, err = settings.SealConfig(s.kind, w.env.Keys, s.code, s.config); err != nil {
			return err
		}
		row.ID, row.CreatedAt, w.changed = w.env.DB.NewID(), w.now, true
		w.say(created, "supplier "+s.code, "")
		_, err = w.tx.NewInsert().Model(&row).Exec(ctx)
		return err
	}
	changes := w.supplierChanges(s, old)
	if old.AccountID != accountID && len(changes) == 0 {
		changes = []string{"account"} // the kind names its account in another way now
	}
	if changes = w.forced(changes); len(changes) == 0 {
		w.say(unchanged, "supplier "+s.code, "")
		return nil
	}
	if row.Config, err = settings.SealConfig(s.kind, w.env.Keys, s.code, s.config); err != nil {
		return err
	}
	row.ID, w.changed = old.ID, true
	w.say(changed, "supplier "+s.code, strings.Join(changes, ", "))
	w.turned(s.enabled, old.Enabled)
	_, err = w.tx.NewUpdate().Model(&row).WherePK().
		Column("kind", "account_id", "enabled", "allow_ips", "config", "updated_at").Exec(ctx)
	return err
}

// supplierChanges names the fields that differ from what is stored. Secrets are
// opened and compared, so that nothing has to be kept that could give them away;
// those that do not open any more count as changed and are sealed anew.
func (w *writer) supplierChanges(s supplierDecl, old *settings.SupplierRow) []string {
	var changes []string
	if s.kind.Name != old.Kind {
		changes = append(changes, "kind")
	}
	if s.enabled != old.Enabled {
		changes = append(changes, "enabled")
	}
	if !sameJSON(s.allowIPs, old.AllowIPs) {
		changes = append(changes, "allow_ips")
	}
	stored, err := settings.OpenConfig(w.env.Kinds, w.env.Keys, *old)
	if err != nil {
		return append(changes, "config")
	}
	var was, is map[string]any
	if json.Unmarshal(stored, &was) != nil || json.Unmarshal(s.config, &is) != nil {
		return append(changes, "config")
	}
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, field := range slices.Sorted(maps.Keys(both)) {
		if !reflect.DeepEqual(was[field], is[field]) {
			changes = append(changes, "config."+field)
		}
	}
	return changes
}

// sameJSON compares meaning: PostgreSQL stores JSON in a spelling of its own.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
