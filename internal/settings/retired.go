package settings

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/uptrace/bun"
)

// ReadRetired reads what was kept of master keys that were taken out.
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

// WithRetired returns the keyring with the database's retired keys. What they were
// for is checked by them; one that does not open is missing there, and named there.
func WithRetired(ctx context.Context, d *db.DB, keys *seal.Keyring) (*seal.Keyring, error) {
	retired, err := ReadRetired(ctx, d.Read)
	if err != nil {
		return nil, err
	}
	with, _ := keys.WithRetired(retired)
	return with, nil
}
