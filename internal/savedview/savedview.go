// Package savedview keeps filters of lists by a name, for the operator who saved them or for
// everybody who may open the list, and alerts operators when rows appear in one.
package savedview

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// Limits of views.
const (
	MaxOwn    = 20   // of a person and a list
	maxShared = 50   // of a list
	MaxName   = 40   // characters
	maxQuery  = 1000 // bytes
	// keptDeleted is how long a deleted view can be restored, in µs.
	keptDeleted = 24 * 3600 * 1_000_000
)

// Errors that a caller can act on, besides those of act.
var (
	ErrFull  = errors.New("this list has no room for more views: delete one first")
	ErrTaken = errors.New("this list already has a view of that name: choose another name")
)

// List is a list with views.
type List struct {
	Spec *list.Spec
	// Permission is needed to open the list, and so to use its views.
	Permission access.Permission
	// Always: without a chosen time the list covers all time, otherwise the last day.
	Always bool
}

// Alerts reports whether new rows of the list can be found by their keys.
func (l List) Alerts() bool { return l.Spec.Sources[0].Time == "" }

// View is a filter with a name.
type View struct {
	bun.BaseModel `bun:"table:views,alias:vi"`

	ID        int64  `bun:"id,pk"`
	OwnerID   int64  `bun:"owner_id"`
	List      string `bun:"list"`
	Name      string `bun:"name"`
	WasName   string `bun:"was_name"` // before it was renamed
	Query     string `bun:"query"`    // as in the URL
	Shared    bool   `bun:"shared"`
	CreatedAt int64  `bun:"created_at"`
	UpdatedAt int64  `bun:"updated_at"`
	DeletedAt *int64 `bun:"deleted_at"`

	Owner   string `bun:"owner,scanonly"`   // name
	Watched bool   `bun:"watched,scanonly"` // the reader is alerted
}

// Views are the views of an installation.
type Views struct {
	DB     *db.DB
	Policy *access.Policy
	Lists  map[string]List // by the name of the list
}

// For returns the views of a list that an operator sees, their own first.
func (v *Views) For(ctx context.Context, operator int64, name string) ([]View, error) {
	return v.read(ctx, operator, "vi.deleted_at IS NULL AND vi.list = ?", name)
}

// All returns the views of all lists that an operator sees, and those of their own and shared
// ones that can be restored.
func (v *Views) All(ctx context.Context, operator int64) ([]View, error) {
	return v.read(ctx, operator, "(vi.deleted_at IS NULL OR vi.deleted_at > ?)", v.DB.Now()-keptDeleted)
}

// maxRead bounds the views that are read: own ones of each list, and shared ones.
const maxRead = 500

func (v *Views) read(ctx context.Context, operator int64, where string, args ...any) (rows []View, err error) {
	err = v.DB.Read.NewSelect().Model(&rows).ColumnExpr("vi.*").
		ColumnExpr("COALESCE((SELECT op.name FROM operators AS op WHERE op.id = vi.owner_id), '') AS owner").
		ColumnExpr("EXISTS (SELECT 1 FROM view_watches AS w WHERE w.view_id = vi.id AND w.operator_id = ?) AS watched", operator).
		Where("(vi.owner_id = ? OR vi.shared)", operator).Where(where, args...).
		OrderExpr("vi.list, CASE WHEN vi.owner_id = ? THEN 0 ELSE 1 END, vi.id", operator).Limit(maxRead).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read views: %w", err)
	}
	return rows, nil
}

// Clean removes views that can no longer be restored, with their alerts.
func Clean(ctx context.Context, d *db.DB) (int64, error) {
	if _, err := d.NewRaw("DELETE FROM view_watches WHERE view_id IN (SELECT id FROM views WHERE deleted_at < ?)",
		d.Now()-keptDeleted).Exec(ctx); err != nil {
		return 0, fmt.Errorf("remove the alerts of deleted views: %w", err)
	}
	res, err := d.NewRaw("DELETE FROM views WHERE deleted_at < ?", d.Now()-keptDeleted).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("remove deleted views: %w", err)
	}
	return res.RowsAffected()
}
