package db

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// statement is one statement of a pipeline. Without values its text is complete; otherwise it
// stays prepared.
type statement struct {
	text   string
	values []any
	// commits: it is all that its transaction does, and needs none if it has not begun.
	commits bool
}

// pipeline sends statements together on the connection of the transaction, and calls read for
// the result of each. It returns the error of the database, or else the first error of read.
func (tx Tx) pipeline(ctx context.Context, list []statement, read func(i int, rows pgx.Rows) error) error {
	return tx.conn.Raw(func(driverConn any) error {
		c := driverConn.(*conn)
		conn := c.session.(*stdlib.Conn).Conn()
		// database/sql rolls back by itself when the transaction's context ends. At present
		// it also closes the connection; with a driver that implements driver.Validator it
		// would keep it, and the statements would be committed outside any transaction.
		if conn.PgConn().TxStatus() == idle && !c.owed {
			return sql.ErrTxDone
		}
		owed := c.owed
		alone := owed && list[0].commits
		if owed && !alone {
			list = slices.Concat([]statement{{text: begin}}, list)
			each := read
			read = func(i int, rows pgx.Rows) error {
				if i == 0 {
					return nil
				}
				return each(i-1, rows)
			}
		}
		batch, err := batchOf(ctx, conn, list)
		if err != nil {
			return unbegun(ctx, err, owed)
		}
		c.traffic.sent(len(list))
		err = send(ctx, conn, batch, list, read)
		if alone {
			return unbegun(ctx, undecided(err), true)
		}
		c.owed = false
		return unbegun(ctx, err, owed)
	})
}

func send(ctx context.Context, conn *pgx.Conn, batch *pgconn.Batch, list []statement, read func(i int, rows pgx.Rows) error) (err error) {
	results := conn.PgConn().ExecBatch(ctx, batch)
	i := 0
	for ; results.NextResult(); i++ {
		rows := pgx.RowsFromResultReader(conn.TypeMap(), results.ResultReader())
		err = cmp.Or(err, read(i, rows))
		rows.Close()
	}
	return cmp.Or(hideStatement(results.Close(), list[min(i, len(list)-1)].text), err)
}

// idle is the status of a connection without a transaction (PostgreSQL, Message
// Formats, ReadyForQuery).
const idle = 'I'

func batchOf(ctx context.Context, conn *pgx.Conn, list []statement) (*pgconn.Batch, error) {
	batch := &pgconn.Batch{}
	for _, s := range list {
		if s.values == nil {
			batch.ExecParams(s.text, nil, nil, nil, nil)
			continue
		}
		prepared, err := conn.Prepare(ctx, s.text, s.text) // once per connection
		if err != nil {
			return nil, hideStatement(err, s.text)
		}
		var values pgx.ExtendedQueryBuilder
		if err := values.Build(conn.TypeMap(), prepared, s.values); err != nil {
			return nil, hideStatement(err, s.text)
		}
		batch.ExecPrepared(prepared.Name, values.ParamValues, values.ParamFormats, values.ResultFormats)
	}
	return batch, nil
}
