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

// Book reads for the console.
type Book struct {
	db       *db.DB
	settings *settings.Store
	breakers *breaker.Book
}

// New returns a Book of the database.
func New(d *db.DB, s *settings.Store, b *breaker.Book) *Book {
	return &Book{db: d, settings: s, breakers: b}
}

// isParked says whether what waits for the merchant is parked.
func (b *Book) isParked(merchantID int64) bool {
	return notify.IsParked(b.breakers, b.settings.Merchants(), merchantID)
}

// Named is a merchant or a supplier for a select.
type Named struct {
	ID   int64  `bun:"id"`
	Code string `bun:"code"`
	Name string `bun:"name"`
}
