package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Reseal makes the first master key the one in use and seals every secret under it, so that
// older keys can be removed. It returns how many rows it changed. From then on, a node without
// that key is not ready. Each row has its own transaction: to continue an interrupted run, run
// it again. The error lists rows whose secrets do not open; the others are resealed
// nevertheless.
//
// progress, if not nil, is called with the number of rows read so far.
func Reseal(ctx context.Context, env Env, progress func(rows int)) (changed int, err error) {
	if err := settings.CheckReseal(ctx, env.DB, env.Keys); err != nil {
		return 0, err
	}
	recorded, err := env.changeKey(ctx)
	if err != nil {
		return 0, err
	}
	var wrong []error
	rows := 0
	for _, table := range []string{
		"suppliers", settings.MerchantsTable, settings.SubscriptionsTable, changesTable,
		settings.PayoutAccountsTable, operatorsTable,
	} {
		var ids []int64
		if err := env.DB.Read.NewRaw("SELECT id FROM ? ORDER BY id", bun.Ident(table)).Scan(ctx, &ids); err != nil {
			return changed, fmt.Errorf("read %s: %w", table, err)
		}
		for _, id := range ids {
			did, err := env.reseal(ctx, table, id, !recorded && changed == 0)
			if ctx.Err() != nil {
				return changed, ctx.Err()
			}
			if err != nil {
				wrong = append(wrong, err)
			}
			if did {
				changed++
			}
			rows++
			if progress != nil {
				progress(rows)
			}
		}
	}
	if err := env.retire(ctx); err != nil {
		wrong = append(wrong, err)
	}
	return changed, errors.Join(wrong...)
}

// retire stores what is still needed of the older master keys after their removal: to verify
// the audit, and the tokens that were made under them.
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
			if stored, ok := retired[id]; ok && !env.Keys.NeedsReseal(stored) {
				continue
			}
			_, err := tx.NewRaw(
				"INSERT INTO retired_keys (key_id, sealed) VALUES (?, ?) ON CONFLICT (key_id) DO UPDATE SET sealed = EXCLUDED.sealed", id,
				sealed).Exec(ctx)
			if err != nil {
				return fmt.Errorf("retire master key %s: %w", id, err)
			}
		}
		return nil
	})
	return errors.Join(err, hint(wrong))
}

// changeKey makes the current key the one in use and records that in the audit.
func (env Env) changeKey(ctx context.Context) (changed bool, err error) {
	err = env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if changed, err = settings.ChangeKey(ctx, tx, env.DB, env.Keys); err != nil || !changed {
			return err
		}
		return env.record(ctx, tx)
	})
	return changed, err
}

func (env Env) record(ctx context.Context, tx db.Tx) error {
	return audit.New(env.DB, env.Keys).Write(ctx, tx, audit.Act{
		Actor: audit.Command(), Action: "secrets.reseal", Object: "master_key", ObjectID: env.Keys.ID(),
	})
}

// reseal reseals one row by compare-and-set: a concurrent apply, which uses the current key,
// wins. If the key in use did not change, the first changed row records the run in the audit:
// no secret is resealed without a record, even if the run is interrupted.
func (env Env) reseal(ctx context.Context, table string, id int64, first bool) (changed bool, err error) {
	err = env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		changed = false
		columns, err := env.columns(ctx, tx, table, id)
		if err != nil {
			return err
		}
		for _, c := range columns {
			if slices.Equal(c.old, c.renewed) {
				continue
			}
			res, err := tx.NewRaw("UPDATE ? SET ? = ? WHERE id = ? AND ? = ?",
				bun.Ident(table), bun.Ident(c.name), string(c.renewed), id, bun.Ident(c.name), string(c.old)).Exec(ctx)
			if err != nil {
				return fmt.Errorf("%s %d: %w", table, id, err)
			}
			n, _ := res.RowsAffected()
			changed = changed || n == 1
		}
		if !changed || !first {
			return nil
		}
		return env.record(ctx, tx)
	})
	return changed && err == nil, err
}

// operatorsTable has the secrets of second factors.
const operatorsTable = "operators"

// column is a column with secrets, as stored and under the current key.
type column struct {
	name         string
	old, renewed json.RawMessage
}

// columns reads the columns of a row that contain secrets.
func (env Env) columns(ctx context.Context, tx db.Tx, table string, id int64) (columns []column, err error) {
	var row struct {
		Code, Kind                     string
		Config, SigningSecrets, Notify json.RawMessage
		Sealed                         string
		TotpSecret                     *string
	}
	if table == settings.PayoutAccountsTable {
		return env.payoutAccount(ctx, tx, id)
	}
	names := []string{"code", "signing_secrets", "notify"}
	switch table {
	case "suppliers":
		names = []string{"code", "kind", "config"}
	case changesTable:
		names = []string{"sealed"}
	case operatorsTable:
		names = []string{"totp_secret"}
	}
	if err := env.DB.ForUpdate(tx.NewSelect().Table(table).Column(names...).Where("id = ?", id)).Scan(ctx, &row); err != nil {
		return nil, fmt.Errorf("read %s %d: %w", table, id, err)
	}
	name := "supplier"
	switch table {
	case changesTable:
		c, err := env.whole(table, id, "sealed", row.Sealed, changePlace(id))
		return []column{c}, err
	case operatorsTable:
		if row.TotpSecret == nil {
			return nil, nil
		}
		c, err := env.whole(table, id, "totp_secret", *row.TotpSecret, access.TOTPPlace(id))
		return []column{c}, err
	case "suppliers":
		columns, err = env.supplier(row.Code, row.Kind, row.Config)
	case settings.MerchantsTable:
		name = "merchant"
		columns, err = env.recipient(settings.EndpointOwner{Table: table, Code: row.Code}, row.SigningSecrets, row.Notify)
	case settings.SubscriptionsTable:
		name = "subscription"
		columns, err = env.recipient(settings.EndpointOwner{Table: table, Code: row.Code}, row.SigningSecrets, row.Notify)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, row.Code, err)
	}
	return columns, nil
}

func (env Env) supplier(code, kindName string, config json.RawMessage) ([]column, error) {
	kind, err := env.Kinds.Find(kindName)
	if err != nil {
		return nil, err
	}
	c, err := env.renew("config", config, func(change settings.MapSecret) (any, error) {
		return settings.MapConfig(kind, code, config, change)
	})
	return []column{c}, err
}

func (env Env) recipient(owner settings.EndpointOwner, secrets, notify json.RawMessage) ([]column, error) {
	signing, err := env.renew("signing_secrets", secrets, func(change settings.MapSecret) (any, error) {
		return settings.MapSigning(owner, secrets, change)
	})
	if err != nil {
		return nil, err
	}
	endpoints, err := env.renew("notify", notify, func(change settings.MapSecret) (any, error) {
		var s merchant.Settings
		err := json.Unmarshal(notify, &s)
		if err != nil {
			return nil, fmt.Errorf("notify: %w", err)
		}
		s.Endpoints, err = settings.MapEndpoints(owner, s.Endpoints, change)
		return s, err
	})
	return []column{signing, endpoints}, err
}

// payoutAccount reseals the number of a payout account, and renews its hash.
func (env Env) payoutAccount(ctx context.Context, tx db.Tx, id int64) ([]column, error) {
	was, is, err := settings.ResealPayoutAccount(ctx, tx, env.DB, env.Keys, id)
	if err != nil {
		return nil, fmt.Errorf("payout account %d: %w", id, hint(err))
	}
	return []column{
		{"number", json.RawMessage(was.Number), json.RawMessage(is.Number)},
		{"number_hash", json.RawMessage(was.NumberHash), json.RawMessage(is.NumberHash)},
	}, nil
}

// whole reseals a column that is one sealed text.
func (env Env) whole(table string, id int64, name, sealed string, place seal.Place) (column, error) {
	c := column{name, json.RawMessage(sealed), json.RawMessage(sealed)}
	if !env.Keys.NeedsReseal(sealed) {
		return c, nil
	}
	plain, err := env.Keys.Open(place, sealed)
	if err != nil {
		return c, fmt.Errorf("%s %d: %w", table, id, hint(err))
	}
	c.renewed = json.RawMessage(env.Keys.Seal(place, plain))
	return c, nil
}

// renew reseals the secrets of a column that are not under the current key. If there are none,
// the column is unchanged.
func (env Env) renew(name string, old json.RawMessage, value func(settings.MapSecret) (any, error)) (column, error) {
	needed := false
	v, err := value(func(place seal.Place, text string) (string, error) {
		if !env.Keys.NeedsReseal(text) {
			return text, nil
		}
		needed = true
		plain, err := env.Keys.Open(place, text)
		if err != nil {
			return "", hint(err)
		}
		return env.Keys.Seal(place, plain), nil
	})
	if err != nil || !needed {
		return column{name, old, old}, err
	}
	renewed, err := json.Marshal(v)
	return column{name, old, renewed}, err
}

// hint adds to an error of package seal how to fix it.
func hint(err error) error {
	if errors.Is(err, seal.ErrKey) {
		return errors.Join(err, errors.New("add the older master key after the current one and run reseal again"))
	}
	return err
}
