package savedview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/list"
)

// cases is a list of exceptions by state.
var cases = &list.Spec{
	Name:    "cases",
	Sources: []list.Source{{Table: "exceptions", Alias: "x", Columns: "x.id", Key: "id", MerchantColumn: "x.merchant_id"}},
	Fields:  []list.Field{{Name: "state", Column: "state"}},
}

type harness struct {
	t    *testing.T
	db   *db.DB
	v    *Views
	acts *act.Registry
	by   act.Actor
}

func open(t *testing.T, d *db.DB) *harness {
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{
		t: t, db: d,
		v: &Views{DB: d, Policy: policy, Lists: map[string]List{"cases": {Spec: cases, Permission: access.ViewExceptions}}},
	}
	h.acts = act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy, h.v.Kinds()...)
	h.by = act.Actor{Name: "operator:li.hang", ID: 1, Roles: access.Support}
	for i, name := range []string{"li.hang", "wang.min"} {
		h.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, 'support', '', FALSE, 0, 0)", i+1, name)
	}
	return h
}

func (h *harness) exec(query string, args ...any) {
	h.t.Helper()
	if _, err := h.db.NewRaw(query, args...).Exec(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// appear writes an exception as if it had been opened some time ago.
func (h *harness) appear(state string, ago time.Duration) (id int64) {
	h.t.Helper()
	id = db.IDAt(h.db.Now()-ago.Microseconds()) + h.db.NewID()%1000
	h.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
		" VALUES (?, 'late_payment', ?, 0, 1, 0, '', ?, 1, 'CNY', '{}', 1, 0, 0)", id, state, fmt.Sprint(id))
	return id
}

// save saves a view with an alert and moves its beginning back by an hour.
func (h *harness) save(name string) int64 {
	h.t.Helper()
	_, err := h.acts.Run(h.t.Context(),
		act.Call{Kind: SaveAct, By: h.by, Params: []byte(fmt.Sprintf(`{"list":"cases","name":%q,"query":"state=open","watch":true}`,
			name))})
	if err != nil {
		h.t.Fatal(err)
	}
	h.exec("UPDATE view_watches SET newest = ?", db.IDAt(h.db.Now()-time.Hour.Microseconds()))
	var id int64
	if err := h.db.NewRaw("SELECT max(id) FROM views").Scan(h.t.Context(), &id); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// pass moves what the alerts remember back, as if time had passed.
func (h *harness) pass(d time.Duration) {
	h.t.Helper()
	h.exec("UPDATE view_watches SET notified_at = CASE WHEN notified_at > 0 THEN notified_at - ? ELSE 0 END, empty_since = empty_since - ?",
		d.Microseconds(), d.Microseconds())
}

// watch evaluates the alerts and returns the rows of each unread message.
func (h *harness) watch() (rows []int64) {
	h.t.Helper()
	if err := h.v.Watch(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if err := h.db.NewRaw("SELECT rows FROM inbox WHERE operator_id = 1 AND read_at IS NULL ORDER BY id").Scan(h.t.Context(),
		&rows); err != nil {
		h.t.Fatal(err)
	}
	return rows
}

func (h *harness) want(what string, got []int64, want ...int64) {
	h.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("%s: messages with rows %v, want %v", what, got, want)
	}
}

func TestAnAlertTellsEachNewRowOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		h.appear("open", 2*time.Hour) // before the alert
		h.save("mine")
		h.want("nothing is new", h.watch())
		h.exec("UPDATE view_watches SET newest = ?", db.IDAt(d.Now()-time.Hour.Microseconds())) // as if the rows below were newer
		h.appear("open", time.Minute)
		h.appear("open", 30*time.Second)
		h.appear("resolved", time.Minute)
		h.want("two rows", h.watch(), 2)
		h.want("the same rows", h.watch(), 2)
		h.pass(tellEvery)
		h.want("the same rows, later", h.watch(), 2)
		h.pass(tellEvery)
		h.exec("UPDATE inbox SET read_at = 1")
		h.want("read", h.watch())
	})
}

func TestAnAlertKeepsToItsPace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		h.save("mine")
		h.appear("open", time.Minute)
		h.want("the first", h.watch(), 1)
		// As if the first were already an hour old: the alert has counted up to then.
		h.exec("UPDATE view_watches SET newest = ?", db.IDAt(d.Now()-50*time.Second.Microseconds()))
		h.appear("open", 30*time.Second)
		h.want("too soon", h.watch(), 1)
		h.pass(tellEvery)
		h.want("in one message with the unread one", h.watch(), 2)
		if n := h.count("SELECT count(*) FROM inbox"); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
}

// Rows that enter a view by a change are not new by their keys: the view must have been empty for
// a while, so that one that goes in and out does not alert each time.
func TestAnEmptyViewThatFillsAlertsWithHysteresis(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		old := h.appear("resolved", 3*time.Hour)
		h.save("mine")
		h.want("empty", h.watch())
		h.exec("UPDATE exceptions SET state = 'open' WHERE id = ?", old)
		h.want("it was empty for a moment only", h.watch())
		h.exec("UPDATE exceptions SET state = 'resolved' WHERE id = ?", old)
		h.want("empty again", h.watch())
		h.pass(tellEvery)
		h.exec("UPDATE exceptions SET state = 'open' WHERE id = ?", old)
		h.want("it was empty for long", h.watch(), 1)
		h.pass(tellEvery)
		h.want("it is still the same row", h.watch(), 1)
	})
}

// Several nodes may evaluate at once, if a lease was lost: a row is told once.
func TestConcurrentWatchesTellOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		h.save("mine")
		h.appear("open", time.Minute)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := h.v.Watch(context.Background()); err != nil && !errors.Is(err, db.ErrStale) && !db.IsConflict(err) &&
					!errors.Is(err, db.ErrBusy) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		h.want("one row", h.watch(), 1)
	})
}

func TestNobodyIsAlertedOfWhatTheyMayNotSee(t *testing.T) {
	t.Parallel()
	h := open(t, dbtest.Default(t))
	id := h.save("mine")
	h.exec("INSERT INTO view_watches (view_id, operator_id, newest, notified_at, created_at) VALUES (?, 2, 0, 0, 0)",
		id) // of a view that is not shared
	h.appear("open", time.Minute)
	h.want("the owner", h.watch(), 1)
	h.exec("UPDATE operators SET disabled_at = 1 WHERE id = 1")
	h.exec("UPDATE view_watches SET newest = 0, notified_at = 0")
	h.want("a disabled operator", h.watch(), 1)
	if n := h.count("SELECT count(*) FROM inbox WHERE operator_id = 2"); n != 0 {
		t.Errorf("%d messages to a person who does not see the view", n)
	}
}

func (h *harness) count(query string) (n int64) {
	h.t.Helper()
	if err := h.db.NewRaw(query).Scan(h.t.Context(), &n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// Of several that are saved at once only as many fit as there may be.
func TestTheLimitHoldsForConcurrentSaves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		for i := range MaxOwn - 1 {
			h.exec("INSERT INTO views (id, owner_id, list, name, query, shared, created_at, updated_at) VALUES (?, 1, 'cases', ?, 'state=open', FALSE, 0, 0)", i+1, fmt.Sprint(i))
		}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				_, err := h.acts.Run(context.Background(),
					act.Call{Kind: SaveAct, By: h.by, Params: []byte(fmt.Sprintf(`{"list":"cases","name":"new %d","query":"state=open"}`,
						i))})
				if err != nil && !errors.Is(err, ErrFull) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := h.count("SELECT count(*) FROM views WHERE owner_id = 1 AND deleted_at IS NULL"); n != MaxOwn {
			t.Errorf("%d views, at most %d", n, MaxOwn)
		}
	})
}

// The same holds for those that several people share at once.
func TestTheLimitOfSharedViewsHoldsForConcurrentSaves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d)
		for i := range maxShared - 1 {
			h.exec("INSERT INTO views (id, owner_id, list, name, query, shared, created_at, updated_at) VALUES (?, ?, 'cases', ?, 'state=open', TRUE, 0, 0)", i+1, 1000+i, fmt.Sprint(i))
		}
		var all sync.WaitGroup
		for i := range 8 {
			by := act.Actor{Name: fmt.Sprint("operator:p", i), ID: int64(10 + i), Roles: access.Support}
			h.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, 'support', '', FALSE, 0, 0)", by.ID, fmt.Sprint("p", i))
			all.Go(func() {
				_, err := h.acts.Run(context.Background(),
					act.Call{Kind: SaveAct, By: by, Params: []byte(`{"list":"cases","name":"new","query":"state=open","shared":true}`)})
				if err != nil && !errors.Is(err, ErrFull) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := h.count("SELECT count(*) FROM views WHERE shared AND deleted_at IS NULL"); n != maxShared {
			t.Errorf("%d shared views, at most %d", n, maxShared)
		}
	})
}

func TestDeletedViewsAreRemovedAfterADay(t *testing.T) {
	t.Parallel()
	h := open(t, dbtest.Default(t))
	kept, gone := h.save("kept"), h.save("gone")
	h.exec("UPDATE views SET deleted_at = ? WHERE id = ?", h.db.Now()-keptDeleted/2, kept)
	h.exec("UPDATE views SET deleted_at = ? WHERE id = ?", h.db.Now()-2*keptDeleted, gone)
	if n, err := Clean(t.Context(), h.db); err != nil || n != 1 {
		t.Errorf("%d removed: %v", n, err)
	}
	if n := h.count("SELECT count(*) FROM view_watches"); n != 1 {
		t.Errorf("%d alerts are left", n)
	}
	for id, want := range map[int64]error{kept: nil, gone: act.ErrNotFound} {
		if _, err := h.acts.Run(t.Context(), act.Call{Kind: RestoreAct, By: h.by, Ref: act.Ref{Row: id}}); !errors.Is(err, want) {
			t.Errorf("restore: %v, want %v", err, want)
		}
	}
}
