package breaker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/db"
)

// Cache is a node's copy of the breakers. Only merchants with something to say are
// in it.
type Cache struct {
	db     *db.DB
	policy func(merchantID int64) Policy
	rows   atomic.Pointer[map[int64]*Row]

	mu    sync.Mutex // of writers of rows
	taken map[int64]tally
}

// tally counts what merchants without a row took: results that nobody needs
// before one fails.
type tally struct{ from, n int64 }

// RefreshEvery is how old a node's copy may be: another node's change is felt
// after this time.
const RefreshEvery = 500 * time.Millisecond

// writeTime is longer than a transaction takes: a row that is newer and was not
// read may have been committed since. What is read is older than that by far
// before it is left out.
const writeTime = 15 * time.Second

// NewCache makes an empty Cache; policy gives a merchant's own rules.
func NewCache(d *db.DB, policy func(merchantID int64) Policy) *Cache {
	b := &Cache{db: d, policy: policy, taken: map[int64]tally{}}
	b.rows.Store(&map[int64]*Row{})
	return b
}

// Of returns a merchant's breaker, nil where it is well.
func (b *Cache) Of(merchantID int64) *Row { return (*b.rows.Load())[merchantID] }

// All returns this node's copy of every breaker that is not simply closed.
func (b *Cache) All() map[int64]*Row { return *b.rows.Load() }

// Gate asks what a merchant's breaker allows now.
func (b *Cache) Gate(merchantID int64) Gate {
	r := b.Of(merchantID)
	if r == nil {
		return Gate{Flow: true}
	}
	return r.Gate(b.db.Now(), b.db.Boot())
}

// Refresh reads what other nodes and people changed.
func (b *Cache) Refresh(ctx context.Context) error {
	now := b.db.Now()
	var rows []*Row
	err := b.db.Read.NewRaw("SELECT b.*, "+probeDelivery+" FROM breakers AS b WHERE state <> 'closed' OR failures > 0"+
		" UNION SELECT b.*, "+probeDelivery+" FROM breakers AS b WHERE updated_at > ?", now-2*releaseTime.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read breakers: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, fresh := *b.rows.Load(), make(map[int64]*Row, len(rows))
	for _, r := range rows {
		fresh[r.MerchantID] = newer(old[r.MerchantID], r)
	}
	for id, r := range old {
		// A row that this node wrote while it was reading.
		if fresh[id] == nil && r.UpdatedAt > now-writeTime.Microseconds() {
			fresh[id] = r
		}
	}
	b.rows.Store(&fresh)
	for id, t := range b.taken {
		if now-t.from > b.policy(id).Window.Microseconds() {
			delete(b.taken, id)
		}
	}
	return nil
}

// newer of two copies: what this node has just written is not taken back by what
// it read a moment before.
func newer(a, b *Row) *Row {
	if a != nil && (a.Generation > b.Generation || a.Generation == b.Generation && a.UpdatedAt > b.UpdatedAt) {
		return a
	}
	return b
}

// keep puts rows that this node has written into its copy at once.
func (b *Cache) keep(rows []*Row) {
	if len(rows) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := maps.Clone(*b.rows.Load())
	for _, r := range rows {
		next[r.MerchantID] = newer(next[r.MerchantID], r)
	}
	b.rows.Store(&next)
}

// well counts results of a merchant that has nothing but successes; true where
// that is all there is to do.
func (b *Cache) well(merchantID int64, taken, now int64) bool {
	if r := b.Of(merchantID); r != nil && (r.State != Closed || r.Failures > 0) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.taken[merchantID]
	if now-t.from > b.policy(merchantID).Window.Microseconds() {
		t = tally{from: now}
	}
	t.n += taken
	b.taken[merchantID] = t
	return true
}

// take hands over the successes that were only counted here.
func (b *Cache) take(merchantID int64) tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.taken[merchantID]
	delete(b.taken, merchantID)
	return t
}
