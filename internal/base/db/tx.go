package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/uptrace/bun"
)

// Tx is a writing transaction.
type Tx struct {
	bun.Tx
	db   *DB
	conn *sql.Conn // the transaction's connection; nil on SQLite
	ends *ends
}

// ends are the functions passed to OnEnd.
type ends []func(error)

func (e *ends) run(err error) {
	for _, f := range *e {
		f(err)
	}
}

// OnEnd runs f once, after the transaction and before DB.Tx returns, with the error that DB.Tx
// returns: nil means committed, an error means not known to be committed. f must not block.
func (tx Tx) OnEnd(f func(error)) { *tx.ends = append(*tx.ends, f) }

// Writes returns an empty list of writes of the transaction.
func (tx Tx) Writes() *Writes { return &Writes{tx: tx} }

// Reads returns an empty list of queries of the transaction.
func (tx Tx) Reads() *Reads { return &Reads{tx: tx} }

// Prepared is DB.Prepared inside the transaction.
func (tx Tx) Prepared(ctx context.Context, dest any, text string, args ...any) error {
	if tx.conn != nil {
		r := tx.Reads()
		r.Into(dest, text, args...)
		return r.Exec(ctx)
	}
	return tx.db.prepared(ctx, tx.db.DB, tx.Tx.Tx, dest, text, args)
}

// Session is a Tx, or a connection that commits each statement separately.
type Session interface {
	bun.IDB
	Prepared(ctx context.Context, dest any, text string, args ...any) error
}

// autocommit is a Session without a transaction.
type autocommit struct {
	*bun.DB
	db *DB
}

func (c autocommit) Prepared(ctx context.Context, dest any, text string, args ...any) error {
	return c.db.prepared(ctx, c.DB, nil, dest, text, args)
}

// Tx runs fn in one writing transaction. It commits if fn returns nil, and rolls back
// otherwise, also if fn panics.
func (d *DB) Tx(ctx context.Context, fn func(context.Context, Tx) error) error {
	var ends ends
	err := errors.New("the transaction panicked")
	defer func() { ends.run(err) }()
	err = d.inTx(ctx, func(ctx context.Context, tx Tx) error {
		tx.ends = &ends
		return fn(ctx, tx)
	})
	d.room.noteEnd(err)
	return err
}

// inTx runs fn in a transaction and commits or rolls back by its result. It calls no functions
// of OnEnd, and the Tx has no list for them yet.
func (d *DB) inTx(ctx context.Context, fn func(context.Context, Tx) error) error {
	tx, release, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	done := false
	defer func() {
		if !done {
			_ = tx.Rollback() // fn's error or panic is the cause
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	done = true
	return tx.Commit()
}

// beginTries is how often a connection of the pool may turn out to be broken, as in
// database/sql.
const beginTries = 3

// begin starts a transaction. On PostgreSQL the Tx also has the connection, to which Writes
// sends its pipeline: bun's transaction does not give access to it.
func (d *DB) begin(ctx context.Context) (tx Tx, release func(), err error) {
	if !d.IsPostgres() {
		begun, err := d.DB.BeginTx(ctx, nil)
		return Tx{Tx: begun, db: d}, func() {}, err
	}
	for range beginTries {
		conn, err := d.DB.Conn(ctx)
		if err != nil {
			return Tx{}, nil, err
		}
		begun, err := conn.BeginTx(ctx, nil)
		if err == nil {
			return Tx{Tx: begun, db: d, conn: conn.Conn}, func() { _ = conn.Close() }, nil
		}
		_ = conn.Close()
		if !errors.Is(err, driver.ErrBadConn) {
			return Tx{}, nil, err
		}
	}
	return Tx{}, nil, driver.ErrBadConn
}
