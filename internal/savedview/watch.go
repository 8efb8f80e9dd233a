package savedview

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/inbox"
	"backstop/internal/list"
)

const (
	// tellEvery is the minimum time between two messages about a view to one person, and how
	// long a view must have been empty before rows that entered it by a change are news again:
	// an order that goes in and out alerts once.
	tellEvery = 5 * time.Minute
	// settled is the age at which rows are counted: one with a smaller key may be committed
	// after one with a greater key.
	settled = 5 * time.Second
	// maxCount bounds the count of a message.
	maxCount = 1000
	// watchTime bounds the queries of one alert.
	watchTime = 2 * time.Second
	// watchPage is how many alerts are read at once.
	watchPage = 200
)

// watched is one alert, with what it depends on.
type watched struct {
	ViewID     int64        `bun:"view_id"`
	OperatorID int64        `bun:"operator_id"`
	Newest     int64        `bun:"newest"`
	EmptySince *int64       `bun:"empty_since"`
	NotifiedAt int64        `bun:"notified_at"`
	OwnerID    int64        `bun:"owner_id"`
	Shared     bool         `bun:"shared"`
	List       string       `bun:"list"`
	Name       string       `bun:"name"`
	Query      string       `bun:"query"`
	Roles      access.Roles `bun:"role"`
}

// Watch puts messages about views in which rows appeared into the inboxes of those who are
// alerted. One node at a time should call it. An alert that cannot be evaluated does not stop the
// others.
func (v *Views) Watch(ctx context.Context) error {
	var failed error
	for view, operator := int64(0), int64(0); ; {
		var rows []watched
		err := v.DB.Read.NewRaw(
			"SELECT w.view_id, w.operator_id, w.newest, w.empty_since, w.notified_at, vi.owner_id, vi.shared, vi.list, vi.name, vi.query, op.role"+
				" FROM view_watches AS w JOIN views AS vi ON vi.id = w.view_id JOIN operators AS op ON op.id = w.operator_id"+
				" WHERE (w.view_id, w.operator_id) > (?, ?) AND vi.deleted_at IS NULL AND op.disabled_at IS NULL"+
				" ORDER BY w.view_id, w.operator_id LIMIT ?", view, operator, watchPage).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("read the alerts of views: %w", err)
		}
		for _, w := range rows {
			if err := v.look(ctx, w); err != nil && ctx.Err() == nil {
				failed = fmt.Errorf("the alert of view %d: %w", w.ViewID, err)
			}
		}
		if len(rows) < watchPage || ctx.Err() != nil {
			return failed
		}
		view, operator = rows[len(rows)-1].ViewID, rows[len(rows)-1].OperatorID
	}
}

// look evaluates one alert and writes its message.
func (v *Views) look(ctx context.Context, w watched) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	l, ok := v.Lists[w.List]
	if !ok || !v.Policy.Allows(w.Roles, l.Permission) || w.OwnerID != w.OperatorID && !w.Shared || !l.Alerts() {
		return nil
	}
	q, ok := l.parse(w.Query)
	if !ok {
		return nil // the list of views says so
	}
	now := v.DB.Now()
	upTo := db.IDAt(now - settled.Microseconds())
	newer, more, err := q.Between(ctx, v.DB, list.Slice{}, w.Newest, upTo, maxCount)
	if err != nil {
		return err
	}
	span := list.Slice{}
	if !l.Always {
		span.From = now - 24*time.Hour.Microseconds()
	}
	all, allMore, err := q.Count(ctx, v.DB, span, maxCount)
	if err != nil {
		return err
	}
	quiet := tellEvery.Microseconds()
	// Rows that match since they changed are not new by their keys.
	next := w
	next.Newest = max(w.Newest, upTo)
	if entered := w.EmptySince != nil && now-*w.EmptySince >= quiet && all > 0; entered && newer == 0 {
		newer, more, next.Newest = all, allMore, db.IDAt(now)
	}
	switch {
	case all > 0 || allMore || newer > 0:
		next.EmptySince = nil
	case w.EmptySince == nil:
		next.EmptySince = &now
	}
	if newer > 0 && now-w.NotifiedAt < quiet {
		return nil // counted next time, with what comes until then
	}
	if newer > 0 {
		next.NotifiedAt = now
	}
	return v.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		res, err := tx.NewRaw(
			"UPDATE view_watches SET newest = ?, empty_since = ?, notified_at = ? WHERE view_id = ? AND operator_id = ? AND newest = ? AND notified_at = ?",
			next.Newest, next.EmptySince, next.NotifiedAt, w.ViewID, w.OperatorID, w.Newest, w.NotifiedAt).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 || newer == 0 {
			return err // another node did it, or nothing is new
		}
		return inbox.Put(ctx, tx, v.DB, inbox.Message{
			OperatorID: w.OperatorID, Kind: inbox.OfView, Object: ActObject,
			ObjectID: ID(w.ViewID), Text: w.Name, Rows: newer, More: more,
		})
	})
}

// parse returns the query of a view; false = it names a field that the list no longer has, or a
// value that it no longer takes. The time is not part of it.
func (l List) parse(text string) (list.Query, bool) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return list.Query{}, false
	}
	q, err := list.Parse(l.Spec, list.All(), values.Get)
	return q, err == nil
}
