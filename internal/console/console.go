// Package console reads what the console shows: lists a page at a time, one
// order's whole story and the overview. It writes nothing, and each query is
// bounded: by an index, or by how many rows it may look at.
package console

import (
	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/settings"
)

// Reader reads for the console.
type Reader struct {
	db       *db.DB
	settings *settings.Store
	breakers *breaker.Cache
}

// New returns a Reader of the database.
func New(d *db.DB, s *settings.Store, b *breaker.Cache) *Reader {
	return &Reader{db: d, settings: s, breakers: b}
}

// isParked reports whether the deliveries of a merchant are parked.
func (b *Reader) isParked(merchantID int64) bool {
	return notify.IsParked(b.breakers, b.settings.Merchants(), merchantID)
}

// Named is a merchant or a supplier for a select.
type Named struct {
	ID   int64  `bun:"id"`
	Code string `bun:"code"`
	Name string `bun:"name"`
}
