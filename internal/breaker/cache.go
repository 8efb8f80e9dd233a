package breaker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/recipient"
)

// Cache is a node's copy of the breakers. A healthy recipient has no row.
type Cache struct {
	// Closes adds to the writes of a transaction that closes a breaker; nil = nothing. Set it
	// before using the cache.
	Closes func(*db.Writes, *Change)

	db     *db.DB
	owners string // SQL: whose rows these are
	policy func(recipient.Recipient) Policy
	rows   atomic.Pointer[map[int64]*Row] // by owner id

	mu        sync.Mutex // serializes writers of rows
	successes map[recipient.Recipient]tally
}

// tally counts successes of a recipient without a row; they matter only if an attempt fails
// within the same window.
type tally struct{ from, n int64 }

// RefreshEvery bounds the age of a node's copy: changes by other nodes take effect within this
// time.
const RefreshEvery = 500 * time.Millisecond

// writeTime is longer than any transaction takes: a newer row that was not read may have been
// committed since. Rows that are left out of the copy are much older.
const writeTime = 15 * time.Second

// Conditions on a row of breakers or their history by kind of owner: an id belongs to one owner
// of any kind.
const (
	ofSuppliers  = "owner_kind = 'supplier'"
	ofRecipients = "owner_kind <> 'supplier'"
)

// NewCache returns an empty Cache of recipients' breakers; policy returns a recipient's rules.
func NewCache(d *db.DB, policy func(recipient.Recipient) Policy) *Cache {
	return newCache(d, ofRecipients, policy)
}

// NewSupplierCache returns an empty Cache of suppliers' breakers.
func NewSupplierCache(d *db.DB, p Policy) *Cache {
	return newCache(d, ofSuppliers, func(recipient.Recipient) Policy { return p })
}

func newCache(d *db.DB, owners string, policy func(recipient.Recipient) Policy) *Cache {
	b := &Cache{db: d, owners: owners, policy: policy, successes: map[recipient.Recipient]tally{}}
	b.rows.Store(&map[int64]*Row{})
	return b
}

// Of returns a recipient's breaker; nil = healthy.
func (b *Cache) Of(to recipient.Recipient) *Row { return b.All()[to.ID] }

// All returns this node's copy of every breaker that is not simply closed, by owner id.
func (b *Cache) All() map[int64]*Row { return *b.rows.Load() }

// Gate returns what a recipient's breaker allows now.
func (b *Cache) Gate(to recipient.Recipient) Gate { return b.Of(to).Gate(b.db.Now(), b.db.Boot()) }

// Refresh reads changes by other nodes and operators.
func (b *Cache) Refresh(ctx context.Context) error {
	now := b.db.Now()
	var rows []*Row
	err := b.db.Read.NewRaw("SELECT b.*, "+probeDelivery+" FROM breakers AS b WHERE (state <> 'closed' OR failures > 0) AND "+b.owners+
		" UNION SELECT b.*, "+probeDelivery+" FROM breakers AS b WHERE updated_at > ? AND "+b.owners,
		now-2*releaseTime.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read breakers: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, fresh := b.All(), make(map[int64]*Row, len(rows))
	for _, r := range rows {
		fresh[r.OwnerID] = newer(old[r.OwnerID], r)
	}
	for id, r := range old {
		// This node wrote the row while the others were being read.
		if fresh[id] == nil && r.UpdatedAt > now-writeTime.Microseconds() {
			fresh[id] = r
		}
	}
	b.rows.Store(&fresh)
	maps.DeleteFunc(b.successes, func(to recipient.Recipient, t tally) bool { return b.isOver(t, to, now) })
	return nil
}

// isOver reports whether a tally's window has ended.
func (b *Cache) isOver(t tally, to recipient.Recipient, now int64) bool {
	return now-t.from > b.policy(to).Window.Microseconds()
}

// newer returns the newer of two copies of a row: one that this node has just written is kept
// when an older one is read after it. The row that was read continues the count of failed
// probes.
func newer(known, read *Row) *Row {
	if known == nil {
		return read
	}
	if known.Generation > read.Generation || known.Generation == read.Generation && known.UpdatedAt > read.UpdatedAt {
		return known
	}
	if read.State != Closed {
		read.FailedProbes = known.FailedProbes
		if read.Generation > known.Generation && read.Cause == ProbeFailed {
			read.FailedProbes++
		}
	}
	return read
}

// keep puts rows written by this node into its copy at once.
func (b *Cache) keep(rows []*Row) {
	if len(rows) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := maps.Clone(b.All())
	for _, r := range rows {
		next[r.OwnerID] = newer(next[r.OwnerID], r)
	}
	b.rows.Store(&next)
}

// count adds successes of a recipient without failures; false = its row must be changed
// instead.
func (b *Cache) count(to recipient.Recipient, successes, now int64) bool {
	if r := b.Of(to); r != nil && (r.State != Closed || r.Failures > 0) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.successes[to]
	if b.isOver(t, to, now) {
		t = tally{from: now}
	}
	t.n += successes
	b.successes[to] = t
	return true
}

// takeCount returns and resets the successes that were counted only here.
func (b *Cache) takeCount(to recipient.Recipient) tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.successes[to]
	delete(b.successes, to)
	return t
}
