package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

func (w *writer) merchants(ctx context.Context, d *declared) error {
	if len(d.merchants) == 0 {
		return nil
	}
	var rows []merchant.Row
	if err := w.tx.NewSelect().Model(&rows).ExcludeColumn("created_at", "updated_at", "disabled_at").Scan(ctx); err != nil {
		return fmt.Errorf("read merchants: %w", err)
	}
	known := make(map[string]*merchant.Row, len(rows))
	for i := range rows {
		known[rows[i].Code] = &rows[i]
	}
	if err := d.checkMerchants(known); err != nil {
		return err
	}
	if err := w.freeKeys(ctx, d.merchants, known); err != nil {
		return err
	}
	for _, m := range d.merchants {
		if err := w.merchant(ctx, m, known[m.code]); err != nil {
			return fmt.Errorf("merchant %s: %w", m.code, err)
		}
	}
	return d.problems.err()
}

// checkMerchants finds what only the database can tell: a new merchant without a
// signing secret, and an API key that another merchant keeps.
func (d *declared) checkMerchants(known map[string]*merchant.Row) error {
	keeps := map[string]string{} // API key hash → merchant, of keys that stay
	for _, r := range known {
		if r.APIKeyHash != nil {
			keeps[*r.APIKeyHash] = r.Code
		}
	}
	for _, m := range d.merchants {
		if r := known[m.code]; r != nil && r.APIKeyHash != nil && m.keyHash != "" && *r.APIKeyHash != m.keyHash {
			delete(keeps, *r.APIKeyHash)
		}
	}
	for _, m := range d.merchants {
		if other := keeps[m.keyHash]; m.keyHash != "" && other != "" && other != m.code {
			m.at.at("api_key").wrong("this is the API key of merchant %s: each needs its own", other)
		}
		if m.secrets == nil && known[m.code] == nil {
			m.at.at("signing_secret").wrong("missing: a new merchant's notifications are signed with it")
		}
	}
	return d.problems.err()
}

// freeKeys takes API keys away before they are given out, so that two merchants
// may swap theirs in one file.
func (w *writer) freeKeys(ctx context.Context, all []merchantDecl, known map[string]*merchant.Row) error {
	var ids []int64
	for _, m := range all {
		if r := known[m.code]; r != nil && r.APIKeyHash != nil && m.keyHash != "" && *r.APIKeyHash != m.keyHash {
			ids = append(ids, r.ID)
		}
	}
	for part := range slices.Chunk(ids, chunk) {
		if _, err := w.tx.NewRaw("UPDATE merchants SET api_key_hash = NULL WHERE id IN (?)", bun.List(part)).Exec(ctx); err != nil {
			return fmt.Errorf("change API keys: %w", err)
		}
	}
	return nil
}

func (w *writer) merchant(ctx context.Context, m merchantDecl, old *merchant.Row) error {
	row := merchant.Row{Code: m.code, Name: m.name, UpdatedAt: w.now}
	if m.keyHash != "" {
		row.APIKeyHash = &m.keyHash
	}
	owner := settings.EndpointOwner{Table: settings.MerchantsTable, Code: m.code}
	var stored json.RawMessage
	if old != nil {
		stored = old.Notify
	}
	told, err := w.notify(owner, m.told, stored)
	if err != nil {
		return err
	}
	row.Notify = told.raw
	if row.SigningSecrets, err = w.sealSecrets(settings.SecretPlace(m.code), m.secrets); err != nil {
		return err
	}
	if old == nil {
		row.ID, row.CreatedAt, w.changed = w.env.DB.NewID(), w.now, true
		w.say(created, "merchant "+m.code, "")
		_, err = w.tx.NewInsert().Model(&row).Exec(ctx)
		return err
	}
	// What a file leaves out stays as it is: one without secrets can be kept anywhere and
	// applied again.
	if m.keepsName {
		row.Name = old.Name
	}
	if row.APIKeyHash == nil {
		row.APIKeyHash = old.APIKeyHash
	}
	if m.secrets == nil {
		row.SigningSecrets = old.SigningSecrets
	}
	enabled, err := w.enable(ctx, old.ID, m.told)
	if err != nil {
		return err
	}
	changes := w.forced(slices.Concat(w.merchantChanges(m, &row, old), told.changes, enabled))
	if len(changes) == 0 {
		w.say(unchanged, "merchant "+m.code, "")
		return nil
	}
	row.ID, w.changed = old.ID, true
	w.say(changed, "merchant "+m.code, strings.Join(changes, ", "))
	_, err = w.tx.NewUpdate().Model(&row).WherePK().
		Column("name", "api_key_hash", "signing_secrets", "notify", "updated_at").Exec(ctx)
	return err
}

func (w *writer) sealSecrets(place seal.Place, secrets [][]byte) (json.RawMessage, error) {
	sealed := make([]string, len(secrets))
	for i, key := range secrets {
		sealed[i] = w.env.Keys.Seal(place, key)
	}
	return json.Marshal(sealed)
}

// forced is what has changed, or that all is to be written nevertheless.
func (w *writer) forced(changes []string) []string {
	if len(changes) == 0 && w.env.Force {
		return []string{"written again"}
	}
	return changes
}

// sameSecrets says whether the stored secrets open and are those of the file.
func sameSecrets(stored [][]byte, err error, secrets [][]byte) bool {
	return err == nil && slices.EqualFunc(stored, secrets, func(a, b []byte) bool { return string(a) == string(b) })
}

// merchantChanges names the fields beside notify that differ from what is stored.
func (w *writer) merchantChanges(m merchantDecl, row, old *merchant.Row) []string {
	var changes []string
	if row.Name != old.Name {
		changes = append(changes, "name")
	}
	if row.APIKeyHash != nil && (old.APIKeyHash == nil || *row.APIKeyHash != *old.APIKeyHash) {
		changes = append(changes, "api_key")
	}
	if m.secrets != nil {
		if stored, err := settings.OpenSecrets(w.env.Keys, *old); !sameSecrets(stored, err, m.secrets) {
			changes = append(changes, "signing_secret")
		}
	}
	return changes
}
