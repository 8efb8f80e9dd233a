package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/textlimit"

	"github.com/uptrace/bun"
)

// Ids are 63-bit numbers that grow with time (the Snowflake layout): 41 bits of milliseconds,
// 10 bits for a slot that the database assigns to one process at a time, 12 bits of sequence.
// They are made in Go, so that a batch of rows that reference each other can be written at
// once.
const (
	idEpochMilli = 1_704_067_200_000 // 2024-01-01T00:00:00Z
	slotBits     = 10
	seqBits      = 12
	maxSlot      = 1<<slotBits - 1
	// slotIdle is how long a slot stays assigned after the last beat of its process.
	slotIdle = time.Hour
)

type ids struct {
	slot atomic.Int64
	mu   sync.Mutex
	ms   int64
	seq  int64
}

// node is this process in the nodes table.
type node struct {
	name     string
	boot     int64
	sends    bool
	senders  atomic.Int64 // as of the last beat
	lock     *nameLock    // nil on SQLite, where the data folder's lock protects the name
	settings atomic.Pointer[inUse]
}

// inUse is which settings a process uses.
type inUse struct {
	version int64
	leftOut string // what of them it cannot use; "" = nothing
}

// uses returns which settings this process uses, as of Uses.
func (n *node) uses() inUse {
	if u := n.settings.Load(); u != nil {
		return *u
	}
	return inUse{}
}

// NewID returns a new id. It panics before Join: without a slot, the id could collide with
// another process's.
func (d *DB) NewID() int64 {
	slot := d.ids.slot.Load()
	if slot < 0 {
		panic("db: NewID before Join")
	}
	d.ids.mu.Lock()
	defer d.ids.mu.Unlock()
	ms := d.Now()/1000 - idEpochMilli
	switch {
	case ms > d.ids.ms:
		d.ids.ms, d.ids.seq = ms, 0
	case d.ids.seq < 1<<seqBits-1:
		d.ids.seq++ // same millisecond, or the clock was set back
	default:
		d.ids.ms, d.ids.seq = d.ids.ms+1, 0 // all 4,096 are used: take the next millisecond
	}
	return d.ids.ms<<(slotBits+seqBits) | slot<<seqBits | d.ids.seq
}

// maxIDAhead bounds how far ahead of the clock ids continue: what is further ahead was made while
// the clock was wrong.
const maxIDAhead = 24 * time.Hour

// ContinueIDs lets ids grow from the greatest of the tables on: the clock may have been set back
// while no process ran, and lists are sorted by id. Call it once, after Join.
func (d *DB) ContinueIDs(ctx context.Context, tables ...string) error {
	limit := IDAt(d.Now() + maxIDAhead.Microseconds())
	for _, table := range tables {
		var last int64
		if err := d.Read.NewRaw("SELECT coalesce(max(id), 0) FROM ? WHERE id < ?", bun.Ident(table), limit).Scan(ctx, &last); err != nil {
			return fmt.Errorf("read the last id of %s: %w", table, err)
		}
		d.ids.mu.Lock()
		if ms := last >> (slotBits + seqBits); ms >= d.ids.ms {
			d.ids.ms, d.ids.seq = ms+1, 0
		}
		d.ids.mu.Unlock()
	}
	return nil
}

// IDAt returns the smallest id that can have been made at a moment (Unix µs): older rows have
// smaller ids. Retention and time filters use it. Moments beyond the last id have the largest
// number.
func IDAt(us int64) int64 {
	ms := us/1000 - idEpochMilli
	if ms < 0 {
		return 0
	}
	if ms > math.MaxInt64>>(slotBits+seqBits) {
		return math.MaxInt64
	}
	return ms << (slotBits + seqBits)
}

// IDTime returns when an id was made, in Unix µs, to the millisecond.
func IDTime(id int64) int64 { return (id>>(slotBits+seqBits) + idEpochMilli) * 1000 }

// Boot identifies this run of the process: it is the owner of its leases.
func (d *DB) Boot() int64 { return d.node.boot }

// NodeName is the permanent name that was given to Open.
func (d *DB) NodeName() string { return d.node.name }

// RegisterNode registers the process: it takes the node's name, if it has one, and a slot for ids. It
// returns the boots of earlier runs under the name: they have ended (one process per name),
// and their leases may be released at once; Forget deletes their rows. The schema is checked
// again, since it may have changed after Migrate or CheckSchema; from then on, a migration
// that must run alone sees this process. Errors: ErrNameTaken, those of CheckSchema.
func (d *DB) RegisterNode(ctx context.Context, files fs.FS) (earlier []int64, err error) {
	if d.node.lock != nil && d.node.name != "" && d.node.lock.stop == nil {
		if err := d.node.lock.take(ctx); err != nil {
			return nil, err
		}
	}
	known, err := d.migrations(files)
	if err != nil {
		return nil, err
	}
	newest := known[len(known)-1].Name
	var slot int64
	err = d.changeSchema(ctx, func(ctx context.Context, tx Tx) (err error) {
		if err = d.checkSchema(ctx, tx, files); err != nil {
			return err
		}
		if slot, err = d.freeSlot(ctx, tx); err != nil {
			return err
		}
		now := d.Now()
		_, err = tx.NewRaw(
			"INSERT INTO nodes (slot, name, boot, sends, process, newest_migration, started_at, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			slot, d.node.name, d.node.boot, d.node.sends, process(), newest, now, now).Exec(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join the installation: %w", err)
	}
	d.ids.slot.Store(slot)
	return d.earlierBoots(ctx)
}

// process describes where this process runs.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s process %d", host, os.Getpid())
}

// freeSlot finds the lowest slot that is free or idle.
func (d *DB) freeSlot(ctx context.Context, tx Tx) (int64, error) {
	if _, err := tx.NewRaw("DELETE FROM nodes WHERE seen_at < ?", d.Now()-slotIdle.Microseconds()).Exec(ctx); err != nil {
		return 0, fmt.Errorf("delete idle nodes: %w", err)
	}
	var taken []int64
	if err := tx.NewRaw("SELECT slot FROM nodes ORDER BY slot").Scan(ctx, &taken); err != nil {
		return 0, fmt.Errorf("read node slots: %w", err)
	}
	free := int64(0)
	for free < int64(len(taken)) && taken[free] == free {
		free++
	}
	if free > maxSlot {
		return 0, fmt.Errorf("all %d node slots are taken: stop processes, or wait an hour for dead ones", maxSlot+1)
	}
	return free, nil
}

func (d *DB) earlierBoots(ctx context.Context) (boots []int64, err error) {
	if d.node.name == "" {
		return nil, nil
	}
	err = d.NewRaw("SELECT boot FROM nodes WHERE name = ? AND boot <> ?", d.node.name, d.node.boot).Scan(ctx, &boots)
	if err != nil {
		return nil, fmt.Errorf("read earlier boots: %w", err)
	}
	return boots, nil
}

// Forget deletes the rows of earlier boots once their leases are released.
func (d *DB) Forget(ctx context.Context, boots []int64) error {
	if len(boots) == 0 {
		return nil
	}
	_, err := d.NewRaw("DELETE FROM nodes WHERE boot IN (?)", bun.List(boots)).Exec(ctx)
	return err
}

// ErrEvicted means that another process took this one's slot, after an hour without a beat (for
// example of a suspended machine), or its name, after NodeGone. The process must end: its ids
// may collide, and its leases are released.
var ErrEvicted = errors.New("this process was not seen for a while and lost its place to another: restart it")

// Beat measures the clock again, records that this process runs and counts those that
// send. Call it every 10 seconds. After ErrEvicted and ErrNameTaken the process must end.
func (d *DB) Beat(ctx context.Context) error {
	if err := d.node.lock.err(); err != nil {
		return err
	}
	if err := d.measure(ctx); err != nil {
		return fmt.Errorf("measure the database clock: %w", err)
	}
	u := d.node.uses()
	res, err := d.NewRaw("UPDATE nodes SET seen_at = ?, config_version = ?, left_out = ? WHERE slot = ? AND boot = ?",
		d.Now(), u.version, u.leftOut, d.ids.slot.Load(), d.node.boot).Exec(ctx)
	d.room.noteEnd(err)
	if err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return ErrEvicted
	}
	var senders int64
	if err := d.Read.NewRaw("SELECT count(*) FROM nodes WHERE sends AND seen_at > ?", d.Now()-NodeGone.Microseconds()).Scan(ctx,
		&senders); err != nil {
		return fmt.Errorf("count the senders: %w", err)
	}
	d.node.senders.Store(senders)
	return nil
}

// Uses records which version of the settings this process now uses, and what of them it cannot
// use. If that fails, the next beat records it.
func (d *DB) Uses(ctx context.Context, version int64, leftOut []string) error {
	u := inUse{version, textlimit.Clip(strings.Join(leftOut, ", "), maxLeftOut)}
	if before := d.node.uses(); before == u {
		return nil
	}
	d.node.settings.Store(&u)
	_, err := d.NewRaw("UPDATE nodes SET config_version = ?, left_out = ? WHERE slot = ? AND boot = ?", u.version, u.leftOut,
		d.ids.slot.Load(), d.node.boot).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record which settings are in use: %w", err)
	}
	return nil
}

// maxLeftOut bounds the names of what a node cannot use, in bytes.
const maxLeftOut = 500

// Node is a running server of the installation.
type Node struct {
	Name          string
	ConfigVersion int64  // version of the settings that it uses
	LeftOut       string // what of them it cannot use; "" = nothing, or its version does not say so
	Fingerprint
}

// Nodes returns the running servers by name, including this one. Commands that run beside them
// have no name and are left out.
func (d *DB) Nodes(ctx context.Context) (all []Node, err error) {
	err = d.Read.NewRaw(
		"SELECT name, config_version, left_out, key_ids, ranges, build, shadow FROM nodes WHERE name <> '' AND seen_at > ? ORDER BY name, slot",
		d.Now()-NodeGone.Microseconds()).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return all, nil
}

// NodeGone is how long after its last beat a process counts as gone: three beats.
const NodeGone = 30 * time.Second

// Senders returns how many running processes of the installation send notifications, as of the
// last beat; at least 1.
func (d *DB) Senders() int { return int(max(d.node.senders.Load(), 1)) }

// Alone reports whether no other process of the installation is running.
func (d *DB) Alone(ctx context.Context) (bool, error) {
	var others bool
	err := d.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM nodes WHERE boot <> ? AND seen_at > ?)", d.node.boot,
		d.Now()-NodeGone.Microseconds()).Scan(ctx, &others)
	if err != nil {
		return false, fmt.Errorf("look for other nodes: %w", err)
	}
	return !others, nil
}

func (d *DB) leave(ctx context.Context) error {
	defer d.node.lock.close() // last: a process that waits for the name must not find our row
	if d.ids.slot.Load() < 0 {
		return nil
	}
	_, err := d.NewRaw("DELETE FROM nodes WHERE boot = ?", d.node.boot).Exec(ctx)
	return err
}
