// Package migrations holds the schema as plain SQL, one set for both engines.
// Applied files are never edited; a change is a new file. BIGINT PRIMARY KEY reaches
// SQLite as INTEGER PRIMARY KEY, the row's own number.
package migrations

import (
	"context"
	"embed"
	"log/slog"

	"backstop/internal/base/db"
)

// Files are the migrations in the naming of bun's migrator:
// YYYYMMDDhhmmss_name.tx.up.sql and .tx.down.sql. One that the programs before it cannot
// work with is YYYYMMDDhhmmss_name.alone.tx.up.sql: it begins when none of them runs.
//
//go:embed *.sql
var Files embed.FS

// monthly are the tables of which PostgreSQL keeps a partition per month.
var monthly = []db.Monthly{
	{Table: "callbacks", Key: "id"},
	{Table: "notify_attempts", Key: "id"},
	{Table: "order_history", Key: "order_id"},
	{Table: "supplier_calls", Key: "id"},
}

// Apply brings the database to the schema of this program and returns the names of the
// migrations that were missing. A database that is in use stays in use.
func Apply(ctx context.Context, d *db.DB) (applied []string, err error) { return d.Migrate(ctx, Files) }

// Partition has PostgreSQL keep what grows by the month, and adds the months to come. A
// table that is not converted yet works as it is. Errors: db.ErrInUse.
func Partition(ctx context.Context, d *db.DB, log *slog.Logger) error {
	return d.PartitionByMonth(ctx, log, monthly...)
}
