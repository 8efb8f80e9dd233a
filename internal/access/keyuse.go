package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// useEvery is the precision of a key's last use; otherwise every request would be a write.
const useEvery = time.Hour

// noteTime bounds what noting a use may add to a request, once an hour.
const noteTime = time.Second

// KeyUses notes when the keys of the API are used.
type KeyUses struct {
	db    *db.DB
	mu    sync.Mutex
	noted map[string]int64 // by hash, Unix µs
}

// NewKeyUses returns the uses of keys in the database.
func NewKeyUses(d *db.DB) *KeyUses { return &KeyUses{db: d, noted: map[string]int64{}} }

// Note notes that a key which exists is used, by its hash: one write per key, node and hour.
func (k *KeyUses) Note(ctx context.Context, hash string) error {
	now := k.db.Now()
	if !k.isDue(hash, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	_, err := k.db.NewRaw("INSERT INTO key_uses (key_hash, used_at) VALUES (?, ?)"+
		" ON CONFLICT (key_hash) DO UPDATE SET used_at = excluded.used_at WHERE key_uses.used_at < excluded.used_at", hash, now).Exec(ctx)
	if err != nil && !db.IsReadOnly(err) {
		return fmt.Errorf("note the use of a key: %w", err)
	}
	return nil
}

// isDue reports whether a use is to be written, which it is not again within the hour even if it fails.
func (k *KeyUses) isDue(hash string, now int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last, ok := k.noted[hash]; ok && now-last < useEvery.Microseconds() {
		return false
	}
	k.noted[hash] = now
	return true
}

// KeyUse is one of a merchant's keys.
type KeyUse struct {
	Set    bool
	UsedAt *int64 // Unix µs, to the hour; nil = not since it was set
}

// MerchantKeys are the keys of a merchant, with their last use.
type MerchantKeys struct{ API, Payout KeyUse }

// MerchantKeysOf returns the keys of the merchant with a code; none if there is no such merchant.
func MerchantKeysOf(ctx context.Context, q bun.IDB, code string) (k MerchantKeys, err error) {
	err = q.NewRaw("SELECT m.api_key_hash IS NOT NULL, a.used_at, m.payout_key_hash IS NOT NULL, p.used_at FROM merchants AS m"+
		" LEFT JOIN key_uses AS a ON a.key_hash = m.api_key_hash LEFT JOIN key_uses AS p ON p.key_hash = m.payout_key_hash"+
		" WHERE m.code = ?", code).Scan(ctx, &k.API.Set, &k.API.UsedAt, &k.Payout.Set, &k.Payout.UsedAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return k, fmt.Errorf("read the last use of the keys of %s: %w", code, err)
	}
	return k, nil
}
