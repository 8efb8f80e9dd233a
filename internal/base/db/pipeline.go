package db

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// pipe sends statements together and reads their results together, on the
// connection of the transaction.
func (w *Writes) pipe(ctx context.Context, list []write) error {
	return w.tx.conn.Raw(func(driverConn any) error {
		conn := driverConn.(*stdlib.Conn).Conn()
		// database/sql rolls back by itself when the transaction's context ends. Today
		// it closes the connection then; with a driver that has driver.Validator it
		// would keep it, and what is sent would be committed by itself.
		if conn.PgConn().TxStatus() == idle {
			return sql.ErrTxDone
		}
		return pipeline(ctx, conn, list)
	})
}

// idle is the status of a connection without a transaction (PostgreSQL, Message
// Formats, ReadyForQuery).
const idle = 'I'

func pipeline(ctx context.Context, conn *pgx.Conn, list []write) error {
	batch := &pgconn.Batch{}
	for _, x := range list {
		if x.columns == nil {
			batch.ExecParams(x.text, nil, nil, nil, nil)
			continue
		}
		prepared, err := conn.Prepare(ctx, x.text, x.text) // once per connection
		if err != nil {
			return err
		}
		var values pgx.ExtendedQueryBuilder
		if err := values.Build(conn.TypeMap(), prepared, x.columns); err != nil {
			return fmt.Errorf("encode rows: %w", err)
		}
		batch.ExecPrepared(prepared.Name, values.ParamValues, values.ParamFormats, values.ResultFormats)
	}
	results := conn.PgConn().ExecBatch(ctx, batch)
	stale := false
	for i := 0; results.NextResult(); i++ {
		tag, err := results.ResultReader().Close()
		stale = stale || err == nil && list[i].guard >= 0 && tag.RowsAffected() != list[i].guard
	}
	if err := results.Close(); err != nil {
		return err
	}
	if stale {
		return ErrStale
	}
	return nil
}
