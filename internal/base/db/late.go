package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A transaction of PostgreSQL that begins late sends BEGIN together with its first statements,
// which saves a round trip. A connection that has broken is then found by these, when nothing
// can have been committed: the transaction runs again on another one (SharedTx).

type lateKey struct{}

// late makes transactions that begin with this context begin late.
func late(ctx context.Context) context.Context { return context.WithValue(ctx, lateKey{}, true) }

// lateTx is Tx in a transaction that begins late.
func (d *DB) lateTx(ctx context.Context, fn func(context.Context, Tx) error) (err error) {
	for range beginTries {
		err = d.Tx(late(ctx), fn)
		if _, again := errors.AsType[notBegunError](err); !again {
			return err
		}
	}
	return err
}

func beginsLate(ctx context.Context) bool { return ctx.Value(lateKey{}) != nil }

// begin sends a BEGIN that is owed, for a statement that is sent by itself.
func (c *conn) begin(ctx context.Context) error {
	if !c.owed {
		return nil
	}
	c.owed = false
	c.traffic.sent(1)
	_, err := c.session.(*stdlib.Conn).Conn().Exec(ctx, begin)
	return unbegun(ctx, hideStatement(err, begin), true)
}

const begin = "BEGIN"

// owedTx is a transaction that begins late.
type owedTx struct {
	ctx  context.Context
	conn *conn
	pg   *pgx.Conn
}

// Commit implements driver.Tx. A transaction that failed answers COMMIT with ROLLBACK, which is
// no error of the protocol.
func (tx owedTx) Commit() error {
	if tx.conn.owed {
		tx.conn.owed = false
		return nil
	}
	tx.conn.traffic.sent(1)
	tag, err := tx.pg.Exec(tx.ctx, "COMMIT")
	switch {
	case err != nil:
		if tx.pg.PgConn().TxStatus() != idle {
			_ = tx.pg.Close(tx.ctx)
		}
		return hideStatement(err, "COMMIT")
	case tag.String() != "COMMIT":
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Rollback implements driver.Tx. A connection that cannot roll back is closed, which does.
func (tx owedTx) Rollback() error {
	if tx.conn.owed {
		tx.conn.owed = false
		return nil
	}
	tx.conn.traffic.sent(1)
	_, err := tx.pg.Exec(tx.ctx, "ROLLBACK")
	if err != nil {
		_ = tx.pg.Close(tx.ctx)
	}
	return hideStatement(err, "ROLLBACK")
}

// notBegunError means that the connection broke at the first statements of a transaction.
type notBegunError struct{ error }

func (e notBegunError) Unwrap() error { return e.error }

// unbegun marks an error of a transaction's first statements if it is the connection's.
func unbegun(ctx context.Context, err error, first bool) error {
	if err == nil || !first || ctx.Err() != nil || !IsUnavailable(err) {
		return err
	}
	return notBegunError{err}
}

// undecided marks an error of a statement that commits by itself if it is not the database's
// answer. A server that is stopped may say so after the commit.
func undecided(err error) error {
	pg, _ := codes(err)
	if err == nil || errors.Is(err, ErrStale) || pg != "" && !strings.HasPrefix(pg, "57P") {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}
