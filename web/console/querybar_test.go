package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/ui"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestAFilterIsWrittenAsText(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	change(t, h.DB, "UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'")
	for text, want := range map[string]string{
		"":                                      "/orders",
		"status:paid":                           "/orders?status=paid",
		"state:paid":                            "/orders?status=paid",
		"m1":                                    "/orders?merchant=m1",
		`merchant:"green tea" amount:>100`:      "/orders?amount=%3E100&merchant=m1",
		"商户：m1 amount:100..200":                 "/orders?amount=100..200&merchant=m1",
		"from:2026-11-20 to:2026-11-21T10:00":   "/orders?from=2026-11-20&to=2026-11-21T10%3A00%2B08%3A00",
		"window:7d":                             "/orders?window=7d",
		"status:已关闭":                            "/orders?status=closed",
		`from:"2026-11-20 14:05" status:closed`: "/orders?from=2026-11-20T14%3A05%2B08%3A00&status=closed",
	} {
		if got := h.Page(t, cookie, "/orders?q="+url.QueryEscape(text)); got.Status != http.StatusSeeOther ||
			got.Header.Get("Location") != want {
			t.Errorf("%q: %d to %q, want %q", text, got.Status, got.Header.Get("Location"), want)
		}
	}
	// What a link restricts the list to stays.
	if got := h.Page(t, cookie, "/orders?risk=stuck&q=status%3Apaying"); got.Header.Get("Location") != "/orders?risk=stuck&status=paying" {
		t.Errorf("to %q", got.Header.Get("Location"))
	}
	for text, want := range map[string]string{
		"amont:5":                       "no such field",
		"status:parked":                 "not a value of this field",
		"amount:much":                   "cannot be used: use an amount such as",
		"status:paid state:closed":      "a field can be used only once",
		"from:noon":                     "use 14:05",
		"from:2026-11-21 to:2026-11-20": "the end must be after the start",
		"from:2026-01-01 to:2026-11-20": "at most 31 days",
		"nobody":                        "neither a name nor a code",
		"merchant:":                     "a value must follow the colon",
		`<script>:1 "><img src=x>`:      "no such field",
	} {
		got := h.Page(t, cookie, "/orders?lang=en&q="+url.QueryEscape(text))
		if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, want) ||
			!strings.Contains(got.Body, "Nothing was searched") {
			t.Errorf("%q: %d, says %q %t", text, got.Status, want, strings.Contains(got.Body, want))
		}
		if strings.Contains(got.Body, "<script>:1") || strings.Contains(got.Body, "<img src=x") {
			t.Errorf("%q is not escaped", text)
		}
	}
	if got := h.Page(t, cookie, "/orders?lang=en&q="+strings.Repeat("x", 501)); got.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.Body, "use at most 500 bytes") || !strings.Contains(got.Body, "Nothing was searched") {
		t.Errorf("a text of 501 bytes: %d", got.Status)
	}
}

// The audit is filtered by an act's code, or by its words in either language; where several acts
// have these words, their codes are named.
func TestTheAuditIsFilteredByTheWordsOfAnAct(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Lead) // the act session.start
	for i, action := range []string{"order.note", "exception.note", "password.change", "queue.pause"} {
		change(t, h.DB,
			"INSERT INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) SELECT COALESCE(max(number), 0) + 1, ?, 'operator:wang.min', ?, 'order', ?, '{}', '', ? FROM audit",
			h.DB.Now(), action, fmt.Sprint("X-", i), strings.Repeat("0", 64))
	}
	for text, want := range map[string]string{
		"action:password.change":             "/audit?action=password.change",
		`action:"changed the password"`:      "/audit?action=password.change",
		`action:"Changed the PASSWORD"`:      "/audit?action=password.change",
		"action:password":                    "/audit?action=password.change",
		"action:修改了密码":                       "/audit?action=password.change",
		"操作：密码":                              "/audit?action=password.change",
		"action:登录 actor:wang.min":           "/audit?action=session.start&actor=wang.min",
		`action:"signed in" from:2026-11-20`: "/audit?action=session.start&from=2026-11-20",
	} {
		if got := h.Page(t, cookie, "/audit?q="+url.QueryEscape(text)); got.Status != http.StatusSeeOther ||
			got.Header.Get("Location") != want {
			t.Errorf("%q: %d to %q, want %q", text, got.Status, got.Header.Get("Location"), want)
		}
	}
	for _, text := range []string{"action:note", `action:"wrote a note"`} {
		got := h.Page(t, cookie, "/audit?lang=en&q="+url.QueryEscape(text))
		if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "is ambiguous; choose one of") ||
			!strings.Contains(got.Body, "exception.note, order.note") {
			t.Errorf("%s, words of two acts: %d", text, got.Status)
		}
	}
	for text, want := range map[string][]string{
		"action:pass": {`data-text="action:password.change "`, "<span>changed the password</span>"},
		"action:密码":   {`data-text="action:password.change "`},
		"signed":      {`data-text="action:session.start "`, "<span>signed in</span>"},
	} {
		got := h.Call(t, http.MethodGet, "/audit?lang=en&propose=1&q="+url.QueryEscape(text), "", "Cookie", cookie, "HX-Request", "true")
		for _, part := range want {
			if !strings.Contains(got.Body, part) {
				t.Errorf("%q is proposed without %s: %s", text, part, got.Body)
			}
		}
	}
}

// Two times of day without their days are those of one day: of today, or of yesterday if it has
// not begun by now; an end that precedes the beginning is on the day after it.
func TestTwoTimesOfDayAreOfOneDay(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ now, text, from, to string }{
		{"2026-11-20 16:00", "from:14:05 to:15:10", "2026-11-20 14:05", "2026-11-20 15:10"},
		{"2026-11-20 14:30", "from:14:05 to:15:10", "2026-11-20 14:05", "2026-11-20 15:10"}, // it has begun
		{"2026-11-20 14:00", "from:14:05 to:15:10", "2026-11-19 14:05", "2026-11-19 15:10"},
		{"2026-11-20 14:00", "to:15:10 from:14:05", "2026-11-19 14:05", "2026-11-19 15:10"},
		{"2026-11-20 00:10", "from:14:05:30 to:15:10:59", "2026-11-19 14:05:30", "2026-11-19 15:10:59"},
		{"2026-11-20 10:00", "from:22:00 to:02:00", "2026-11-19 22:00", "2026-11-20 02:00"},
		{"2026-11-20 23:00", "从：22:00 到：02:00", "2026-11-20 22:00", "2026-11-21 02:00"},
		{"2026-11-01 12:00", "from:00:30 to:03:30", "2026-11-01 00:30", "2026-11-01 03:30"}, // clocks are set back between them
		{"2026-11-20 14:30", "from:14:05", "2026-11-20 14:05", ""},
		{"2026-11-20 14:30", "to:15:10", "", "2026-11-19 15:10"},
		{"2026-11-20 14:30", "from:2026-11-18T14:05 to:15:10", "2026-11-18 14:05", "2026-11-19 15:10"},
	} {
		parse := func(text string) time.Time {
			t.Helper()
			for _, layout := range []string{"2006-01-02 15:04", time.DateTime} {
				if at, err := time.ParseInLocation(layout, text, zone); err == nil {
					return at
				}
			}
			t.Fatalf("%q is not a time", text)
			return time.Time{}
		}
		l := &listing{p: &ui.Page{Now: parse(c.now), Zone: zone}}
		_, terms, problems := l.readText(list.Reading{Spec: console.OrderList}, list.Words(c.text))
		if len(problems) > 0 {
			t.Errorf("at %s, %s: %+v", c.now, c.text, problems)
		}
		got := map[string]string{}
		for _, term := range terms {
			got[term.Name] = term.Value
		}
		for name, want := range map[string]string{fromParam: c.from, toParam: c.to} {
			if want != "" {
				want = momentText(parse(want), false)
			}
			if got[name] != want {
				t.Errorf("at %s, %s: %s is %q, want %q", c.now, c.text, name, got[name], want)
			}
		}
	}
}

// In an address too, two times of day are of one day.
func TestTimesOfDayInAnAddress(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	for path, want := range map[string]int{
		"/orders?from=14:05&to=15:10": http.StatusOK,
		"/orders?from=22:00&to=02:00": http.StatusOK,
		"/orders?from=14:05&to=14:05": http.StatusUnprocessableEntity,
	} {
		if got := h.Page(t, cookie, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// The time of an address means the same in every zone, and its text is read in the operator's.
func TestAListIsFromOneMomentToAnother(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	id := number(t, h.DB, "SELECT id FROM orders WHERE order_no = '2026112000000001'")
	zone, _ := time.LoadLocation("Asia/Shanghai")
	made := time.UnixMicro(number(t, h.DB, fmt.Sprint("SELECT created_at FROM orders WHERE id = ", id))).In(zone)
	before, after := made.Add(-time.Minute), made.Add(time.Minute)
	for _, c := range []struct {
		from, to string
		there    bool
	}{
		{before.Format(time.RFC3339), after.Format(time.RFC3339), true},
		{before.UTC().Format(time.RFC3339), after.UTC().Format(time.RFC3339), true},
		{before.Format("2006-01-02T15:04:05"), after.Format("2006-01-02T15:04:05"), true},
		{after.Format(time.RFC3339), "", false},
		{before.Add(-time.Minute).Format(time.RFC3339), before.Format(time.RFC3339), false},
		{made.Format(time.DateOnly), made.Format(time.DateOnly), true},
	} {
		q := url.Values{"from": {c.from}}
		if c.to != "" {
			q.Set("to", c.to)
		}
		got := h.Page(t, cookie, "/orders?"+q.Encode())
		if got.Status != http.StatusOK || strings.Contains(got.Body, "2026112000000001") != c.there {
			t.Errorf("from %s to %s: %d, has the order %t", c.from, c.to, got.Status, !c.there)
		}
	}
	for _, q := range []string{
		"from=2026-11-21&to=2026-11-20", "from=2026-01-01&to=2026-11-20", "from=x", "to=2026-99-01",
		"from=9999-01-01",
	} {
		if got := h.Page(t, cookie, "/orders?"+q); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d, want 422", q, got.Status)
		}
	}
}

func TestTheQueryBarProposes(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	change(t, h.DB, "UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'")
	for text, want := range map[string]string{
		"":             `data-text="merchant:"`,
		"mer":          `data-text="merchant:"`,
		"merchant:gre": `data-text="merchant:m1 "`,
		"tea":          `data-text="merchant:m1 "`,
		"status:cl":    `data-text="status:closed "`,
	} {
		got := h.Call(t, http.MethodGet, "/orders?lang=en&propose=1&q="+url.QueryEscape(text), "", "Cookie", cookie, "HX-Request", "true")
		if got.Status != http.StatusOK || !strings.Contains(got.Body, want) || strings.Contains(got.Body, "<html") {
			t.Errorf("%q: %d %s", text, got.Status, got.Body)
		}
		if n := strings.Count(got.Body, "role=\"option\""); n > maxProposals {
			t.Errorf("%q: %d proposals", text, n)
		}
	}
	if got := h.Page(t, cookie, "/orders?propose=1&q=mer"); got.Status != http.StatusSeeOther {
		t.Errorf("proposals as a page: %d", got.Status)
	}
}

// A filter is written by keyboard alone: two proposals are taken, and the result has a chip for
// each word. A chart is dragged.
func TestTheQueryBarInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	ordered(t, h.DB, 30, "", "20261123000001")
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Finance, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	run(t, ctx, signsIn("http://"+h.Addr, "li.hang", webtest.GoodPassword, "/orders"))
	const input, marked = `.querybar input[name="q"]`, `#proposals [aria-selected="true"]`
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1440, 900}, {"narrow", 390, 844}} {
		for _, lang := range []string{"en", "zh"} {
			var inside bool
			var chips, expanded, at string
			run(t, ctx, emulation.SetDeviceMetricsOverride(size.width, size.height, 1, false),
				chromedp.Navigate("http://"+h.Addr+"/orders?lang="+lang), chromedp.WaitReady(input),
				chromedp.Focus(input), chromedp.SendKeys(input, "stat"), chromedp.WaitReady(`#proposals [data-text="status:"]:first-child`),
				chromedp.SendKeys(input, kb.ArrowDown), chromedp.WaitReady(marked),
				// The answer to what was typed before comes after the arrow.
				chromedp.Evaluate(`document.querySelector("#proposals").firstElementChild.dataset.before = "1"`, nil),
				chromedp.Evaluate(`document.querySelector("[data-propose]").dispatchEvent(new Event("input"))`, nil),
				chromedp.WaitReady(`#proposals [data-text="status:"]:not([data-before])`), chromedp.WaitReady(marked),
				chromedp.SendKeys(input, kb.Tab), chromedp.WaitReady(`#proposals [data-text="status:paid "]`),
				chromedp.AttributeValue(input, "aria-expanded", &expanded, nil),
				chromedp.Evaluate("document.documentElement.scrollWidth <= innerWidth", &inside))
			if expanded != "true" || !inside {
				t.Errorf("%s, %s: proposals are open %s, nothing overflows %t", size.name, lang, expanded, inside)
			}
			if found := violations(t, ctx); len(found) > 0 {
				t.Errorf("%s, %s: %s", size.name, lang, strings.Join(found, "; "))
			}
			if *screenshots != "" {
				takeScreenshot(t, ctx, "query-"+size.name+"-"+lang)
			}
			run(t, ctx, chromedp.SendKeys(input, "paid "), chromedp.WaitReady(`#proposals [data-text="status:paid merchant:"]`),
				chromedp.SendKeys(input, "m1"), chromedp.SendKeys(input, kb.Enter), chromedp.WaitReady(".chips .chip"),
				chromedp.Location(&at), chromedp.TextContent(".chips", &chips))
			if !strings.HasSuffix(at, "/orders?merchant=m1&status=paid") || !strings.Contains(chips, "m1") {
				t.Errorf("%s, %s: at %s with %q", size.name, lang, at, chips)
			}
			if all := said.take(); len(all) > 0 {
				t.Errorf("%s, %s, browser console: %s", size.name, lang, strings.Join(all, "; "))
			}
			run(t, ctx, chromedp.Navigate("http://"+h.Addr+"/orders?lang="+lang+"&q=amont%3A5"),
				chromedp.WaitVisible("#query-problems mark"))
			if found := violations(t, ctx); len(found) > 0 {
				t.Errorf("%s, %s, with a problem: %s", size.name, lang, strings.Join(found, "; "))
			}
			if *screenshots != "" {
				takeScreenshot(t, ctx, "query-problem-"+size.name+"-"+lang)
			}
			for _, line := range said.take() {
				if !strings.Contains(line, "status of 422") { // which is the page's
					t.Errorf("%s, %s, with a problem, browser console: %s", size.name, lang, line)
				}
			}
		}
	}
}
