// Package migrations has the schema as plain SQL, one set for both engines. The statements of
// released files are never changed; a change is a new file. BIGINT PRIMARY KEY becomes INTEGER
// PRIMARY KEY, the row's own number, on SQLite.
package migrations

import (
	"context"
	"embed"
	"log/slog"

	"backstop/internal/base/db"
)

// Files are the migrations in the naming of bun's migrator:
// YYYYMMDDhhmmss_name.tx.up.sql and .tx.down.sql. A migration that older programs cannot work
// with is YYYYMMDDhhmmss_name.alone.tx.up.sql: it begins only when no other process is running.
//
//go:embed *.sql
var Files embed.FS

// monthly are the tables that have a partition per month on PostgreSQL.
var monthly = []db.Monthly{
	{Table: "callbacks", Key: "id"},
	{Table: "notify_attempts", Key: "id"},
	{Table: "order_history", Key: "order_id"},
	{Table: "supplier_calls", Key: "id"},
}

// Apply brings the database to the schema of this program and returns the names of the applied
// migrations. The database stays usable meanwhile.
func Apply(ctx context.Context, d *db.DB) (applied []string, err error) { return d.Migrate(ctx, Files) }

// Partition partitions the growing tables by month on PostgreSQL and adds partitions for the
// coming months. A table that is not converted yet stays usable. Errors: db.ErrInUse.
func Partition(ctx context.Context, d *db.DB, log *slog.Logger) error {
	return d.PartitionByMonth(ctx, log, monthly...)
}

// Join registers the process as db.DB.Join does, and continues the ids of the tables that nearly
// every transaction writes.
func Join(ctx context.Context, d *db.DB) (earlier []int64, err error) {
	if earlier, err = d.Join(ctx, Files); err != nil {
		return nil, err
	}
	return earlier, d.ContinueIDs(ctx, "orders", "callbacks", "deliveries", "notify_attempts", "supplier_calls")
}
