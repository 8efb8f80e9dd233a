package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/merchant"
	"backstop/internal/seal"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Reseal brings every secret under the current master key, so that older keys
// can be removed, and returns how many rows it changed. Each row is a change of
// its own: interrupted, it goes on where it was when it is run again. A row whose
// secrets do not open is named in the error; the others are done all the same.
//
// Progress, where it is not nil, is told each row that was looked at.
func Reseal(ctx context.Context, env Env, progress func(looked int)) (changed int, err error) {
	var wrong []error
	looked := 0
	for _, table := range []string{"suppliers", "merchants"} {
		var ids []int64
		if err := env.DB.Read.NewRaw("SELECT id FROM ? ORDER BY id", bun.Ident(table)).Scan(ctx, &ids); err != nil {
			return changed, fmt.Errorf("read %s: %w", table, err)
		}
		for _, id := range ids {
			did, err := env.reseal(ctx, table, id)
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
	return changed, errors.Join(wrong...)
}

// reseal does one row by compare-and-set: somebody who applies at the same
// moment wins, with the current key.
func (env Env) reseal(ctx context.Context, table string, id int64) (changed bool, err error) {
	err = env.DB.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		column, old, renewed, err := env.renew(ctx, tx, table, id)
		if err != nil || slices.Equal(old, renewed) {
			return err
		}
		res, err := tx.NewRaw("UPDATE ? SET ? = ? WHERE id = ? AND ? = ?",
			bun.Ident(table), bun.Ident(column), string(renewed), id, bun.Ident(column), string(old)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("%s %d: %w", table, id, err)
		}
		n, _ := res.RowsAffected()
		changed = n == 1
		return nil
	})
	return changed, err
}

// renew reads a row and seals anew what needs it.
func (env Env) renew(ctx context.Context, tx bun.Tx, table string, id int64) (column string, old, renewed json.RawMessage, err error) {
	if table == "suppliers" {
		var r settings.SupplierRow
		if err := env.DB.ForUpdate(tx.NewSelect().Model(&r).Where("su.id = ?", id)).Scan(ctx); err != nil {
			return "", nil, nil, fmt.Errorf("read supplier %d: %w", id, err)
		}
		renewed, err = env.renewConfig(r)
		if err != nil {
			err = fmt.Errorf("supplier %s: %w", r.Code, err)
		}
		return "config", r.Config, renewed, err
	}
	var r merchant.Row
	if err := env.DB.ForUpdate(tx.NewSelect().Model(&r).Where("m.id = ?", id)).Scan(ctx); err != nil {
		return "", nil, nil, fmt.Errorf("read merchant %d: %w", id, err)
	}
	renewed, err = env.renewSecrets(r)
	if err != nil {
		err = fmt.Errorf("merchant %s: %w", r.Code, err)
	}
	return "signing_secrets", r.SigningSecrets, renewed, err
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

func (env Env) renewSecrets(r merchant.Row) (json.RawMessage, error) {
	var sealed []string
	if err := json.Unmarshal(r.SigningSecrets, &sealed); err != nil {
		return nil, fmt.Errorf("signing secrets: %w", err)
	}
	if !slices.ContainsFunc(sealed, env.Keys.NeedsReseal) {
		return r.SigningSecrets, nil
	}
	place := settings.SecretPlace(r.Code)
	for i, text := range sealed {
		plain, err := env.Keys.Open(place, text)
		if err != nil {
			return nil, errors.Join(err, hint(err))
		}
		sealed[i] = env.Keys.Seal(place, plain)
	}
	return json.Marshal(sealed)
}

// hint says how to mend what seal's error only names.
func hint(err error) error {
	if errors.Is(err, seal.ErrKey) {
		return errors.New("add the older master key behind the current one and run again")
	}
	return nil
}
