package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
)

var versionShown = regexp.MustCompile(`id="version" data-version="([0-9a-z]+)"`)

// Every page of an object has the address of its stream and the version that it shows; the stream
// says when there is another.
func TestThePagesOfObjectsFollowThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	var paths []string
	for _, d := range h.details(t) {
		paths = append(paths, d.path)
	}
	var more []string
	if err := h.DB.Read.NewRaw("SELECT '/orders/' || order_no FROM orders UNION ALL SELECT '/refunds/' || refund_no FROM refunds"+
		" UNION ALL SELECT '/payouts/' || payout_no FROM payouts UNION ALL SELECT '/disputes/' || dispute_no FROM disputes"+
		" UNION ALL SELECT '/approvals/apr_' || id FROM approvals").Scan(t.Context(), &more); err != nil {
		t.Fatal(err)
	}
	seen := map[*object]bool{}
	for _, path := range append(paths, more...) {
		o, _ := h.in.objectAt(path)
		if o == nil || seen[o] {
			continue
		}
		seen[o] = true
		page := h.Page(t, cookie, path+"?lang=en")
		shown := versionShown.FindStringSubmatch(page.Body)
		if page.Status != http.StatusOK || shown == nil || !strings.Contains(page.Body, `data-live="/_/live?page=`) {
			t.Errorf("%s: %d, version %q", path, page.Status, shown)
			continue
		}
		if e := h.watch(t, cookie, "/_/live?page="+path).Next(t); !strings.Contains(e.Data, shown[0]) {
			t.Errorf("%s shows %s, the stream has %q", path, shown[0], e.Data)
		}
	}
	if len(seen) != len(h.in.objects) {
		t.Errorf("only %d of %d kinds were looked at", len(seen), len(h.in.objects))
	}
	w := h.watch(t, cookie, "/_/live?page=/orders/2026112000000002")
	before := versionShown.FindString(w.Next(t).Data)
	change(t, h.DB, "UPDATE orders SET status = 'closing', version = 2 WHERE order_no = '2026112000000001'") // another one
	change(t, h.DB, "UPDATE orders SET status = 'closing', version = 2 WHERE order_no = '2026112000000002'")
	if after := versionShown.FindString(w.Until(t, `id="version"`).Data); after == before {
		t.Errorf("the version is still %s", after)
	}
}

// Who may not open the page of an object gets nothing of it, not even that it changes.
func TestTheStreamOfAnObjectNeedsTheRightToItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	const page = "/orders/2026112000000001"
	o, _ := h.in.objectAt(page)
	if o.permission != access.ViewOrders {
		t.Fatalf("the permission of an order's stream is %q", o.permission)
	}
	o.permission = access.ProposeSettings
	if got := h.watch(t, h.SignIn(t, access.Viewer), "/_/live?page="+page).Status; got != http.StatusNotFound {
		t.Errorf("who may not see it: %d", got)
	}
	admin := h.SignIn(t, access.Admin)
	h.watch(t, admin, "/_/live?page="+page).Next(t)
	for path, want := range map[string]int{
		page + "9": http.StatusNotFound, "/audit/7": http.StatusNotFound, "/batches/7": http.StatusNotFound,
		"//example.com/7": http.StatusNotFound,
	} {
		if got := h.watch(t, admin, "/_/live?page="+path).Status; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := h.Page(t, admin, "/_/live?page="+page).Header.Get("Location"); got != page {
		t.Errorf("a person is led to %q", got)
	}
	if e := h.watch(t, admin, "/_/live?topics=orders,batch,risk").Next(t); strings.Contains(e.Data, `id="version"`) {
		t.Errorf("a version without an object: %q", e.Data)
	}
}
