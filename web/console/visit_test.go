package console

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
)

const (
	firstVisit = 100 << 10 // bytes of a page with what it needs, compressed, without fonts
	laterVisit = 12 << 10  // bytes of the page alone: what it needs is cached
)

// needs matches what the browser loads for a page.
var needs = regexp.MustCompile(`(?:src|href)="(/static/[^"#]+)`)

// TestVisitsAreSmall has pages with as many rows as they can have.
func TestVisitsAreSmall(t *testing.T) {
	t.Parallel()
	h := open(t)
	fill(t, h.DB, 1000)
	fillDesk(t, h.DB, 1000)
	cookie := h.SignIn(t, access.Lead)
	order := strconv.FormatInt(number(t, h.DB, "SELECT min(id) FROM orders WHERE status = 'paid'"), 10)
	for _, path := range []string{
		"/", "/orders", "/orders/" + order, "/notifications", "/callbacks", "/exceptions", "/?matter=incident",
		"/approvals", "/analytics", "/analytics?range=7d", "/analytics?range=90d", "/suppliers", "/merchants", "/audit", "/reports",
	} {
		page, body := h.transferred(t, cookie, path)
		all := page
		seen := map[string]bool{}
		for _, found := range needs.FindAllStringSubmatch(body, -1) {
			if name := found[1]; !seen[name] && !strings.Contains(name, ".woff") {
				seen[name] = true
				n, _ := h.transferred(t, cookie, name)
				all += n
			}
		}
		t.Logf("%-40s page %6d, with %d others %6d bytes", path, page, len(seen), all)
		if len(seen) < 5 {
			t.Errorf("%s needs %v: not all are found", path, seen)
		}
		if page > laterVisit {
			t.Errorf("%s: %d bytes, at most %d", path, page, laterVisit)
		}
		if all > firstVisit {
			t.Errorf("%s: %d bytes at the first visit, at most %d", path, all, firstVisit)
		}
	}
}

// transferred returns how many bytes an answer has as it is sent to a browser, and its text.
func (h *harness) transferred(t *testing.T, cookie, path string) (n int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	req.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd") // as browsers do
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sent, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
	return len(sent), res.Header.Get("Content-Encoding") + h.Page(t, cookie, path).Body
}
