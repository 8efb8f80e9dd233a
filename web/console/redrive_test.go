package console

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/queue"
)

// What ran out of tries is picked on the list of exceptions, or all of a kind is, and run again;
// exceptions that need a decision cannot be picked.
func TestExceptionsArePickedAndRunAgain(t *testing.T) {
	t.Parallel()
	var nudged atomic.Int64
	h := open(t)
	h.Nudge = func(n []queue.Nudge) { nudged.Add(int64(len(n))) }
	exhaust(t, h.DB, 25)
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, supplier_id, subject, amount, currency, detail, opened_at, updated_at) VALUES (900, 'late_payment', 'open', 1, 'S1', 500, 'CNY', '{}', 5, 5)")
	cookie := h.SignIn(t, access.Ops)
	picks := func(path string) [][]string {
		return regexp.MustCompile(`name="row" value="(\d+)"`).FindAllStringSubmatch(h.Page(t, cookie, path).Body, -1)
	}
	all := picks("/exceptions")
	if len(all) != 25 || strings.Contains(h.Page(t, cookie, "/exceptions").Body, `value="all"`) {
		t.Fatalf("%d rows of 26 can be picked, or all of them", len(all))
	}
	if len(picks("/exceptions?kind=late_payment")) != 0 {
		t.Error("late money can be picked")
	}
	plan := h.Post(t, cookie, "/batches/plan/exceptions/redrive", "pick", "rows", "row", all[3][1]).Header.Get("Location")
	page := h.Page(t, cookie, plan+"?lang=en").Body
	inOrder(t, page, "Run again", "Will run", `value="1000 CNY"`)
	decided := h.Post(t, cookie, "/batches/plan/exceptions/redrive", "pick", "rows", "row", "900").Header.Get("Location")
	inOrder(t, h.Page(t, cookie, decided+"?lang=en").Body, "Blocked", `value="500 CNY"`, "There is nothing to do")
	form := append(formOf(t, page, plan+"/start"), "reason", "asked for by phone")
	if got := h.Post(t, cookie, plan+"/start", form...); got.Status != http.StatusSeeOther {
		t.Fatalf("the start: %d", got.Status)
	}
	if h.over(t, plan); nudged.Load() != 1 || number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'resolved'") != 1 {
		t.Errorf("%d sent", nudged.Load())
	}
	plan = h.Post(t, cookie, "/batches/plan/exceptions/redrive?kind=notify_exhausted&state=needs", "pick", "all").Header.Get("Location")
	form = append(formOf(t, h.Page(t, cookie, plan).Body, plan+"/start"), "reason", "asked for by phone", "amount_CNY", "240.00")
	if got := h.Post(t, cookie, plan+"/start", form...); got.Status != http.StatusSeeOther {
		t.Fatalf("the start of all: %d", got.Status)
	}
	if h.over(t, plan); nudged.Load() != 25 || number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'resolved'") != 25 ||
		number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'open'") != 1 {
		t.Errorf("%d sent", nudged.Load())
	}
	for _, role := range []string{access.Viewer, access.Support, access.Finance} {
		who := h.SignIn(t, role)
		if got := h.Post(t, who, "/batches/plan/exceptions/redrive?kind=notify_exhausted", "pick",
			"all"); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d", role, got.Status)
		}
		if page := h.Page(t, who, "/exceptions").Body; strings.Contains(page, `name="row"`) {
			t.Errorf("%s is offered it", role)
		}
	}
}
