// Package console reads what the console shows: lists a page at a time, one
// order's whole story and the overview. It writes nothing, and each query is
// bounded: by an index, or by how many rows it may look at.
package console

import (
	"context"
	"fmt"

	"backstop/internal/breaker"
	"backstop/internal/db"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
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

// PageSize is how many rows a list shows.
const PageSize = 50

// scanRows bounds what one page looks at where no index serves its filter. The
// page may then hold fewer rows than fit and still have a next one.
const scanRows = 50_000

// Page is one page of a list, newest first.
type Page[T any] struct {
	Rows []T
	Next int64 // Before of the next page, 0 = there is none
	// Cut says that not all older rows were looked at: the next page goes on.
	Cut bool
}

// Named is a merchant or a supplier for a select.
type Named struct {
	ID   int64  `bun:"id"`
	Code string `bun:"code"`
	Name string `bun:"name"`
}

// choices bounds a select; beyond it people write the code into the address.
const choices = 500

// Merchants are all merchants by code, disabled ones too: their orders stay.
func (b *Book) Merchants(ctx context.Context) ([]Named, error) {
	var rows []Named
	err := b.db.Read.NewRaw("SELECT id, code, name FROM merchants ORDER BY code LIMIT ?", choices).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the merchants: %w", err)
	}
	return rows, nil
}

// Suppliers are all suppliers by code.
func (b *Book) Suppliers(ctx context.Context) ([]Named, error) {
	var rows []Named
	err := b.db.Read.NewRaw("SELECT id, code, kind AS name FROM suppliers ORDER BY code LIMIT ?", choices).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the suppliers: %w", err)
	}
	return rows, nil
}

// floor is the oldest id that a page of the table may look at, 0 = all of them.
func (b *Book) floor(ctx context.Context, table string, before int64, rows int) (int64, error) {
	q := b.db.Read.NewSelect().TableExpr("?", bun.Ident(table)).Column("id").OrderExpr("id DESC").Limit(1).Offset(int64(rows) - 1)
	if before > 0 {
		q = q.Where("id < ?", before)
	}
	var at []int64
	if err := q.Scan(ctx, &at); err != nil {
		return 0, fmt.Errorf("find the end of the page in %s: %w", table, err)
	}
	if len(at) == 0 {
		return 0, nil
	}
	return at[0], nil
}

// cut makes a page of the rows read, one more than fit where there are more.
func cut[T any](rows []T, floor int64, id func(T) int64) Page[T] {
	if len(rows) > PageSize {
		return Page[T]{Rows: rows[:PageSize], Next: id(rows[PageSize-1])}
	}
	return Page[T]{Rows: rows, Next: floor, Cut: floor > 0}
}
