package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/static"
	"backstop/web"
	"backstop/web/webtest"
)

const (
	ownAddress = "BACKSTOP_ADMIN_LISTEN=127.0.0.1:0"
	deskURL    = "https://desk.example.com"
)

// at is a harness whose calls go to another of its addresses.
func (h *harness) at(address string) *harness {
	return &harness{Site: &webtest.Site{Server: h.Server, Addr: address}}
}

// Each route of the table is served where its audience is, and does not exist at the other
// address: neither its handler nor its admission answers.
func TestEachAddressServesItsOwnRoutes(t *testing.T) {
	t.Parallel()
	h := open(t, ownAddress)
	fill := strings.NewReplacer(":supplier", "wx", ":order_no", "1", ":merchant", "m1", "/static/*", static.Load().URL("console.css"), "*",
		"x")
	both := []string{"/healthz", "/readyz", "/openapi.yaml", "/docs", "/api/v1/event-types"}
	count := map[bool]int{}
	for _, r := range h.Routes() {
		path := fill.Replace(r.Path)
		public := h.at(h.Addr).Call(t, r.Method, path, "")
		admin := h.at(h.Admin).Call(t, r.Method, path, "")
		forMachines := strings.HasPrefix(r.Path, "/callback/") || strings.HasPrefix(r.Path, "/api/v1/") &&
			!strings.HasPrefix(r.Path, "/api/v1/admin/")
		wantPublic, wantAdmin := forMachines, !forMachines
		if slices.Contains(both, r.Path) {
			wantPublic, wantAdmin = true, true
		}
		// A supplier that is not known yet is answered 404, too, but not by the table.
		served := public.Status != http.StatusNotFound || r.Audience == web.ForSupplier && !strings.Contains(public.Body, "not_found")
		if served != wantPublic {
			t.Errorf("%s %s at the public address: %d", r.Method, path, public.Status)
		}
		if is := admin.Status != http.StatusNotFound; is != wantAdmin {
			t.Errorf("%s %s at the console's address: %d", r.Method, path, admin.Status)
		}
		count[wantPublic]++
		count[wantAdmin]++
	}
	if count[true] < 50 || count[false] < 50 {
		t.Errorf("only %v were tried", count)
	}
	if got := h.at(h.Addr).Call(t, "GET", "/", "", "Accept", "text/html").Problem(); got != "404 not_found" {
		t.Errorf("the console at the public address: %s", got)
	}
}

func TestBothAddressesTakeNoDisputedRequests(t *testing.T) {
	t.Parallel()
	h := open(t, ownAddress, "BACKSTOP_API_BODY_LIMIT=1KiB")
	for _, address := range []string{h.Addr, h.Admin} {
		at := h.at(address)
		if got := at.Call(t, "POST", "/healthz", strings.Repeat("x", 2000)); got.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("a body that is too large: %d", got.Status)
		}
		got := at.Call(t, "GET", "/healthz", "")
		if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("X-Request-Id") == "" {
			t.Errorf("headers %v", got.Header)
		}
		const disputed = "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		if statuses, closed := converse(t, address, disputed); !closed || !slices.Equal(statuses, []int{http.StatusBadRequest}) {
			t.Errorf("two lengths: %v, closed %v", statuses, closed)
		}
	}
}

// The console's own address is what its cookies and its forms go by.
func TestTheConsoleGoesByItsOwnURL(t *testing.T) {
	t.Parallel()
	h := open(t, ownAddress, "BACKSTOP_PUBLIC_URL=http://pay.example.com", "BACKSTOP_ADMIN_URL="+deskURL)
	if _, err := h.Operators.Add(t.Context(), "lee", access.Viewer, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"name": {"lee"}, "password": {webtest.GoodPassword}}.Encode()
	for origin, want := range map[string]int{deskURL: http.StatusSeeOther, "http://pay.example.com": http.StatusForbidden} {
		got := h.at(h.Admin).Call(t, "POST", "/login", form, "Content-Type", "application/x-www-form-urlencoded", "Origin", origin)
		if got.Status != want {
			t.Errorf("from %s: %d", origin, got.Status)
		}
		if cookie := got.Header.Get("Set-Cookie"); want == http.StatusSeeOther && (!strings.HasPrefix(cookie, "__Host-") ||
			!strings.Contains(cookie, "secure")) {
			t.Errorf("the cookie is %q", cookie)
		}
	}
}
