package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/views/ui"
	"backstop/web/webtest"
)

// A fact is the address of rows: whatever counts them, or adds up their money, leads there, or names
// them in data-fact. TestEveryNumberIsThatOfItsRows follows each number of each page.

// claim is a number on a page about the rows at an address.
type claim struct {
	page, rows, text string
	count            int64    // -1 = none
	sums             []string // "minor currency"; nil = none
}

var (
	linkForm   = regexp.MustCompile(`(?s)<a\s[^>]*?href="([^"]*)"[^>]*>(.*?)</a>`)
	fundsForm  = regexp.MustCompile(`(?s)<p class="body">.*?</p>`)
	drawnForm  = regexp.MustCompile(`(?s)<svg.*?</svg>|<time.*?</time>|[\d,]+ times`)
	moneyWhole = regexp.MustCompile(`(?s)<data class="money" value="([^"]*)">.*?</data>`)
	numberWord = regexp.MustCompile(`^[\d,]+$`)
	matchWord  = regexp.MustCompile(`([\d,]+) match`)
	namedForms = []*regexp.Regexp{factNamedBy("a"), factNamedBy("b"), factNamedBy("li"), factNamedBy("span")}
)

// factNamedBy is an element that names its rows.
func factNamedBy(tag string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)<` + tag + `\s[^>]*data-fact="([^"]*)"[^>]*>(.*?)</` + tag + `>`)
}

// claims returns the numbers of a page about rows elsewhere.
func claims(page, body string) (all []claim) {
	add := func(rows, inner string) {
		c := claim{page: page, rows: html.UnescapeString(rows), count: -1}
		inner = drawnForm.ReplaceAllString(inner, " ")
		for _, m := range moneyWhole.FindAllStringSubmatch(inner, -1) {
			if m[1] = html.UnescapeString(m[1]); !strings.HasPrefix(m[1], "0 ") {
				c.sums = append(c.sums, m[1])
			}
		}
		slices.Sort(c.sums)
		inner = tagForm.ReplaceAllString(moneyWhole.ReplaceAllString(inner, " "), " ")
		c.text = strings.Join(strings.Fields(html.UnescapeString(inner)), " ")
		for _, word := range strings.Fields(c.text) {
			if word = strings.Trim(word, "()"); numberWord.MatchString(word) {
				c.count, _ = strconv.ParseInt(strings.ReplaceAll(word, ",", ""), 10, 64)
			}
		}
		if c.count >= 0 || len(c.sums) > 0 || c.isRate() {
			all = append(all, c)
		}
	}
	for _, form := range namedForms {
		for _, m := range form.FindAllStringSubmatch(body, -1) {
			add(m[1], m[2])
		}
	}
	for _, m := range linkForm.FindAllStringSubmatch(body, -1) {
		path, _, _ := strings.Cut(html.UnescapeString(m[1]), "?")
		if !strings.Contains(m[0], "data-fact=") && !strings.Contains(m[0], `class="nav"`) && isList(path) { // which sums up its tabs
			add(m[1], m[2])
		}
	}
	return all
}

// isList reports whether rows are listed at a path.
func isList(path string) bool {
	return path == "/suppliers" || slices.ContainsFunc(list.Registered(), func(s *list.Spec) bool { return "/"+s.Name == path })
}

// isRate reports whether the claim is a rate of the last hour, not a count.
func (c claim) isRate() bool {
	return strings.HasPrefix(c.rows, "/callbacks?") && strings.Contains(c.rows, "window=1h") && !strings.Contains(c.rows, "outcome=")
}

// listed returns what a page says of the rows that an address names: how many, and their money. The
// count of a part of a page stands in its heading.
func (h *harness) listed(t *testing.T, cookie, address string) (n int64, sums []string) {
	t.Helper()
	path, part, _ := strings.Cut(address, "#")
	body := h.Page(t, cookie, withWord(path, "lang=en")).Body
	if part != "" {
		heading := regexp.MustCompile(`(?s)id="` + part + `"[^>]*>.{0,300}?<span class="count bad"[^>]*>([\d,]+)`).FindStringSubmatch(body)
		if heading == nil {
			return 0, nil
		}
		return plainCount(t, heading[1]), nil
	}
	totals := totalsForm
	if strings.HasPrefix(path, "/accounts") {
		totals = fundsForm
	}
	for _, m := range moneyForm.FindAllStringSubmatch(totals.FindString(body), -1) {
		sums = append(sums, html.UnescapeString(m[1]))
	}
	slices.Sort(sums)
	if found := matchWord.FindStringSubmatch(body); found != nil {
		return plainCount(t, found[1]), sums
	}
	_, rows, _ := strings.Cut(body, "<main")
	return int64(strings.Count(rows, "<tr data-row")), sums
}

func withWord(path, word string) string {
	if strings.Contains(path, "?") {
		return path + "&" + word
	}
	return path + "?" + word
}

// everyPage returns the pages to which the console leads: each list, and some of each kind of object.
func (h *harness) everyPage(t *testing.T, cookie string) (all []string) {
	t.Helper()
	const ofOneKind = 12
	next := []string{"/"}
	for _, p := range allPages {
		next = append(next, p.path)
	}
	seen, kinds := map[string]bool{}, map[string]int{}
	for len(next) > 0 {
		page := next[0]
		next = next[1:]
		kind, _, deep := strings.Cut(strings.TrimPrefix(page, "/"), "/")
		if kinds[kind]++; seen[page] || deep && kinds[kind] > ofOneKind {
			continue
		}
		seen[page] = true
		got := h.Page(t, cookie, page)
		if got.Status != http.StatusOK || !strings.Contains(got.Header.Get("Content-Type"), "text/html") {
			continue
		}
		all = append(all, page)
		for _, m := range pageLinks.FindAllStringSubmatch(got.Body, -1) {
			if u, err := url.Parse(html.UnescapeString(m[1])); err == nil && !strings.HasPrefix(u.Path, "/asynqmon") {
				next = append(next, u.Path)
			}
		}
	}
	return all
}

// TestEveryNumberIsThatOfItsRows follows each number of each page: the list there has as many rows
// and the same money, and so has the database.
func TestEveryNumberIsThatOfItsRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		h.seedFacts(t)
		facts := map[string]bool{}
		for _, role := range []string{access.Lead, access.Ops} {
			cookie, seen := h.SignIn(t, role), map[string]bool{}
			for _, page := range h.everyPage(t, cookie) {
				for _, c := range claims(page, h.Page(t, cookie, withWord(page, "lang=en")).Body) {
					if key := fmt.Sprint(c.rows, c.text, c.sums); !seen[key] {
						seen[key] = true
						facts[h.follow(t, role, cookie, c)] = true
					}
				}
			}
		}
		for _, fact := range wantedFacts {
			if !facts[fact] {
				t.Errorf("no number is about %s", fact)
			}
		}
		h.addsUp(t)
	})
}

// follow compares a claim with the list that it is about and with the database, and returns the fact.
func (h *harness) follow(t *testing.T, role, cookie string, c claim) (fact string) {
	t.Helper()
	n, sums := h.listed(t, cookie, c.rows)
	if c.isRate() {
		if want := strings.TrimSuffix(ui.PerSecond(float64(n)/60), ".0"); c.text != want {
			t.Errorf("%s: %s a minute, %s lists %d of the last hour", c.page, c.text, c.rows, n)
		}
		return "rate"
	}
	if c.count >= 0 && c.count != n {
		t.Errorf("%s: %q is about %d rows, %s lists %d", c.page, c.text, c.count, c.rows, n)
	}
	inSQL, money, fact := h.inSQL(t, role, c.rows)
	if c.count >= 0 && c.count != inSQL {
		t.Errorf("%s: %q is about %d rows of %s, the database has %d", c.page, c.text, c.count, c.rows, inSQL)
	}
	if len(c.sums) == 0 {
		return fact
	}
	if !strings.Contains(c.rows, "#") && !slices.Equal(c.sums, sums) {
		t.Errorf("%s: %q has the money %v, %s has %v", c.page, c.text, c.sums, c.rows, sums)
	}
	if !slices.Equal(c.sums, money) {
		t.Errorf("%s: %q has the money %v of %s, the database %v", c.page, c.text, c.sums, c.rows, money)
	}
	return fact
}

// addsUp compares the money at risk with its parts: the sum of the overview, and what the API says.
func (h *harness) addsUp(t *testing.T) {
	t.Helper()
	all := map[string]int64{}
	var orders int64
	realtime := h.Api(t, webtest.MonitorToken, http.MethodGet, webtest.Monitoring+"realtime", "").Object(t)
	for _, part := range report.Parts {
		n, sums, _ := h.inSQL(t, access.Lead, ui.RiskParts[part].Href)
		orders += n
		var said []string
		for _, m := range realtime["at_risk"].(map[string]any)[string(part)].([]any) {
			one := m.(map[string]any)
			said = append(said, fmt.Sprintf("%.0f %s", one["amount"], one["currency"]))
		}
		if slices.Sort(said); !slices.Equal(said, sums) {
			t.Errorf("the API has %v at risk as %s, the database %v", said, part, sums)
		}
		for _, sum := range sums {
			minor, currency, _ := strings.Cut(sum, " ")
			amount, _ := strconv.ParseInt(minor, 10, 64)
			all[currency] += amount
		}
	}
	var want []string
	for currency, minor := range all {
		want = append(want, plainMoney(minor, currency))
	}
	slices.Sort(want)
	page := h.Page(t, h.SignIn(t, access.Viewer), "/?lang=en").Body
	hero := regexp.MustCompile(`(?s)<div class="sum">.*?</div>`).FindString(page)
	var got []string
	for _, m := range moneyForm.FindAllStringSubmatch(hero, -1) {
		got = append(got, html.UnescapeString(m[1]))
	}
	if slices.Sort(got); !slices.Equal(got, want) || !strings.Contains(hero, "orders: "+ui.Count(orders)) {
		t.Errorf("at risk are %v of %d orders, the page says %s", want, orders, hero)
	}
	// Each part shows the currency of the sum first.
	_, currency, _ := strings.Cut(html.UnescapeString(moneyForm.FindStringSubmatch(hero)[1]), " ")
	for _, part := range report.Parts {
		href := regexp.QuoteMeta(html.EscapeString(ui.RiskParts[part].Href))
		tile := regexp.MustCompile(`(?s)<a href="` + href + `">\s*<span.*?</a>`).FindString(page)
		if first := moneyForm.FindStringSubmatch(tile); first == nil || !strings.HasSuffix(first[1], " "+currency) {
			t.Errorf("the part %s does not begin with %s: %s", part, currency, tile)
		}
	}
}

// seedFacts writes rows of every kind, and the counters that a program that ran would have.
func (h *harness) seedFacts(t *testing.T) {
	t.Helper()
	d := h.DB
	seedRisk(t, d)
	exhaust(t, d, 8)
	proposeRefund(t, d)
	h.InTrouble(t)
	h.ring(t)
	now := d.Now()
	for _, x := range []struct{ no, status, class string }{
		{"2026112000000001", "exhausted", "timeout"},
		{"2026112000000002", "exhausted", "timeout"},
		{"2026112000000003", "exhausted", "connect"},
		{"2026112000000001", "delivered", "ok"},
		{"2026112000000001", "skipped", "no_address"},
	} {
		change(t, d,
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, last_class)"+
				" VALUES (?, ?, 1, (SELECT id FROM orders WHERE order_no = ?), 'order.paid', 'webhook', '', ?, ?, ?)", d.NewID(), d.NewID(),
			x.no, x.status, now, x.class)
	}
	// One payment of which a merchant is notified at two endpoints, and neither has answered.
	event, id, due := d.NewID(), d.NewID(), now+60_000_000
	change(t, d, "INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent,"+
		" subject, request_digest, status, version, paid_amount, created_at, expires_at)"+
		" VALUES (?, 'TWICE', 2, 'TWICE', 1, 777, 'USD', 2, '', '', 'paid', 2, 777, ?, 0)", id, now)
	for range 2 {
		if _, err := d.NewInsert().Model(&notify.Delivery{
			ID: d.NewID(), EventID: event, RecipientID: 2, SubjectID: id, EventType: "order.paid", Channel: notify.Webhook, Shared: true,
			Status: notify.RetryWait, Attempts: 1, NextAt: &due, LastClass: notify.Timeout, CreatedAt: now, Currency: "USD", Amount: 777,
		}).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// One's own proposal waits for somebody else.
	change(t, d, "INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params,"+
		" reason, evidence, hash, maker, maker_kind, state, second, made_at, expires_at)"+
		" SELECT 910, action, object, 'R-own', '', 1, 5, 'CNY', params, reason, evidence, hash, 9002,"+
		" 'operator', 'waiting', TRUE, made_at,"+
		" expires_at FROM approvals WHERE id = ?", approvalOfRefund)
	for i, action := range []string{"accept_late", "accept_late", "accept_late", "refund"} { // those that the daily report tells
		at := time.Date(2026, 11, 20, 1+i, 0, 0, 0, time.UTC).UnixMicro()
		change(t, d, "INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params,"+
			" reason, evidence, hash, maker, checker, state, made_at, expires_at, decided_at)"+
			" VALUES (?, ?, 'exception', 'x', '', 1, 19900, 'CNY', '{}',"+
			" 'because of a test', '', 'h', 1, 2, 'done', ?, ?, ?)", db.IDAt(at), action, at, at, at)
	}
	change(t, d, "UPDATE exceptions SET state = 'assigned', assignee = 'xu.finance' WHERE kind = 'unknown_order'")
	if _, err := d.NewInsert().Model(&breaker.Row{
		OwnerID: 2, OwnerKind: recipient.OfSupplier(2).Kind, State: breaker.Open, Cause: breaker.InARow, ChangedAt: now, UpdatedAt: now,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.count(t)
}

// count makes the counters those of the rows.
func (h *harness) count(t *testing.T) {
	t.Helper()
	d := h.DB
	for _, table := range []string{"report_suppliers", "report_volume", "report_unnotified"} {
		change(t, d, "DELETE FROM "+table)
	}
	change(t, d, "INSERT INTO report_suppliers (supplier_id, start, outcome, n) SELECT c.supplier_id, ?, c.outcome, count(*) FROM"+
		" (SELECT supplier_id, outcome FROM callbacks UNION ALL"+
		" SELECT s.id, r.outcome FROM refused_callbacks AS r JOIN suppliers AS s ON s.code = r.supplier)"+
		" AS c GROUP BY c.supplier_id, c.outcome", d.Now()/300_000_000*300_000_000)
	today := report.DayOf(d.Now(), h.Config.Timezone)
	change(t, d, "INSERT INTO report_volume SELECT 86400, ?, merchant_id, supplier_id, currency, count(*), sum(amount),"+
		" sum(CASE WHEN status = 'paid' THEN 1 ELSE 0 END), sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END)"+
		" FROM orders WHERE created_at >= ?"+
		" GROUP BY merchant_id, supplier_id, currency", today, today)
	wrong, err := report.Recount(t.Context(), d)
	if err == nil {
		err = report.Repair(t.Context(), d, wrong)
	}
	if err == nil {
		_, err = report.Fold(t.Context(), d, h.Config.Timezone)
	}
	if err != nil {
		t.Fatal(err)
	}
}
