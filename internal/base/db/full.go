package db

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// IsFull says that there was no room for a write.
func IsFull(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "53100"
	}
	var lite *sqlitedriver.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlitelib.SQLITE_FULL
}

// errFull is the answer to readiness.
var errFull = errors.New("the disk of the database is full: make room, and the work goes on by itself")

// room remembers whether writes found any. A disk that is full takes the begin of a
// transaction and every look at it: only a write finds out. So the program's own
// writes are watched, and nothing is written as a probe until one has failed.
type room struct {
	full    atomic.Int64 // writes that found none
	cleared atomic.Int64 // of those, how many there were before the last one that found some
}

// noteEnd takes the end of a write.
func (r *room) noteEnd(err error) {
	if err != nil && IsFull(err) {
		r.full.Add(1)
	}
}

// The write that asks for room is about as large as a batch of callbacks: a disk with
// room for one row only is as good as full.
const (
	probeRows = 64
	probeRow  = 1000 // bytes; PostgreSQL's index takes no more than 2,700
)

// hasRoom says whether there is room again after a write found none. It writes rows
// among the keys of forms and deletes them again. A negative time, one for each
// process, tells them from real keys and from those of other nodes.
func (d *DB) hasRoom(ctx context.Context) error {
	full := d.room.full.Load()
	if full == d.room.cleared.Load() {
		return nil
	}
	at := -1 - d.ids.slot.Load()
	// Two transactions: what is taken back within one is never written by SQLite.
	err := d.inTx(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.NewRaw(d.dialect.probe(), at).Exec(ctx)
		return err
	})
	if err == nil {
		_, err = d.NewRaw("DELETE FROM form_keys WHERE at = ?", at).Exec(ctx)
	}
	if err == nil {
		d.room.cleared.Store(full)
	}
	return err
}
