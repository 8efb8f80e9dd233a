package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/uptrace/bun"
)

// The master key in use is the one under which secrets are sealed now. Its id stands
// in the database, so that each process can say whether its own keys are the right
// ones: it must hold the key in use, anywhere in its list. Only Reseal changes it.

// ErrForeignKey says that the secrets in the database are sealed under a master key
// that this process does not have: callbacks could not be verified nor notifications
// signed, and what is applied would be sealed so that no other node can read it.
var ErrForeignKey = errors.New("the secrets in the database are sealed under another master key")

func foreign(inUse string, keys *seal.Keyring) error {
	return fmt.Errorf("%w (in use is the key %s; this process has %s): put its file back, or give it by BACKSTOP_MASTER_KEY",
		ErrForeignKey, inUse, strings.Join(keys.IDs(), ", "))
}

// KeyInUse is the id of the master key in use, "" where no process has used one yet.
func KeyInUse(ctx context.Context, q bun.IDB) (string, error) {
	var ids []string
	if err := q.NewRaw("SELECT key_id FROM master_key").Scan(ctx, &ids); err != nil {
		return "", fmt.Errorf("read which master key is in use: %w", err)
	}
	return strings.Join(ids, ""), nil // one row at most
}

// SealedUnder are the ids of all keys under which something in the database is sealed.
func SealedUnder(ctx context.Context, d *db.DB) (ids []string, err error) {
	for _, q := range []string{
		"SELECT config FROM suppliers", "SELECT signing_secrets FROM " + MerchantsTable, "SELECT notify FROM " + MerchantsTable,
		"SELECT signing_secrets FROM " + SubscriptionsTable, "SELECT notify FROM " + SubscriptionsTable,
	} {
		var texts []string
		if err := d.Read.NewRaw(q).Scan(ctx, &texts); err != nil {
			return nil, fmt.Errorf("read what is sealed: %w", err)
		}
		for _, text := range texts {
			for _, id := range seal.KeyIDs(text) {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, nil
}

// UseKeys is what a process does with its master keys before it opens or seals
// anything. It returns the keys so that they seal under the one in use; where none is
// yet, the first of them that has sealed something becomes it, or the first one at
// all. Without the key in use it is ErrForeignKey.
func UseKeys(ctx context.Context, d *db.DB, keys *seal.Keyring) (*seal.Keyring, error) {
	inUse, err := KeyInUse(ctx, d.Read)
	if err != nil {
		return nil, err
	}
	if inUse == "" {
		if inUse, err = firstUse(ctx, d, keys); err != nil {
			return nil, err
		}
	}
	ring, ok := keys.SealingUnder(inUse)
	if !ok {
		return nil, foreign(inUse, keys)
	}
	return ring, nil
}

// firstUse writes which key is in use, and returns what stands there: another process
// may have been faster.
func firstUse(ctx context.Context, d *db.DB, keys *seal.Keyring) (string, error) {
	sealed, err := SealedUnder(ctx, d)
	if err != nil {
		return "", err
	}
	inUse := keys.ID()
	if len(sealed) > 0 {
		i := slices.IndexFunc(keys.IDs(), func(id string) bool { return slices.Contains(sealed, id) })
		if i < 0 {
			return "", foreign(sealed[0], keys)
		}
		inUse = keys.IDs()[i]
	}
	if _, err := d.NewRaw("INSERT INTO master_key (place, key_id, updated_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING", inUse, d.Now()).Exec(ctx); err != nil {
		return "", fmt.Errorf("write which master key is in use: %w", err)
	}
	return KeyInUse(ctx, d)
}

// CheckKeys is ErrForeignKey where the master key in use is not among the keys of a
// running process any more.
func CheckKeys(ctx context.Context, d *db.DB, keys *seal.Keyring) error {
	inUse, err := KeyInUse(ctx, d.Read)
	if err == nil && inUse != "" && !keys.Has(inUse) {
		err = foreign(inUse, keys)
	}
	return err
}

// CheckReseal says whether the keys may take the place of the one in use: they hold
// it, or nothing is sealed under it and something else opens, or nothing is sealed.
func CheckReseal(ctx context.Context, d *db.DB, keys *seal.Keyring) error {
	inUse, err := KeyInUse(ctx, d.Read)
	if err != nil || keys.Has(inUse) {
		return err
	}
	sealed, err := SealedUnder(ctx, d)
	if err != nil || len(sealed) == 0 {
		return err
	}
	if slices.Contains(sealed, inUse) || !slices.ContainsFunc(sealed, keys.Has) {
		if inUse == "" {
			inUse = sealed[0]
		}
		return foreign(inUse, keys)
	}
	return nil
}

// ErrKeyChanged says that secrets were sealed anew while something was being applied.
var ErrKeyChanged = errors.New("the master key in use has just changed: run it again")

// ConfirmKey is for the transaction that writes what was sealed: ErrKeyChanged where
// the keys no longer seal under the one in use. The settings' version is locked.
func ConfirmKey(ctx context.Context, tx db.Tx, keys *seal.Keyring) error {
	inUse, err := KeyInUse(ctx, tx)
	if err == nil && inUse != "" && inUse != keys.ID() {
		err = ErrKeyChanged
	}
	return err
}

// ChangeKey makes the first of the keys the one in use, in the transaction that begins
// to seal anew; false where it is already.
func ChangeKey(ctx context.Context, tx db.Tx, d *db.DB, keys *seal.Keyring) (bool, error) {
	if err := LockVersion(ctx, tx, d); err != nil {
		return false, err
	}
	res, err := tx.NewRaw("INSERT INTO master_key (place, key_id, updated_at) VALUES (1, ?, ?) ON CONFLICT (place) DO UPDATE"+
		" SET key_id = EXCLUDED.key_id, updated_at = EXCLUDED.updated_at WHERE master_key.key_id <> EXCLUDED.key_id", keys.ID(), d.Now()).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("write which master key is in use: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// LockVersion makes changes of settings go one after the other: the second one sees
// what the first one made, instead of failing on it or waiting for it in a circle.
func LockVersion(ctx context.Context, tx db.Tx, d *db.DB) error {
	var version int64
	lock := tx.NewSelect().Table("settings").Column("value").Where("name = 'config_version'")
	if err := d.ForUpdate(lock).Scan(ctx, &version); err != nil {
		return fmt.Errorf("lock the settings: %w", err)
	}
	return nil
}
