package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/exception"
	"backstop/internal/pause"
	"backstop/views/search"
)

// hits returns where the lines of the palette lead to, in their order.
func (h *harness) hits(t *testing.T, cookie, language, q string) (paths []string) {
	t.Helper()
	got := h.Call(t, http.MethodGet, "/search?palette=1&lang="+language+"&q="+url.QueryEscape(q), "", "Cookie", cookie, "HX-Request",
		"true")
	if got.Status != http.StatusOK || strings.Contains(got.Body, "<html") || inlineCode.MatchString(got.Body) {
		t.Fatalf("%q: %d %s", q, got.Status, got.Body)
	}
	for _, m := range optionLink.FindAllStringSubmatch(got.Body, -1) {
		paths = append(paths, html.UnescapeString(m[1]))
	}
	if n := strings.Count(got.Body, `role="option"`); n != len(paths) {
		t.Fatalf("%q: %d lines, %d links: %s", q, n, len(paths), got.Body)
	}
	return paths
}

var optionLink = regexp.MustCompile(`role="option"[^>]* href="([^"]*)"`)

// Each role is led to the pages and acts of its permissions and to no others; each act leads to
// what carries it out.
func TestThePaletteLeadsWhereOneMay(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.Alerts = func() ([]string, alert.Style) { return []string{"ops"}, alert.Style{} }
	change(t, h.DB, "UPDATE exceptions SET kind = ? WHERE order_no = 'NO-SUCH-ORDER'", exception.NotifyExhausted)
	offered, withheld := map[string]bool{}, 0
	for _, role := range access.AllRoles {
		cookie := h.SignIn(t, role)
		all := h.hits(t, cookie, "en", "")
		expect := func(path string, permission access.Permission) {
			t.Helper()
			allowed := h.Policy.Allows(access.RolesOf(role), permission)
			if slices.Contains(all, path) != allowed {
				t.Errorf("%s is led to %s: %t", role, path, !allowed)
			}
			if !allowed {
				withheld++
			}
		}
		pages := map[string]bool{}
		for _, r := range h.Routes() {
			if r.Menu.Icon+r.Menu.Aside != "" {
				pages[r.Path] = true
				expect(r.Path, r.Permission)
			}
		}
		for _, x := range search.Starts {
			if x.Resumes { // nothing is paused
				continue
			}
			permission := x.Permission
			if x.Act != "" {
				permission = h.Acts.Kind(x.Act).Permission
			}
			if !pages[x.Path] { // which all may open who may open the page
				expect(x.Path, permission)
			}
		}
		for _, path := range all {
			page, fragment, _ := strings.Cut(path, "#")
			got := h.Page(t, cookie, page)
			if got.Status != http.StatusOK {
				t.Errorf("%s is led to %s: %d", role, path, got.Status)
			}
			if fragment == "" || strings.HasPrefix(fragment, "batch-") && !strings.Contains(got.Body, "data-row") {
				continue
			}
			offered[path] = true
			fragment = strings.TrimPrefix(fragment, "open-")
			if !strings.Contains(got.Body, `id="`+fragment+`"`) {
				t.Errorf("%s, %s: the page lacks what the act leads to", role, path)
			}
			if strings.Contains(got.Body, `<dialog id="`+fragment+`"`) && !strings.Contains(got.Body, `data-open="#`+fragment+`"`) {
				t.Errorf("%s, %s: nothing on the page opens the dialog", role, path)
			}
		}
	}
	if withheld == 0 {
		t.Error("no role was withheld anything: the walk proves nothing")
	}
	for _, path := range []string{
		"/sweeps#open-run", "/queues/notify#open-pause", "/queues/compensate#open-pause", "/alerts#open-test",
		"/accounts#open-adjust", "/notifications#batch-resend",
	} {
		if !offered[path] {
			t.Errorf("nothing leads to %s", path)
		}
	}
}

// What is paused can be resumed, and the other way round.
func TestThePaletteOffersToResumeWhatIsPaused(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	const pauses, resumes = "/queues/" + pause.Notifications + "#open-pause", "/queues/" + pause.Notifications + "#open-resume"
	offers := func(when string, want ...string) {
		t.Helper()
		if all := append(h.hits(t, cookie, "zh", "暂停通知"), h.hits(t, cookie, "zh", "恢复通知")...); !slices.Equal(all, want) {
			t.Errorf("%s: %q", when, all)
		}
	}
	offers("before", pauses)
	h.Post(t, cookie, "/queues/"+pause.Notifications+"/pause", "form_key", "0123456789abcdef", "reason", "the merchants asked us to wait")
	offers("while it is paused", resumes)
}

// One text finds pages and acts by their names in both languages, and orders, merchants,
// suppliers and exceptions as the search does.
func TestThePaletteFinds(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'")
	cookie := h.SignIn(t, access.Lead)
	for q, want := range map[string]string{
		"订单":               "/orders",
		"order":            "/orders",
		"SWEEP":            "/sweeps /sweeps#open-run",
		"扫描 立即":            "/sweeps#open-run",
		"now run":          "/sweeps#open-run",
		"runbook":          "/runbook",
		"密码":               "/me#old",
		"sign out":         "/me",
		"GX-88210477":      orderOne,
		"2026112000000001": orderOne,
		"green":            "/merchants/m1 /orders?merchant=m1",
		"quick":            "/suppliers/quick",
		"3,499.00":         "/orders?amount=3%2C499.00&window=31d",
		"no such thing":    "",
	} {
		for _, language := range []string{"en", "zh"} {
			all := h.hits(t, cookie, language, q)
			if got := strings.Join(all, " "); got != want && (want == "" || !strings.HasPrefix(got, want+" ")) {
				t.Errorf("%s, %q leads to %q, want %q", language, q, got, want)
			}
		}
	}
	id := number(t, h.DB, "SELECT id FROM exceptions WHERE order_no = 'NO-SUCH-ORDER'")
	if all := h.hits(t, cookie, "en", "NO-SUCH-ORDER"); !slices.Equal(all, []string{exceptionPath(id)}) {
		t.Errorf("an exception without an order: %q", all)
	}
	if all := h.hits(t, cookie, "en", "2026112000000003"); len(all) < 2 || all[0] != "/orders/2026112000000003" ||
		!strings.HasPrefix(all[1], "/exceptions/") {
		t.Errorf("an order with an exception: %q", all)
	}
	if all := h.hits(t, cookie, "en", "e"); slices.Index(all, "/search?q=e") < 0 {
		t.Errorf("many pages, without a link to all of them: %q", all)
	}
	if got := h.Page(t, cookie, "/search?palette=1&q=m1"); got.Status != http.StatusSeeOther ||
		got.Header.Get("Location") != "/search?q=m1" {
		t.Errorf("the lines as a page: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if got := h.Call(t, http.MethodGet, "/search?palette=1&q=m1", "", "HX-Request", "true"); got.Status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", got.Status)
	}
	if got := h.Page(t, cookie, "/search?palette=1&q="+strings.Repeat("x", 300)); got.Status == http.StatusOK {
		t.Errorf("a text of 300 bytes: %d", got.Status)
	}
}

// Acts are found by what they do, in both languages, by those who may do them; an open breaker by its
// merchant.
func TestThePaletteFindsActs(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB,
		"INSERT INTO breakers (owner_id, state, generation, cause, changed_at, open_until, updated_at) VALUES (1, 'open', 1, 'failures_in_a_row', 1, ?, 1)", h.DB.Now()+60_000_000)
	if err := h.Breakers.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ReadSettings(t)
	ops, viewer := h.SignIn(t, access.Ops), h.SignIn(t, access.Viewer)
	for q, want := range map[string]string{
		"close breaker": "/merchants/m1#open-close",
		"解除熔断":          "/?matter=breaker",
		"解除熔断 m1":       "/merchants/m1#open-close",
		"resend":        "/notifications?status=exhausted",
		"补发":            "/notifications?status=exhausted",
		"pause queue":   "/queues/notify#open-pause",
		"暂停 队列":         "/queues/notify#open-pause",
		"acknowledge":   "/?matter=incident",
	} {
		if all := h.hits(t, ops, "en", q); !slices.Contains(all, want) {
			t.Errorf("ops, %q: %q, want %q", q, all, want)
		}
		if all := h.hits(t, viewer, "en", q); slices.Contains(all, want) {
			t.Errorf("viewer, %q: %q", q, all)
		}
	}
	if page := h.Page(t, ops, "/merchants/m1").Body; !strings.Contains(page, `data-open="#close"`) {
		t.Error("the page has no form that closes the breaker")
	}
}

// The page of the search does without a script what the palette does with one: it lists pages and
// acts, and opens a single hit at once.
func TestTheSearchLeadsToPagesAndActs(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	for _, part := range []string{
		`href="/search" data-palette`, `href="/sweeps#open-run"`, `href="/analytics"`, `href="/inbox"`,
		`href="/me#language"`,
	} {
		if got := h.Page(t, cookie, "/search?lang=en"); !strings.Contains(got.Body, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	for q, want := range map[string]string{
		"Compensations": "", // a page, and an act of many
		"suppliers":     "/suppliers",
		"处理手册":          "/runbook",
		"quick":         "/suppliers/quick",
		"m1":            "/orders?merchant=m1",
		"sign out":      "", // which a link must not do
	} {
		got := h.Page(t, cookie, "/search?q="+url.QueryEscape(q))
		if got.Header.Get("Location") != want || want == "" &&
			(got.Status != http.StatusOK || !strings.Contains(got.Body, `class="hits"`)) {
			t.Errorf("%q: %d to %q, want %q", q, got.Status, got.Header.Get("Location"), want)
		}
	}
	if got := h.Page(t, cookie, "/search?lang=en&q="+url.QueryEscape(`<b>"x"`)); !strings.Contains(got.Body, "Nothing found") ||
		strings.Contains(got.Body, `<b>"x"`) {
		t.Errorf("what nothing has: %d", got.Status)
	}
}
