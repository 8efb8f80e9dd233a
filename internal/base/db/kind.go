package db

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Kind says what is wrong with a database that does not do its work, and nothing of
// where it is or as whom we come: it is told to everybody who asks. The error itself
// belongs to the log.
func Kind(err error) string {
	var pg *pgconn.PgError
	var lite *sqlitedriver.Error
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrNoSchema):
		return ErrNoSchema.Error()
	case errors.Is(err, ErrOldSchema):
		return ErrOldSchema.Error()
	case errors.Is(err, errReadOnly), IsReadOnly(err):
		return errReadOnly.Error()
	case IsFull(err):
		return errFull.Error()
	case errors.As(err, &pg):
		return pgKind(pg.Code)
	case errors.As(err, &lite):
		return liteKind(lite.Code() & 0xff)
	case errors.As(err, &certificate):
		return "the certificate of the database is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the database does not answer in time"
	case IsUnavailable(err):
		return "the database cannot be reached"
	}
	return failed
}

// failed is the kind of what has none of its own.
const failed = "the database fails: the log says why"

func pgKind(code string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "the database refuses the user or the password"
	case code == "3D000":
		return "the database of this name is not there"
	case code == "53300":
		return "the database has no connection left"
	case strings.HasPrefix(code, "57P"):
		return "the database is starting or stopping"
	case strings.HasPrefix(code, "08"):
		return "the database cannot be reached"
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
