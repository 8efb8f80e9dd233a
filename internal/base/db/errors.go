package db

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"backstop/internal/base/textlimit"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// ErrStale means that a compare-and-set found a state other than the expected one: the caller
// lost a race and must read again.
var ErrStale = errors.New("the row has changed in between")

var (
	// ErrReadOnly means that the database is a standby, or its file or disk is read-only.
	ErrReadOnly = errors.New("the database takes no writes")
	errFull     = errors.New("the disk of the database is full: free some space, and work continues by itself")
)

// codes returns the code of a database error: PostgreSQL's SQLSTATE, or SQLite's extended
// result code, whose low byte is the primary code. Both are zero for other errors.
func codes(err error) (pg string, lite int) {
	var pgError *pgconn.PgError
	if errors.As(err, &pgError) {
		return pgError.Code, 0
	}
	var failed *Error
	if errors.As(err, &failed) {
		return "", failed.lite
	}
	var liteError *sqlitedriver.Error // of a connection that could not be opened
	if errors.As(err, &liteError) {
		return "", liteError.Code()
	}
	return "", 0
}

// IsUnique reports whether a row with the same key exists already.
func IsUnique(err error) bool {
	pg, lite := codes(err)
	return pg == "23505" || lite == sqlitelib.SQLITE_CONSTRAINT_UNIQUE || lite == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY
}

// IsAnswer reports whether the database itself refused a statement, for whatever reason.
func IsAnswer(err error) bool {
	pg, lite := codes(err)
	return pg != "" || lite != 0
}

// IsConflict reports whether the transaction lost against another one (deadlock,
// serialization, lock timeout, busy) and can simply be tried again.
func IsConflict(err error) bool {
	pg, lite := codes(err)
	return errors.Is(err, ErrStale) || pg == "40001" || pg == "40P01" || pg == "55P03" || lite&0xff == sqlitelib.SQLITE_BUSY
}

// IsReadOnly reports whether the database takes no writes: a standby, a file without
// write permission, a disk that is mounted read-only.
func IsReadOnly(err error) bool {
	pg, lite := codes(err)
	return errors.Is(err, ErrReadOnly) || pg == "25006" || lite&0xff == sqlitelib.SQLITE_READONLY
}

// IsFull reports whether a write failed because the disk is full.
func IsFull(err error) bool {
	pg, lite := codes(err)
	return pg == "53100" || lite&0xff == sqlitelib.SQLITE_FULL
}

// IsUnavailable reports whether the database could not be reached, was lost during the work,
// or takes no writes for now (a standby, a full disk). It does not tell whether a commit in
// progress succeeded; see ErrCommitUnknown.
func IsUnavailable(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	pg, lite := codes(err)
	switch {
	case errors.As(err, &connect), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF), IsReadOnly(err):
		return true
	case pg != "": // connections; lack of memory, disk or connections; ended by an operator
		return strings.HasPrefix(pg, "08") || strings.HasPrefix(pg, "53") || strings.HasPrefix(pg, "57P")
	case lite != 0:
		switch lite & 0xff {
		case sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CANTOPEN:
			return true
		}
		return false
	default: // pgx may find a connection dead before it sends anything
		return errors.As(err, &network) || pgconn.SafeToRetry(err)
	}
}

// openError is an error of Open in a sentence that says what to try; the driver's own stays its cause.
type openError struct {
	says  string
	cause error
}

func (e *openError) Error() string { return e.says }

func (e *openError) Unwrap() error { return e.cause }

// unreached explains why a PostgreSQL could not be used.
func unreached(err error, c *pgconn.Config) error {
	const setting = "BACKSTOP_DATABASE_URL"
	server := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	says := func(format string, args ...any) error { return &openError{fmt.Sprintf(format, args...), err} }
	var network *net.OpError
	var name *net.DNSError
	switch pg, _ := codes(err); {
	case strings.HasPrefix(pg, "28"):
		return says("PostgreSQL at %s refuses the user %q: correct user and password in %s, or add the user to pg_hba.conf", server,
			c.User, setting)
	case pg == "3D000":
		return says("PostgreSQL at %s has no database %q: create it (createdb -O %s %s), or correct the name in %s", server, c.Database, c.User,
			c.Database, setting)
	case pg == "53300":
		return says("PostgreSQL at %s has no free connection: raise its max_connections, or lower BACKSTOP_DATABASE_POOL", server)
	case errors.As(err, &name):
		return says("the host %q has no address here: correct it in %s", c.Host, setting)
	case errors.As(err, &network) && network.Op == "dial":
		return says("no PostgreSQL answers at %s (%v): start it, or correct the address in %s", server, network.Err, setting)
	}
	return fmt.Errorf("reach the database of %s: %w", setting, err)
}

// ErrorText returns an error as one short line that may be stored and shown.
func ErrorText(err error) string {
	return textlimit.Clip(strings.ReplaceAll(err.Error(), "\n", " "), 300)
}

// Kind describes in one line what is wrong with a database that does not work. It contains
// neither an address nor a user, since /readyz shows it without a login. The error itself
// belongs in the log.
func Kind(err error) string {
	var network net.Error
	var certificate *tls.CertificateVerificationError
	pg, lite := codes(err)
	switch {
	case errors.Is(err, ErrNoSchema):
		return ErrNoSchema.Error()
	case errors.Is(err, ErrOldSchema):
		return ErrOldSchema.Error()
	case errors.Is(err, ErrNoRelease):
		return ErrNoRelease.Error()
	case errors.Is(err, ErrNewSchema):
		return ErrNewSchema.Error()
	case IsReadOnly(err):
		return ErrReadOnly.Error()
	case IsFull(err):
		return errFull.Error()
	case pg != "":
		return pgKind(pg)
	case lite != 0:
		return liteKind(lite & 0xff)
	case errors.As(err, &certificate):
		return "the certificate of the database is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the database does not answer in time"
	case IsUnavailable(err):
		return unreachable
	}
	return failed
}

const (
	unreachable = "the database cannot be reached"
	failed      = "the database fails: see the log for the reason"
)

func pgKind(code string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "the database refuses the user or the password"
	case code == "3D000":
		return "there is no database with this name"
	case code == "53300":
		return "the database has no free connection"
	case strings.HasPrefix(code, "57P"):
		return "the database is starting or stopping"
	case strings.HasPrefix(code, "08"):
		return unreachable
	}
	return failed
}

func liteKind(code int) string {
	switch code {
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return "the database is busy"
	case sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_PERM, sqlitelib.SQLITE_AUTH:
		return "the database's file cannot be opened"
	case sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
		return "the database's file cannot be read or written"
	}
	return failed
}
