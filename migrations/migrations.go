// Package migrations has the schema as plain SQL: base.sql and what each engine has of its own
// after it, postgres.sql and sqlite.sql. Released files are never changed; a change is a new file.
// BIGINT PRIMARY KEY becomes INTEGER PRIMARY KEY, the row's own number, on SQLite.
package migrations

import (
	"context"
	"embed"
	"log/slog"

	"backstop/internal/base/db"
)

// Files are the baseline and what came after it: YYYYMMDDhhmmss_name.tx.up.sql and
// .tx.down.sql, with .pg or .sqlite before .up where the engines differ. A migration that older
// programs cannot work with is YYYYMMDDhhmmss_name.alone.tx.up.sql: it begins only when no other
// process is running.
//
//go:embed *.sql
var Files embed.FS

// monthly are the tables that have a partition per month on PostgreSQL.
var monthly = []string{"callbacks", "notify_attempts", "order_history", "supplier_calls"}

// Apply brings the database to the schema of this program and returns the names of the applied
// migrations. The database stays usable meanwhile.
func Apply(ctx context.Context, d *db.DB) (applied []string, err error) { return d.Migrate(ctx, Files) }

// Partition adds partitions for the coming months to the growing tables on PostgreSQL. Errors:
// db.ErrInUse.
func Partition(ctx context.Context, d *db.DB, log *slog.Logger) error {
	return d.PartitionByMonth(ctx, log, monthly...)
}

// Join registers the process as db.DB.Join does, and continues the ids of the tables that nearly
// every transaction writes.
func Join(ctx context.Context, d *db.DB) (earlier []int64, err error) {
	if earlier, err = d.RegisterNode(ctx, Files); err != nil {
		return nil, err
	}
	return earlier, d.ContinueIDs(ctx, "orders", "callbacks", "deliveries", "notify_attempts", "supplier_calls")
}
