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

// The master key in use is the key under which secrets are currently sealed. Its id is stored
// in the database, so that each process can check that it has this key. Only Reseal changes it.

// ErrForeignKey means that the secrets in the database are sealed under a master key that
// this process does not have: callbacks could not be verified nor notifications signed,
// and no other node could open what this one seals.
var ErrForeignKey = errors.New("the secrets in the database are sealed under another master key")

func foreign(inUse string, keys *seal.Keyring) error {
	return fmt.Errorf("%w (in use is the key %s; this process has %s): restore its file, or set BACKSTOP_MASTER_KEY",
		ErrForeignKey, inUse, strings.Join(keys.IDs(), ", "))
}

// KeyInUse returns the id of the master key in use; "" = no process has used one yet.
func KeyInUse(ctx context.Context, q bun.IDB) (string, error) {
	var ids []string
	if err := q.NewRaw("SELECT key_id FROM master_key").Scan(ctx, &ids); err != nil {
		return "", fmt.Errorf("read which master key is in use: %w", err)
	}
	return strings.Join(ids, ""), nil // one row at most
}

// SealedUnder returns the ids of all keys under which something in the database is sealed.
func SealedUnder(ctx context.Context, d *db.DB) (ids []string, err error) {
	for _, q := range []string{
		"SELECT config FROM suppliers", "SELECT signing_secrets FROM " + MerchantsTable, "SELECT notify FROM " + MerchantsTable,
		"SELECT signing_secrets FROM " + SubscriptionsTable, "SELECT notify FROM " + SubscriptionsTable,
		"SELECT sealed FROM setting_changes", "SELECT number FROM " + PayoutAccountsTable,
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

// UseKeys is called before a process opens or seals anything. It returns the keys set to seal
// under the key in use. If there is none yet, the first key that has sealed something becomes
// it, else the first one. Without the key in use the error is ErrForeignKey.
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
	return sealingUnder(inUse, keys)
}

// UseKeysIn is UseKeys in a transaction, once a process has used a key before.
func UseKeysIn(ctx context.Context, tx db.Tx, keys *seal.Keyring) (*seal.Keyring, error) {
	inUse, err := KeyInUse(ctx, tx)
	if err != nil || inUse == "" {
		return keys, err
	}
	return sealingUnder(inUse, keys)
}

func sealingUnder(inUse string, keys *seal.Keyring) (*seal.Keyring, error) {
	ring, ok := keys.SealingUnder(inUse)
	if !ok {
		return nil, foreign(inUse, keys)
	}
	return ring, nil
}

// firstUse stores the key in use and returns the stored id: another process may have been
// faster.
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
	if _, err := d.NewRaw("INSERT INTO master_key (place, key_id, updated_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING", inUse,
		d.Now()).Exec(ctx); err != nil {
		return "", fmt.Errorf("write which master key is in use: %w", err)
	}
	return KeyInUse(ctx, d)
}

// CheckKeys returns ErrForeignKey if the master key in use is no longer among the keys of
// a running process.
func CheckKeys(ctx context.Context, d *db.DB, keys *seal.Keyring) error {
	inUse, err := KeyInUse(ctx, d.Read)
	if err == nil && inUse != "" && !keys.Has(inUse) {
		err = foreign(inUse, keys)
	}
	return err
}

// CheckReseal returns an error unless the keys may replace the one in use: they include it; or
// nothing is sealed under it and they open something else; or nothing is sealed.
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

// ErrKeyChanged means that secrets were resealed while settings were being applied.
var ErrKeyChanged = errors.New("the master key in use has just changed: run the command again")

// ConfirmKey returns ErrKeyChanged if the keys no longer seal under the one in use. Call
// it in the transaction that writes sealed secrets, with the version locked.
func ConfirmKey(ctx context.Context, tx db.Tx, keys *seal.Keyring) error {
	inUse, err := KeyInUse(ctx, tx)
	if err == nil && inUse != "" && inUse != keys.ID() {
		err = ErrKeyChanged
	}
	return err
}

// ChangeKey makes the first of the keys the one in use, in the transaction that starts
// resealing; false if it already is.
func ChangeKey(ctx context.Context, tx db.Tx, d *db.DB, keys *seal.Keyring) (bool, error) {
	if err := LockVersion(ctx, tx, d); err != nil {
		return false, err
	}
	res, err := tx.NewRaw("INSERT INTO master_key (place, key_id, updated_at) VALUES (1, ?, ?) ON CONFLICT (place) DO UPDATE"+
		" SET key_id = EXCLUDED.key_id, updated_at = EXCLUDED.updated_at WHERE master_key.key_id <> EXCLUDED.key_id", keys.ID(),
		d.Now()).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("write which master key is in use: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// LockVersion serialises changes of settings: the second one sees the result of the first
// instead of a conflict or a deadlock.
func LockVersion(ctx context.Context, tx db.Tx, d *db.DB) error {
	var version int64
	lock := tx.NewSelect().Table("settings").Column("value").Where("name = 'config_version'")
	if err := d.ForUpdate(lock).Scan(ctx, &version); err != nil {
		return fmt.Errorf("lock the settings: %w", err)
	}
	return nil
}

// ReadRetired reads the retired master keys.
func ReadRetired(ctx context.Context, q bun.IDB) (seal.Retired, error) {
	var rows []struct{ KeyID, Sealed string }
	if err := q.NewRaw("SELECT key_id, sealed FROM retired_keys").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the retired master keys: %w", err)
	}
	r := make(seal.Retired, len(rows))
	for _, row := range rows {
		r[row.KeyID] = row.Sealed
	}
	return r, nil
}

// WithRetired returns the keyring with the database's retired keys, for verification only. Keys
// that cannot be opened are left out; the verification reports them.
func WithRetired(ctx context.Context, d *db.DB, keys *seal.Keyring) (*seal.Keyring, error) {
	retired, err := ReadRetired(ctx, d.Read)
	if err != nil {
		return nil, err
	}
	with, _ := keys.WithRetired(retired)
	return with, nil
}
