package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// connector opens connections that keep statements and their values out of errors (Error), and
// whose readers cannot change what the next user of the connection reads.
type connector struct {
	driver.Connector
	reads   bool
	maxTime time.Duration // of one query, until its rows are closed; 0 = unbounded
	traffic *traffic
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own := &conn{session: opened.(session), reads: c.reads, maxTime: c.maxTime, traffic: c.traffic}
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

type conn struct {
	session
	reads   bool
	maxTime time.Duration
	changed bool // a reader's text may have changed the session
	owed    bool // a transaction that the server does not know yet: BEGIN goes with its first statement
	traffic *traffic
}

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
	if !beginsLate(ctx) {
		return c.beginNow(ctx, o)
	}
	pg := c.session.(*stdlib.Conn).Conn()
	if pg.IsClosed() {
		return nil, driver.ErrBadConn
	}
	c.owed = true
	return owedTx{ctx, c, pg}, nil
}

func (c *conn) beginNow(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.traffic.sent(1)
	tx, err := c.session.BeginTx(ctx, o)
	if err != nil {
		return nil, hideStatement(err, "BEGIN")
	}
	return guardedTx{tx, c.traffic}, nil
}

type guardedTx struct {
	driver.Tx
	traffic *traffic
}

func (tx guardedTx) Commit() error {
	tx.traffic.sent(1)
	return hideStatement(tx.Tx.Commit(), "COMMIT")
}

func (tx guardedTx) Rollback() error { return hideStatement(tx.Tx.Rollback(), "ROLLBACK") }

// ExecContext implements driver.ExecerContext. A reader sends the text as a query: pgx would send
// a text without values by the simple protocol, which takes several statements.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if !c.reads {
		if err := c.begin(ctx); err != nil {
			return nil, err
		}
		c.traffic.sent(1)
		result, err := c.session.ExecContext(ctx, text, args)
		return result, hideStatement(err, text)
	}
	found, err := c.QueryContext(ctx, text, args)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for row := make([]driver.Value, len(found.Columns())); err == nil; {
		err = found.Next(row)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return driver.ResultNoRows, nil
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, text, func(ctx context.Context) (driver.Rows, error) { return c.session.QueryContext(ctx, text, args) })
}

func (c *conn) query(ctx context.Context, text string, run func(context.Context) (driver.Rows, error)) (driver.Rows, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	c.traffic.sent(1)
	c.changed = c.changed || c.reads && !isQuery(text)
	q := &rows{ctx: ctx, cancel: func() {}, limited: c.maxTime > 0, text: text}
	if q.limited {
		q.ctx, q.cancel = context.WithTimeoutCause(ctx, c.maxTime, ErrTooLong)
	}
	var err error
	if q.Rows, err = run(q.ctx); err != nil {
		q.cancel()
		return nil, q.hide(err)
	}
	return q, nil
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.session.PrepareContext(ctx, text)
	if err != nil {
		return nil, hideStatement(err, text)
	}
	return &stmt{preparedStatement: s.(preparedStatement), conn: c, text: text}, nil
}

type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stmt struct {
	preparedStatement
	conn *conn
	text string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.begin(ctx); err != nil {
		return nil, err
	}
	s.conn.traffic.sent(1)
	s.conn.changed = s.conn.changed || s.conn.reads
	result, err := s.preparedStatement.ExecContext(ctx, args)
	return result, hideStatement(err, s.text)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, func(ctx context.Context) (driver.Rows, error) { return s.preparedStatement.QueryContext(ctx, args) })
}

// ResetSession implements driver.SessionResetter. A pragma, a temporary table or a setting that
// an earlier text has left would change what the next one reads.
func (c *conn) ResetSession(ctx context.Context) error {
	c.owed = false
	if c.changed {
		return driver.ErrBadConn
	}
	return c.session.ResetSession(ctx)
}

// isQuery reports whether a text is a single query. For a query with a semicolon in a value the
// answer is wrong, which costs a new connection.
func isQuery(text string) bool {
	text = strings.TrimLeft(text, " \n\t(")
	verb, _, _ := strings.Cut(text[:min(len(text), len("EXPLAIN")+1)], " ")
	switch strings.ToUpper(verb) {
	case "SELECT", "WITH", "EXPLAIN", "SHOW":
		return !strings.Contains(text, ";")
	}
	return false
}

// ErrTooLong means that a query of Lists was ended by the limit of its time.
var ErrTooLong = errors.New("the query takes too long")

// rows guards errors that occur only while rows are read.
type rows struct {
	driver.Rows
	ctx     context.Context
	cancel  context.CancelFunc
	limited bool // by maxTime
	text    string
}

func (r *rows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if err == io.EOF { //nolint:errorlint // database/sql compares as well
		return err
	}
	if err == nil { // SQLite's driver only checks it before the first row
		err = r.ctx.Err()
	}
	return r.hide(err)
}

// hide returns an error without its statement.
func (r *rows) hide(err error) error {
	if err == nil {
		return nil
	}
	err = hideStatement(err, r.text)
	if pg, _ := codes(err); r.limited && pg == "57014" || errors.Is(context.Cause(r.ctx), ErrTooLong) {
		return ErrTooLong // the server ends it as well
	}
	return err
}

func (r *rows) Close() error {
	defer r.cancel()
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

// liteReader opens connections that only see SQLite's file: one that attaches another file could
// write to it, and VACUUM INTO would make one.
type liteReader struct{ liteFile }

// Connect implements driver.Connector. The limit can only be set through a pool, so each
// connection has one of its own.
func (f liteReader) Connect(ctx context.Context) (driver.Conn, error) {
	pool := sql.OpenDB(f.liteFile)
	held, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	c := &heldConn{held: held, pool: pool}
	if _, err = sqlitedriver.Limit(held, sqlitelib.SQLITE_LIMIT_ATTACHED, 0); err == nil {
		err = held.Raw(func(raw any) error { c.validSession = raw.(validSession); return nil })
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

type validSession interface {
	session
	driver.Validator
}

type heldConn struct {
	validSession
	held *sql.Conn
	pool *sql.DB
}

func (c *heldConn) Close() error { return errors.Join(c.held.Close(), c.pool.Close()) }
