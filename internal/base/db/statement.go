package db

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Error is a statement that failed. What the drivers say may contain parts of the statement and
// values of rows: none of that is in its text, which goes to logs, pages and answers.
type Error struct {
	problem   string
	place     string // package and function
	statement string // hash of the statement without its values
	pg        *pgconn.PgError
	lite      int // SQLite's extended result code
}

// Error implements error.
func (e *Error) Error() string {
	text := e.problem
	if e.place != "" {
		text += " in " + e.place
	}
	return text + ", statement " + e.statement
}

// Unwrap returns PostgreSQL's error as far as Error shows it.
func (e *Error) Unwrap() error {
	if e.pg == nil {
		return nil
	}
	return e.pg
}

// hideStatement returns an error of a driver as Error. Errors of connections and contexts
// contain no statement and stay as they are.
func hideStatement(err error, text string) error {
	if err == nil {
		return nil
	}
	e := &Error{problem: "the driver refuses a statement or its values"}
	var known *Error
	var pg *pgconn.PgError
	var lite *sqlitedriver.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &pg):
		e.problem, e.pg = pgProblem(pg), &pgconn.PgError{Severity: pg.Severity, Code: pg.Code}
	case errors.As(err, &lite):
		e.problem, e.lite = liteProblem(lite), lite.Code()
	case hasNoStatement(err):
		return err
	}
	e.place, e.statement = place(), statementHash(text)
	return e
}

func hasNoStatement(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, driver.ErrSkip) || errors.Is(err, sql.ErrTxDone)
}

// nameOnly are the SQLSTATE classes whose messages name constraints, tables and conditions of the
// server. Those of the others, such as 22 and 42, quote values and parts of the statement.
var nameOnly = map[string]bool{"08": true, "23": true, "25": true, "40": true, "53": true, "55": true, "57": true}

func pgProblem(e *pgconn.PgError) string {
	text := "SQLSTATE " + e.Code
	if len(e.Code) == 5 && (nameOnly[e.Code[:2]] || e.Code == "42501") {
		text += " (" + e.Message + ")"
	}
	return text
}

func liteProblem(e *sqlitedriver.Error) string {
	if e.Code()&0xff == sqlitelib.SQLITE_CONSTRAINT {
		return "SQLite: " + e.Error() // names columns
	}
	text, known := sqlitedriver.ErrorCodeString[e.Code()]
	if !known {
		text = sqlitedriver.ErrorCodeString[e.Code()&0xff]
	}
	return "SQLite: " + text
}

// values are the literals that bun writes into a statement.
var values = regexp.MustCompile(`'[^']*'|\d+`)

// maxHashed bounds the work for a long statement.
const maxHashed = 4096

// statementHash is equal for statements that differ only in their values, and long enough to
// find the statement among those of the program.
func statementHash(text string) string {
	sum := sha256.Sum256([]byte(values.ReplaceAllString(text[:min(len(text), maxHashed)], "?")))
	return hex.EncodeToString(sum[:4])
}

// place returns the function that has called the database: the first outside of this package and
// of the libraries.
func place() string {
	var callers [40]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		frame, more := frames.Next()
		name := frame.Function
		if !strings.HasPrefix(name, "backstop/internal/base/db.") && strings.HasPrefix(name, "backstop/") {
			return name[strings.LastIndex(name, "/")+1:]
		}
		if !more {
			return ""
		}
	}
}
