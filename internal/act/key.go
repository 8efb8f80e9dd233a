package act

import (
	"context"
	"fmt"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/uptrace/bun"
)

const (
	// maxKey bounds the key of a call, in bytes.
	maxKey = 100
	// keyAge is how long a key is kept, in µs: a day.
	keyAge = 24 * 3600 * 1_000_000
)

// NewKey returns a key for one call, to be embedded in a form.
func NewKey() string { return seal.NewToken("") }

// ClaimKey stores a key in the transaction of the call; false = it was used already. Without a
// key every call is new. Errors: *FieldError.
func ClaimKey(ctx context.Context, tx db.Tx, now int64, key string) (bool, error) {
	if key == "" {
		return true, nil
	}
	if len(key) > maxKey {
		return true, &FieldError{Field: "form_key", Problem: "open the page again and send the form from there"}
	}
	res, err := tx.NewRaw("INSERT INTO form_keys (form_key, at) VALUES (?, ?) ON CONFLICT DO NOTHING", seal.HashToken(key), now).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("store the key of a call: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	_, err = tx.NewRaw("DELETE FROM form_keys WHERE form_key IN (SELECT form_key FROM form_keys WHERE at < ? LIMIT 100)",
		now-keyAge).Exec(ctx)
	return true, err
}

// SaveKey links the key to what the call did: the last row of the audit, whose end this
// transaction has locked.
func SaveKey(ctx context.Context, tx db.Tx, key string) error {
	if key == "" {
		return nil
	}
	number, _, err := audit.Head(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.NewRaw("UPDATE form_keys SET act = ? WHERE form_key = ?", number, seal.HashToken(key)).Exec(ctx)
	return err
}

// Done returns what the call with the key did, if it concerned this very subject or, if id is
// empty, one of this kind; nil = nothing. Pages show it as the result, and the check keeps a
// crafted URL from showing an act that was done elsewhere.
func (r *Registry) Done(ctx context.Context, key, object, id string) (*audit.Row, error) {
	return FindByKey(ctx, r.db.Read, key, object, id)
}

// FindByKey is Done without a Registry.
func FindByKey(ctx context.Context, q bun.IDB, key, object, id string) (*audit.Row, error) {
	if key == "" || len(key) > maxKey {
		return nil, nil
	}
	var rows []audit.Row
	sel := q.NewSelect().Model(&rows).Where("au.number = (SELECT f.act FROM form_keys AS f WHERE f.form_key = ?)", seal.HashToken(key)).
		Where("au.object = ?", object)
	if id != "" {
		sel = sel.Where("au.object_id = ?", id)
	}
	if err := sel.Scan(ctx); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
