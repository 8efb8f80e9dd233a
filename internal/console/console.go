// Package console reads what the console displays: lists by page, the full history of one
// order, and the overview. It writes nothing, and each query is bounded, by an index or by the
// number of rows it may scan.
package console

import (
	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/settings"
)

// Reader reads data for the console.
type Reader struct {
	db       *db.DB
	settings *settings.Store
	breakers *breaker.Cache
}

// New returns a Reader of the database.
func New(d *db.DB, s *settings.Store, b *breaker.Cache) *Reader {
	return &Reader{db: d, settings: s, breakers: b}
}

// isParked reports whether a recipient's notifications are parked.
func (b *Reader) isParked(to recipient.Recipient) bool {
	return notify.IsParked(b.breakers, b.settings.Merchants(), to)
}

// Named is a merchant or supplier in a select box.
type Named struct {
	ID   int64  `bun:"id"`
	Code string `bun:"code"`
	Name string `bun:"name"`
}
