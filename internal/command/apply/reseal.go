package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Reseal makes the first master key the one in use and brings every secret under it,
// so that older keys can be removed, and returns how many rows it changed. A node
// without that key is not ready from the first moment on. Each row is a change of
// its own: interrupted, it goes on where it was when it is run again. A row whose
// secrets do not open is named in the error; the others are done all the same.
//
// Progress, where it is not nil, is told each row that was looked at.
func Reseal(ctx context.Context, env Env, progress func(looked int)) (changed int, err error) {
	if err := settings.CheckReseal(ctx, env.DB, env.Keys); err != nil {
		return 0, err
	}
	acted, err := env.changeKey(ctx)
	if err != nil {
		return 0, err
	}
	var wrong []error
	looked := 0
	for _, table := range []string{"suppliers", settings.MerchantsTable, settings.SubscriptionsTable} {
		var ids []int64
		if err := env.DB.Read.NewRaw("SELECT id FROM ? ORDER BY id", bun.Ident(table)).Scan(ctx, &ids); err != nil {
			return changed, fmt.Errorf("read %s: %w", table, err)
		}
		for _, id := range ids {
			did, err := env.reseal(ctx, table, id, !acted && changed == 0)
			if ctx.Err() != nil {
				return changed, ctx.Err()
			}
			if err != nil {
				wrong = append(wrong, err)
			}
			if did {
				changed++
			}
			looked++
			if progress != nil {
				progress(looked)
			}
		}
	}
	if err := env.retire(ctx); err != nil {
		wrong = append(wrong, err)
	}
	return changed, errors.Join(wrong...)
}

// retire keeps what is still needed of the older master keys once they are removed:
// to check the audit and the tokens that were made under them.
func (env Env) retire(ctx context.Context) error {
	var wrong error
	err := env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		retired, err := settings.ReadRetired(ctx, tx)
		if err != nil {
			return err
		}
		var keys *seal.Keyring
		keys, wrong = env.Keys.WithRetired(retired)
		for id, sealed := range keys.Retire() {
			if is, ok := retired[id]; ok && !env.Keys.NeedsReseal(is) {
				continue
			}
			_, err := tx.NewRaw("INSERT INTO retired_keys (key_id, sealed) VALUES (?, ?) ON CONFLICT (key_id) DO UPDATE SET sealed = EXCLUDED.sealed", id, sealed).Exec(ctx)
			if err != nil {
				return fmt.Errorf("retire master key %s: %w", id, err)
			}
		}
		return nil
	})
	return errors.Join(err, wrong, hint(wrong))
}

// changeKey makes the current key the one in use, on the record.
func (env Env) changeKey(ctx context.Context) (changed bool, err error) {
	err = env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if changed, err = settings.ChangeKey(ctx, tx, env.DB, env.Keys); err != nil || !changed {
			return err
		}
		return env.act(ctx, tx)
	})
	return changed, err
}

func (env Env) act(ctx context.Context, tx db.Tx) error {
	return audit.New(env.DB, env.Keys).Write(ctx, tx, audit.Act{
		Actor: audit.Command(), Action: "secrets.reseal", Object: "master_key", ObjectID: env.Keys.ID(),
	})
}

// sealed is a column that holds secrets, as it is and under the current key.
type sealed struct {
	column       string
	old, renewed json.RawMessage
}

// reseal does one row by compare-and-set: somebody who applies at the same
// moment wins, with the current key. Where the key in use did not change, the first
// row that does brings the run into the audit: no secret is sealed anew without it,
// wherever the run ends.
func (env Env) reseal(ctx context.Context, table string, id int64, first bool) (changed bool, err error) {
	err = env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		changed = false
		columns, err := env.renew(ctx, tx, table, id)
		if err != nil {
			return err
		}
		for _, c := range columns {
			if slices.Equal(c.old, c.renewed) {
				continue
			}
			res, err := tx.NewRaw("UPDATE ? SET ? = ? WHERE id = ? AND ? = ?",
				bun.Ident(table), bun.Ident(c.column), string(c.renewed), id, bun.Ident(c.column), string(c.old)).Exec(ctx)
			if err != nil {
				return fmt.Errorf("%s %d: %w", table, id, err)
			}
			n, _ := res.RowsAffected()
			changed = changed || n == 1
		}
		if !changed || !first {
			return nil
		}
		return env.act(ctx, tx)
	})
	return changed && err == nil, err
}

// renew reads a row and seals anew what needs it.
func (env Env) renew(ctx context.Context, tx db.Tx, table string, id int64) ([]sealed, error) {
	switch table {
	case settings.MerchantsTable:
		var r merchant.Row
		if err := env.DB.ForUpdate(tx.NewSelect().Model(&r).Where("m.id = ?", id)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read merchant %d: %w", id, err)
		}
		columns, err := env.renewTold(settings.EndpointOwner{Table: table, Code: r.Code}, settings.SecretPlace(r.Code), r.SigningSecrets, r.Notify)
		if err != nil {
			return nil, fmt.Errorf("merchant %s: %w", r.Code, err)
		}
		return columns, nil
	case settings.SubscriptionsTable:
		var r settings.SubscriptionRow
		if err := env.DB.ForUpdate(tx.NewSelect().Model(&r).Where("sb.id = ?", id)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read subscription %d: %w", id, err)
		}
		columns, err := env.renewTold(settings.EndpointOwner{Table: table, Code: r.Code}, settings.SubscriptionSecretPlace(r.Code), r.SigningSecrets, r.Notify)
		if err != nil {
			return nil, fmt.Errorf("subscription %s: %w", r.Code, err)
		}
		return columns, nil
	}
	var r settings.SupplierRow
	if err := env.DB.ForUpdate(tx.NewSelect().Model(&r).Where("su.id = ?", id)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read supplier %d: %w", id, err)
	}
	renewed, err := env.renewConfig(r)
	if err != nil {
		return nil, fmt.Errorf("supplier %s: %w", r.Code, err)
	}
	return []sealed{{"config", r.Config, renewed}}, nil
}

// renewTold does the secrets of how somebody is told: those that sign, and those
// of its addresses.
func (env Env) renewTold(owner settings.EndpointOwner, place seal.Place, secrets, notify json.RawMessage) ([]sealed, error) {
	signing, err := env.renewSecrets(place, secrets)
	if err != nil {
		return nil, err
	}
	columns := []sealed{{"signing_secrets", secrets, signing}}
	var s merchant.Settings
	if err := json.Unmarshal(notify, &s); err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	if !settings.AnySecret(s.Endpoints, env.Keys.NeedsReseal) {
		return columns, nil
	}
	open, err := settings.OpenEndpoints(env.Keys, owner, s.Endpoints)
	if err != nil {
		return nil, errors.Join(err, hint(err))
	}
	s.Endpoints = settings.SealEndpoints(env.Keys, owner, open)
	renewed, err := json.Marshal(s)
	return append(columns, sealed{"notify", notify, renewed}), err
}

func (env Env) renewConfig(r settings.SupplierRow) (json.RawMessage, error) {
	kind, err := env.Kinds.Find(r.Kind)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(r.Config, &fields); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	needed := false
	for _, field := range kind.Secrets {
		texts, _ := fields[field].([]any)
		if text, ok := fields[field].(string); ok {
			texts = []any{text}
		}
		for _, t := range texts {
			text, ok := t.(string)
			needed = needed || ok && env.Keys.NeedsReseal(text)
		}
	}
	if !needed {
		return r.Config, nil
	}
	plain, err := settings.OpenConfig(env.Kinds, env.Keys, r)
	if err != nil {
		return nil, err
	}
	return settings.SealConfig(kind, env.Keys, r.Code, plain)
}

func (env Env) renewSecrets(place seal.Place, stored json.RawMessage) (json.RawMessage, error) {
	var texts []string
	if err := json.Unmarshal(stored, &texts); err != nil {
		return nil, fmt.Errorf("signing secrets: %w", err)
	}
	if !slices.ContainsFunc(texts, env.Keys.NeedsReseal) {
		return stored, nil
	}
	for i, text := range texts {
		plain, err := env.Keys.Open(place, text)
		if err != nil {
			return nil, errors.Join(err, hint(err))
		}
		texts[i] = env.Keys.Seal(place, plain)
	}
	return json.Marshal(texts)
}

// hint says how to mend what seal's error only names.
func hint(err error) error {
	if errors.Is(err, seal.ErrKey) {
		return errors.New("add the older master key behind the current one and run again")
	}
	return nil
}
