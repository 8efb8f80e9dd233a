package settings

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/db"
	"backstop/internal/seal"
)

// ErrForeignKey says that the database's secrets are sealed under master keys that
// this process does not have, all of them: its own is a wrong one, or was made just
// now because the right one is missing.
var ErrForeignKey = errors.New("the secrets in the database are sealed under another master key")

// CheckKeys returns ErrForeignKey where none of the database's secrets would open.
// With such a key callbacks could not be verified nor notifications signed, and what
// is applied would be sealed so that no other node can read it. Where only some do
// not open, the others go on.
func CheckKeys(ctx context.Context, d *db.DB, keys *seal.Keyring) error {
	foreign := ""
	for _, q := range []string{
		"SELECT config FROM suppliers", "SELECT signing_secrets FROM " + MerchantsTable, "SELECT signing_secrets FROM " + SubscriptionsTable,
	} {
		var texts []string
		if err := d.Read.NewRaw(q).Scan(ctx, &texts); err != nil {
			return fmt.Errorf("read what is sealed: %w", err)
		}
		for _, text := range texts {
			for _, id := range seal.KeyIDs(text) {
				if keys.Has(id) {
					return nil
				}
				foreign = id
			}
		}
	}
	if foreign == "" {
		return nil
	}
	return fmt.Errorf("%w (id %s; ours is %s): put its file back, or give it by BACKSTOP_MASTER_KEY", ErrForeignKey, foreign, keys.ID())
}
