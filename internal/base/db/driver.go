package db

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"

	sqlitedriver "modernc.org/sqlite"
)

// connector opens connections that keep statements and their values out of errors (Error).
type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own := &conn{opened.(session)}
	// A driver that can tell whether a connection is valid keeps it after a rollback, see
	// pipeline. This must not change.
	if v, ok := opened.(driver.Validator); ok {
		return validConn{own, v}, nil
	}
	return own, nil
}

// session is what both drivers have, and database/sql uses.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
}

type conn struct{ session }

type validConn struct {
	*conn
	driver.Validator
}

// CheckNamedValue implements driver.NamedValueChecker: pgx accepts more types than database/sql.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.session.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.session.BeginTx(ctx, o)
	if err != nil {
		return nil, hideStatement(err, "BEGIN")
	}
	return guardedTx{tx}, nil
}

type guardedTx struct{ driver.Tx }

func (tx guardedTx) Commit() error { return hideStatement(tx.Tx.Commit(), "COMMIT") }

func (tx guardedTx) Rollback() error { return hideStatement(tx.Tx.Rollback(), "ROLLBACK") }

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.session.ExecContext(ctx, text, args)
	return result, hideStatement(err, text)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	found, err := c.session.QueryContext(ctx, text, args)
	return guardRows(found, err, text)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.session.PrepareContext(ctx, text)
	if err != nil {
		return nil, hideStatement(err, text)
	}
	return &stmt{s.(preparedStatement), text}, nil
}

type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stmt struct {
	preparedStatement
	text string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.preparedStatement.ExecContext(ctx, args)
	return result, hideStatement(err, s.text)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	found, err := s.preparedStatement.QueryContext(ctx, args)
	return guardRows(found, err, s.text)
}

// rows guards errors that occur only while rows are read.
type rows struct {
	driver.Rows
	text string
}

func guardRows(found driver.Rows, err error, text string) (driver.Rows, error) {
	if err != nil {
		return nil, hideStatement(err, text)
	}
	return &rows{found, text}, nil
}

func (r *rows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if err == io.EOF { //nolint:errorlint // database/sql compares as well
		return err
	}
	return hideStatement(err, r.text)
}

func (r *rows) Close() error {
	return hideStatement(r.Rows.Close(), r.text)
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	return r.Rows.(driver.RowsColumnTypeScanType).ColumnTypeScanType(i)
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	return r.Rows.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(i)
}

// liteFile opens connections to SQLite's file.
type liteFile struct{ dsn string }

// Driver implements driver.Connector.
func (liteFile) Driver() driver.Driver { return &sqlitedriver.Driver{} }

// Connect implements driver.Connector.
func (f liteFile) Connect(context.Context) (driver.Conn, error) { return f.Driver().Open(f.dsn) }
