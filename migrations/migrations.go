// Package migrations holds the schema as plain SQL, one set for both engines.
// Applied files are never edited; a change is a new file. BIGINT PRIMARY KEY reaches
// SQLite as INTEGER PRIMARY KEY, the row's own number.
package migrations

import "embed"

// Files are the migrations in the naming of bun's migrator:
// YYYYMMDDhhmmss_name.tx.up.sql and .tx.down.sql.
//
//go:embed *.sql
var Files embed.FS
