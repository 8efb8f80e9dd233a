package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/inbox"
	"backstop/internal/savedview"
	"backstop/web/webtest"

	"github.com/uptrace/bun"
)

// save saves a view as the form above the list does, and returns its id; 0 = it was refused.
func (h *harness) save(t *testing.T, cookie, list, query, name string, more ...string) (webtest.Answer, int64) {
	t.Helper()
	got := h.Post(t, cookie, "/views", append([]string{
		"form_key", fmt.Sprint("key-", h.DB.NewID()), "list", list, "query", query, "name",
		name,
	}, more...)...)
	var id []int64
	if err := h.DB.NewRaw("SELECT id FROM views WHERE list = ? AND name = ? AND deleted_at IS NULL ORDER BY id DESC LIMIT 1", list,
		strings.TrimSpace(name)).Scan(t.Context(), &id); err != nil {
		t.Fatal(err)
	}
	if got.Status != http.StatusSeeOther || len(id) == 0 {
		return got, 0
	}
	return got, id[0]
}

// onView posts an act on a view.
func (h *harness) onView(t *testing.T, cookie string, id int64, act string, fields ...string) webtest.Answer {
	t.Helper()
	return h.Post(t, cookie, fmt.Sprintf("/views/%d/%s", id, act), append([]string{"form_key", fmt.Sprint("key-", h.DB.NewID())},
		fields...)...)
}

// counts returns the counts of a list's views as a script gets them.
func (h *harness) countsOf(t *testing.T, cookie, list string) string {
	t.Helper()
	got := h.Call(t, http.MethodGet, "/views/_counts?list="+list+"&lang=en", "", "Cookie", cookie, "HX-Request", "true")
	if got.Status != http.StatusOK {
		t.Fatalf("the counts of %s: %d %s", list, got.Status, got.Body)
	}
	return got.Body
}

func TestAViewIsSavedSharedRenamedDeletedAndRestored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		own, other := h.SignIn(t, access.Support), h.SignIn(t, access.Viewer)
		got, id := h.save(t, own, "orders", "status=pending&cursor=x&nonsense=1", " Waiting ")
		if want := "/orders?status=pending&saved=" + fmt.Sprint(id); id == 0 || got.Header.Get("Location") != want {
			t.Fatalf("saved as %d, to %q, want %q", id, got.Header.Get("Location"), want)
		}
		page := h.Page(t, own, got.Header.Get("Location")+"&lang=en").Body
		for _, phrase := range []string{"Waiting", "The view is saved.", "Paid this month", "Manage views"} {
			if !strings.Contains(page, phrase) {
				t.Errorf("the list lacks %q", phrase)
			}
		}
		if strings.Contains(page, "Save as a view") {
			t.Error("a filter that is a view can be saved again")
		}
		if body := h.countsOf(t, own, "orders"); !strings.Contains(body, fmt.Sprintf(`data-of="v%d">1<`, id)) {
			t.Errorf("the counts are %s", body)
		}
		key := fmt.Sprintf("v%d", id)
		if strings.Contains(h.Page(t, other, "/orders").Body, key) || h.onView(t, other, id, "delete").Status != http.StatusNotFound ||
			h.onView(t, other, id, "watch", "on", "yes").Status != http.StatusNotFound {
			t.Error("another person reaches a personal view")
		}
		acts := func() int64 { return number(t, h.DB, "SELECT count(*) FROM audit WHERE object = 'view'") }
		if n := acts(); n != 0 {
			t.Errorf("%d acts on a personal view are in the audit", n)
		}
		if got := h.onView(t, own, id, "change", "shared", "yes"); got.Status != http.StatusSeeOther {
			t.Fatalf("share: %d %s", got.Status, got.Body)
		}
		if !strings.Contains(h.Page(t, other, "/orders").Body, key) || acts() != 1 {
			t.Error("a shared view is not seen by others, or not recorded")
		}
		if got := h.onView(t, other, id, "change", "name", "Mine"); got.Status != http.StatusForbidden {
			t.Errorf("a viewer renames a shared view: %d", got.Status)
		}
		if got := h.onView(t, other, id, "watch", "on", "yes"); got.Status != http.StatusSeeOther {
			t.Errorf("a viewer is alerted on a shared view: %d", got.Status)
		}
		got = h.onView(t, own, id, "change", "name", "Pending")
		if page := h.Page(t, own, got.Header.Get("Location")+"&lang=en").Body; !strings.Contains(page, "Changed the view Pending") ||
			!strings.Contains(page, `value="Waiting"`) {
			t.Error("renaming cannot be undone")
		}
		got = h.onView(t, own, id, "delete")
		page = h.Page(t, own, got.Header.Get("Location")+"&lang=en").Body
		if !strings.Contains(page, "Deleted the view Pending") || !strings.Contains(page, "Undo") ||
			strings.Contains(h.Page(t, other, "/orders").Body, key) {
			t.Error("deleting cannot be undone, or has no effect")
		}
		if got := h.onView(t, own, id, "restore"); got.Status != http.StatusSeeOther || !strings.Contains(h.Page(t, other, "/orders").Body,
			key) {
			t.Errorf("restore: %d", got.Status)
		}
		if got := h.onView(t, own, id, "change", "shared", "no"); got.Status != http.StatusSeeOther ||
			strings.Contains(h.Page(t, other, "/orders").Body, key) {
			t.Errorf("stop sharing: %d", got.Status)
		}
		if n := number(t, h.DB, "SELECT count(*) FROM view_watches"); n != 0 {
			t.Errorf("%d people are alerted on a view that they do not see", n)
		}
		if n := acts(); n != 5 {
			t.Errorf("%d acts are in the audit, want 5", n)
		}
	})
}

func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	own := h.SignIn(t, access.Support)
	for i := range savedview.MaxOwn {
		if _, id := h.save(t, own, "orders", "status=pending", fmt.Sprint("view ", i)); id == 0 {
			t.Fatalf("view %d is refused", i)
		}
	}
	for _, c := range []struct {
		list, query, name string
		status            int
	}{
		{"orders", "status=pending", "one more", http.StatusConflict},
		{"exceptions", "state=open", "another list", http.StatusSeeOther},
		{"exceptions", "state=open", "another list", http.StatusConflict},
		{"exceptions", "state=open", " ", http.StatusUnprocessableEntity},
		{"exceptions", "state=open", strings.Repeat("x", 41), http.StatusUnprocessableEntity},
		{"exceptions", "", "no filter", http.StatusUnprocessableEntity},
		{"exceptions", "window=2y", "no such window", http.StatusUnprocessableEntity},
		{"nothing", "a=b", "no such list", http.StatusNotFound},
		{"audit", "object=order", "not theirs to open", http.StatusForbidden},
	} {
		if got, _ := h.save(t, own, c.list, c.query, c.name); got.Status != c.status {
			t.Errorf("%s?%s as %q: %d, want %d", c.list, c.query, c.name, got.Status, c.status)
		}
	}
	if got, _ := h.save(t, h.SignIn(t, access.Viewer), "orders", "status=paid", "for all", "shared",
		"yes"); got.Status != http.StatusForbidden {
		t.Errorf("a viewer shares: %d", got.Status)
	}
}

// A view outlives what it filters by: the list and the page of the views say so.
func TestAViewThatNoLongerFitsSaysSo(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	own := h.SignIn(t, access.Lead)
	for _, c := range []struct{ query, says string }{
		{"merchant=gone", "merchant = gone, which does not exist"},
		{"weather=fine", "filters by weather, which this list no longer has"},
		{"amount=much", "no longer accepts the value much"},
	} {
		if _, err := h.DB.NewRaw("DELETE FROM views").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		var owner int64
		if err := h.DB.NewRaw("SELECT id FROM operators WHERE name = 'the.lead'").Scan(t.Context(), &owner); err != nil {
			t.Fatal(err)
		}
		change(t, h.DB,
			"INSERT INTO views (id, owner_id, list, name, query, shared, created_at, updated_at) VALUES (77, ?, 'orders', 'Old', ?, FALSE, 0, 0)", owner, c.query)
		for _, path := range []string{"/views", "/orders"} {
			got := h.Page(t, own, path+"?lang=en")
			if got.Status != http.StatusOK || !strings.Contains(got.Body, "Old") || path == "/views" &&
				!strings.Contains(got.Body, c.says) {
				t.Errorf("%s with a view by %s: %d, says %t", path, c.query, got.Status, strings.Contains(got.Body, c.says))
			}
		}
		if body := h.countsOf(t, own, "orders"); !strings.Contains(body, `data-of="v77"`) {
			t.Errorf("no count: %s", body)
		}
		if c.query == "merchant=gone" {
			if got := h.Page(t, own, "/orders?merchant=gone&lang=en"); !strings.Contains(got.Body, c.says) {
				t.Error("the list does not say that the merchant is gone")
			}
		}
	}
}

// inboxReads counts how often an inbox is read.
type inboxReads struct{ n atomic.Int64 }

func (q *inboxReads) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	if strings.Contains(e.Query, "FROM inbox") {
		q.n.Add(1)
	}
	return ctx
}
func (*inboxReads) AfterQuery(context.Context, *bun.QueryEvent) {}

// What a page needs once is not read again for each view that is counted.
func TestTheCountsOfManyViewsReadThePageOnce(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	reads := new(inboxReads)
	d.Read = d.Read.WithQueryHook(reads)
	h := openOn(t, d)
	cookie := h.SignIn(t, access.Lead)
	cost := func() int64 {
		before := reads.n.Load()
		h.countsOf(t, cookie, "orders")
		return reads.n.Load() - before
	}
	few := cost()
	for i := range 10 {
		if _, id := h.save(t, cookie, "orders", fmt.Sprint("amount=", i+1), fmt.Sprint("mine ", i)); id == 0 {
			t.Fatal("not saved")
		}
	}
	if many := cost(); many != few || few == 0 {
		t.Errorf("%d reads with a few views, %d with ten more", few, many)
	}
}

// The presets lead to rows of their own kind.
func TestPresetsHaveTheirRows(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	now := h.DB.Now()
	change(t, h.DB, "UPDATE orders SET paid_at = ? WHERE status = 'paid'", now)
	h.Page(t, cookie, "/me") // the zone is the installation's
	for _, c := range []struct{ path, label, holds string }{
		{"/orders", "Paid this month", ""},
		{"/orders?merchant=m1", "Paid this month: m1", ""},
		{"/notifications", "At risk now", ""},
		{"/exceptions", "At risk now", ""},
		{"/approvals", "Decisions of yesterday", ""},
		{"/audit", "Decisions of yesterday", ""},
	} {
		join := "?"
		if strings.Contains(c.path, "?") {
			join = "&"
		}
		if got := h.Page(t, cookie, c.path+join+"lang=en"); !strings.Contains(got.Body, c.label) {
			t.Errorf("%s lacks %q", c.path, c.label)
		}
	}
	zone := h.Config.Timezone
	at := time.UnixMicro(now).In(zone)
	this, last := at.Format("2006-01")+"@"+zone.String(), at.AddDate(0, -1, -at.Day()+1).Format("2006-01")+"@"+zone.String()
	paid := h.Page(t, cookie, "/orders?lang=en&paid="+this)
	none := h.Page(t, cookie, "/orders?lang=en&paid="+last)
	if !strings.Contains(paid.Body, "2026112000000001") || strings.Contains(paid.Body, "2026112000000002") ||
		strings.Contains(none.Body, "2026112000000001") {
		t.Error("the orders paid this month are others")
	}
	if got := h.Page(t, cookie, "/orders?paid=2026-11"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("a month without a zone: %d", got.Status)
	}
	change(t, h.DB, "UPDATE approvals SET decided_at = ? WHERE id = 501", now-24*3600e6)
	day := at.AddDate(0, 0, -1).Format("2006-01-02") + "@" + zone.String()
	if got := h.Page(t, cookie, "/approvals?lang=en&decided="+day); !strings.Contains(got.Body, "apr_501") ||
		strings.Contains(got.Body, "apr_503") {
		t.Error("the decisions of yesterday are others")
	}
}

// unread returns the unread messages of an operator.
func (h *harness) unread(t *testing.T, name string) (all []inbox.Message) {
	t.Helper()
	err := h.DB.NewSelect().Model(&all).Where("operator_id = (SELECT id FROM operators WHERE name = ?)",
		name).Where("read_at IS NULL").OrderExpr("id").Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
