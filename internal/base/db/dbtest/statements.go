package dbtest

import (
	"context"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Statements records the statements that bun sends to a database: pass it to WithQueryHook.
// It is not safe for concurrent use.
type Statements struct{ Texts []string }

// BeforeQuery implements bun.QueryHook.
func (s *Statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (s *Statements) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	s.Texts = append(s.Texts, e.Query)
}

// HookReads adds a hook to all readers of a database, until unhook is called.
func HookReads(d *db.DB, hook bun.QueryHook) (unhook func()) {
	read, lists := d.Read, d.Lists
	d.Read, d.Lists = read.WithQueryHook(hook), lists.WithQueryHook(hook)
	return func() { d.Read, d.Lists = read, lists }
}
