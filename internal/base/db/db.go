// Package db opens the database, SQLite or PostgreSQL, and hides the few differences
// between them.
//
// Everything that must survive a crash is a row here; Redis only carries nudges. See
// docs/architecture.md.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// Options select and configure a database.
type Options struct {
	URL  string // postgres://…; empty = SQLite in Dir
	Dir  string // data folder, holds File
	Pool int    // connections to PostgreSQL, see Shares; 0 = 16
	// Node is the node's permanent name; a new run under that name releases the leases of
	// earlier runs (Join). Empty for commands that run beside a server.
	Node string
	// Sends marks a process that sends notifications. Such processes share the rate limit of
	// a merchant.
	Sends bool
}

// DB is an open database. The embedded *bun.DB writes. Read and Lists may be snapshot readers, and
// the database itself refuses what would write through them. SQLite has one writing connection,
// because more would only wait for each other inside the engine.
type DB struct {
	*bun.DB
	Read  *bun.DB
	Lists *bun.DB // for lists and search, whose terms are chosen by persons: a query ends after maxListTime

	postgres  bool // else SQLite
	superuser bool // of PostgreSQL
	pools     []*sql.DB
	clock     atomic.Pointer[clock]
	ahead     atomic.Int64 // ns that SetWall added to the wall clock
	stepped   atomic.Int64 // ns by which the wall clock was set, until ClockStep returns it
	ids       ids
	node      node

	asyncCommit *bun.DB // PostgreSQL, with synchronous_commit off
	statements  statements
	shared      shared
	room        room
	traffic     traffic
}

// Open connects and checks that the database answers. It neither migrates (Migrate) nor
// registers the node (Join).
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Pool <= 0 {
		o.Pool = 16
	}
	var (
		d   *DB
		err error
	)
	if o.URL == "" {
		d = openSQLite(o)
	} else {
		d, err = openPostgres(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	d.statements.list = map[statementKey]*sql.Stmt{}
	d.node.name, d.node.sends = o.Node, o.Sends
	d.node.boot = rand.Int64() | 1 // never 0: 0 means no owner
	d.ids.slot.Store(-1)
	if err := d.reach(ctx); err != nil {
		d.Close()
		if o.URL != "" {
			return nil, fmt.Errorf("reach the database of BACKSTOP_DATABASE_URL: %w", err)
		}
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return d, nil
}

// maxOpenWait is how long Open waits for another process that creates the same SQLite file.
const maxOpenWait = 5 * time.Second

// reach makes the first read from the database. Another process may be creating SQLite's file
// at this moment, and the engine does not wait for that by itself.
func (d *DB) reach(ctx context.Context) error {
	for end := time.Now().Add(maxOpenWait); ; pause(ctx, 10*time.Millisecond) {
		err := d.PingContext(ctx) // the writer makes SQLite's file: a reader only opens it
		if err == nil {
			err = d.measure(ctx)
		}
		if err == nil || d.postgres || !IsConflict(err) || time.Now().After(end) {
			return err
		}
	}
}

// File is the name of SQLite's file in the data folder.
const File = "backstop.db"

// logKept bounds the size in bytes of SQLite's write-ahead log after a checkpoint. The log
// grows as long as a reader holds an old snapshot, by gigabytes during a long verify, and
// would otherwise keep that size. Usually it needs a quarter of this.
const logKept = 16 << 20

// maxListTime bounds a query of Lists.
const maxListTime = 10 * time.Second

// openSQLite opens the file for one connection that writes, and for readers.
// _txlock=immediate takes the write lock at BEGIN; a deferred transaction that reads first and
// writes later can fail with "busy" whatever the timeout is.
func openSQLite(o Options) *DB {
	d := &DB{}
	open := func(size, idle int, c connector) *bun.DB {
		c.traffic = &d.traffic
		pool := sql.OpenDB(c)
		pool.SetMaxOpenConns(size)
		pool.SetMaxIdleConns(idle)
		d.pools = append(d.pools, pool)
		return bun.NewDB(pool, sqlitedialect.New())
	}
	file := func(more string) liteFile {
		return liteFile{"file:" + (&url.URL{Path: filepath.Join(o.Dir, File)}).EscapedPath() +
			"?_pragma=busy_timeout(5000)&_pragma=temp_store(2)" + more}
	}
	// query_only also refuses temporary tables, but a statement can switch it off, unlike mode=ro.
	readOnly := liteReader{file("&mode=ro&_pragma=query_only(1)&_pragma=cache_size(-4096)")}
	d.Read = open(8, 4, connector{Connector: readOnly, reads: true})
	d.Lists = open(4, 2, connector{Connector: readOnly, reads: true, maxTime: maxListTime})
	// The writer is the last to close: only it can move the log into the file.
	d.DB = open(1, 1, connector{Connector: file(fmt.Sprintf("&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
		"&_pragma=foreign_keys(1)&_pragma=cache_size(-12288)&_pragma=journal_size_limit(%d)", logKept))})
	return d
}

// Pools are the pools of connections, by what they are for.
func (d *DB) Pools() map[string]*sql.DB {
	all := map[string]*sql.DB{"write": d.DB.DB, "read": d.Read.DB, "lists": d.Lists.DB}
	if d.asyncCommit != nil {
		all["async_commit"] = d.asyncCommit.DB
	}
	return all
}

// Superuser reports whether the role is a superuser of PostgreSQL, whom the server lets read and
// write files through any connection.
func (d *DB) Superuser() bool { return d.superuser }

// Close unregisters the node and closes all connections.
func (d *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	errs := []error{d.leave(ctx)}
	for _, p := range d.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Ping checks that the database answers, for readiness.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.Read.PingContext(ctx); err != nil {
		return err
	}
	var one int
	return d.Read.NewRaw("SELECT 1").Scan(ctx, &one)
}

// clock translates this process's monotonic time to the database's time, so that neither a
// wrong nor a jumping wall clock moves a deadline.
type clock struct {
	at   time.Time     // with a monotonic reading
	wall time.Time     // this node's wall clock at that moment
	base time.Duration // database time at that moment, since the Unix epoch
	skew time.Duration // the node's wall clock minus the database's clock
}

// Now returns the time by the database's clock in Unix microseconds. Every deadline and lease
// is written and compared with it.
func (d *DB) Now() int64 {
	c := d.clock.Load()
	return (c.base + time.Since(c.at)).Microseconds()
}

// NowTime is Now as a time.Time in UTC.
func (d *DB) NowTime() time.Time { return time.UnixMicro(d.Now()).UTC() }

// Skew returns how far this node's wall clock is ahead of the database's.
func (d *DB) Skew() time.Duration { return d.clock.Load().skew }

// wall returns this node's wall clock, without a monotonic reading.
func (d *DB) wall() time.Time { return time.Now().Round(0).Add(time.Duration(d.ahead.Load())) }

// SetWall sets the wall clock, as far as this package reads it, for tests.
func (d *DB) SetWall(by time.Duration) { d.ahead.Add(int64(by)) }

// maxStep is how far the wall clock may move against the monotonic one between two measurements
// before somebody has set it: time services correct by less.
const maxStep = 2 * time.Second

// ClockStep returns by how much this node's wall clock was set since the last call; 0 = it was
// not. The database's clock is then measured again at once: on SQLite it is this node's own.
func (d *DB) ClockStep(ctx context.Context) (time.Duration, error) {
	if d.clock.Load().step(d.wall()).Abs() > maxStep {
		if err := d.measure(ctx); err != nil {
			return 0, fmt.Errorf("measure the database clock after a step: %w", err)
		}
	}
	return time.Duration(d.stepped.Swap(0)), nil
}

// step returns how much further the wall clock has moved than the monotonic one.
func (c *clock) step(wall time.Time) time.Duration { return wall.Sub(c.wall) - time.Since(c.at) }

// setClock uses a measurement.
func (d *DB) setClock(c *clock) {
	was := d.clock.Swap(c)
	if was == nil {
		return
	}
	if step := c.wall.Sub(was.wall) - c.at.Sub(was.at); step.Abs() > maxStep {
		d.stepped.Add(int64(step))
	}
}

// measure reads the database's clock and assigns the result to the middle of the round trip.
// Of three reads it takes the fastest, which has the smallest error. SQLite has no clock but this
// node's.
func (d *DB) measure(ctx context.Context) error {
	if !d.postgres {
		if err := d.Ping(ctx); err != nil {
			return err
		}
		wall := d.wall()
		d.setClock(&clock{at: time.Now(), wall: wall, base: time.Duration(wall.UnixNano())})
		return nil
	}
	var best *clock
	var bestTook time.Duration
	for range 3 {
		start, wall := time.Now(), d.wall()
		var us int64
		if err := d.Read.NewRaw("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(ctx, &us); err != nil {
			return err
		}
		took := time.Since(start)
		if best == nil || took < bestTook {
			mid := start.Add(took / 2)
			base := time.Duration(us) * time.Microsecond
			wall = wall.Add(took / 2)
			best = &clock{at: mid, wall: wall, base: base, skew: time.Duration(wall.UnixNano()) - base}
			bestTook = took
		}
	}
	d.setClock(best)
	return nil
}
