package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/compensation"
)

// stuck writes compensations of a state and returns the first one's id.
func (h *harness) stuck(t *testing.T, state compensation.State, cause compensation.Cause, n int) int64 {
	t.Helper()
	var first int64
	for range n {
		id := h.DB.NewID()
		if first == 0 {
			first = id
		}
		var next *int64
		if now := h.DB.Now(); compensation.Moves.Of(state).Open {
			next = &now
		}
		_, err := h.DB.NewRaw(
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, state, attempts, max_attempts, next_at, made_by, opened_at)"+
				" VALUES (?, 'rerun', ?, 'order', ?, ?, 1, 1, 1, 100, 'CNY', ?, 3, 3, ?, 'advance', ?)", id, cause, id, fmt.Sprint("O", id),
			state, next, h.DB.Now()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	return first
}

func (h *harness) countStuck(t *testing.T, want int, where string, args ...any) {
	t.Helper()
	var n int
	if err := h.DB.NewRaw("SELECT count(*) FROM compensations WHERE "+where, args...).Scan(t.Context(), &n); err != nil || n != want {
		t.Errorf("%s: %d, %v; want %d", where, n, err, want)
	}
}

const back = "the supplier is back"

// What a list shows runs again, and nothing else; the page says how many.
func TestWhatAListShowsRunsAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.stuck(t, compensation.Dead, compensation.SupplierTimeout, 3)
	one := h.stuck(t, compensation.Dead, compensation.Poison, 2)
	ops := h.SignIn(t, access.Ops)
	const filter = "/compensations?cause=supplier_timeout&state=dead"
	page := h.Page(t, ops, filter+"&lang=en").Body
	form := formOf(t, page, "/compensations/redrive?cause=supplier_timeout&amp;state=dead")
	if !strings.Contains(page, "No answer in time") || !strings.Contains(page, "The program crashed") { // the groups are of all
		t.Error("the groups are not shown")
	}
	post := func() string {
		t.Helper()
		got := h.Post(t, ops, "/compensations/redrive?cause=supplier_timeout&state=dead", append(form, "reason", back)...)
		if got.Status != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/compensations?") {
			t.Fatalf("%d to %q", got.Status, got.Header.Get("Location"))
		}
		return got.Header.Get("Location")
	}
	to := post()
	post() // a double click
	h.countStuck(t, 3, "state = 'waiting' AND max_attempts > 3")
	h.countStuck(t, 2, "state = 'dead'")
	if body := h.Page(t, ops, to+"&lang=en").Body; !strings.Contains(body, "3 matched: 3 queued to run again, 0 skipped.") {
		t.Errorf("the page after it does not say what was done: %s", to)
	}
	if got := h.Post(t, ops, fmt.Sprintf("/compensations/redrive?no=O%d", one), "form_key", "k1", "reason",
		back); got.Status != http.StatusSeeOther {
		t.Errorf("of one order: %d", got.Status)
	}
	h.countStuck(t, 1, "state = 'dead'")
	for path, want := range map[string]int{
		"/compensations/redrive?cause=database": 404, "/compensations/redrive?cause=x": 422, "/compensations/redrive?window=1y": 422,
	} {
		if got := h.Post(t, ops, path, "form_key", "k "+path, "reason", back); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
	if got := h.Post(t, ops, "/compensations/redrive?state=dead", "form_key", "k2", "reason", "why"); got.Status != 422 {
		t.Errorf("without a reason: %d", got.Status)
	}
	h.stuck(t, compensation.Dead, compensation.Payload, 1001)
	if got := h.Post(t, ops, "/compensations/redrive?state=dead", "form_key", "k3", "reason", back); got.Status != 409 {
		t.Errorf("more than 1,000: %d", got.Status)
	}
	for path, want := range map[string]int{
		"/compensations?state=x": 422, "/compensations?kind=x": 422, "/compensations?cause=x": 422,
		"/compensations/7": 404, "/compensations/x": 404,
	} {
		if got := h.Page(t, ops, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// Only those who may act see the form.
func TestRolesActOnCompensationsAsThePolicySays(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.stuck(t, compensation.Dead, compensation.SupplierTimeout, 1)
	path := fmt.Sprintf("/compensations/%d", id)
	for role, may := range map[string]string{
		access.Viewer: "", access.Support: "run", access.Finance: "run", access.Ops: "run redrive", access.Lead: "run redrive cancel",
		access.Admin: "", access.Auditor: "",
	} {
		cookie := h.SignIn(t, role)
		one, list := h.Page(t, cookie, path).Body, h.Page(t, cookie, "/compensations").Body
		for what, page := range map[string]string{"run": one, "cancel": one, "redrive": list} {
			allowed := strings.Contains(may, what)
			action := path + "/" + what
			if what == "redrive" {
				action = "/compensations/redrive"
			}
			if strings.Contains(page, `action="`+action) != allowed {
				t.Errorf("%s sees the form to %s: %t", role, what, !allowed)
			}
			if allowed {
				continue
			}
			if got := h.Post(t, cookie, action, "form_key", role+what, "reason", back); got.Status != http.StatusForbidden {
				t.Errorf("%s may %s: %d", role, what, got.Status)
			}
		}
	}
	h.countStuck(t, 1, "state = 'dead'")
}

func TestACompensationIsRunAndCancelledFromItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.stuck(t, compensation.Dead, compensation.SupplierTimeout, 1)
	path := fmt.Sprintf("/compensations/%d", id)
	lead := h.SignIn(t, access.Lead)
	act := func(what string, want int) {
		t.Helper()
		form := formOf(t, h.Page(t, lead, path).Body, path+"/"+what)
		if got := h.Post(t, lead, path+"/"+what, append(form, "reason", back)...); got.Status != want {
			t.Fatalf("%s: %d", what, got.Status)
		}
	}
	act("run", http.StatusSeeOther)
	h.countStuck(t, 1, "state = 'waiting' AND id = ?", id)
	act("cancel", http.StatusSeeOther)
	h.countStuck(t, 1, "state = 'cancelled' AND next_at IS NULL AND id = ?", id)
	if page := h.Page(t, lead, path).Body; strings.Contains(page, path+"/run") || strings.Contains(page, path+"/cancel") {
		t.Error("a finished one can be run or cancelled")
	}
	if got := h.Post(t, lead, path+"/run", "form_key", "k9", "reason", back); got.Status != http.StatusConflict {
		t.Errorf("run after it has ended: %d", got.Status)
	}
	if body := h.Page(t, lead, "/audit?lang=en").Body; !strings.Contains(body, "ran a compensation again") ||
		!strings.Contains(body, "cancelled a compensation") {
		t.Error("the audit does not have it")
	}
}
