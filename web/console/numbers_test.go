package console

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

var (
	causesForm = regexp.MustCompile(`(?s)<nav class="groups causes".*?</nav>`)
	causeForm  = regexp.MustCompile(`(?s)<a href="([^"]*)">.*?<span class="count">([\d,]+)(\+?)</span>(.*?)</a>`)
	matchForm  = regexp.MustCompile(`共 ([\d,]+)\+? 条`)
)

func plainCount(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// matching returns how many rows a list says that it has; 0 = it says that there are none.
func (h *harness) matching(t *testing.T, cookie, path string) int64 {
	t.Helper()
	found := matchForm.FindStringSubmatch(h.Page(t, cookie, path).Body)
	if found == nil {
		return 0
	}
	return plainCount(t, found[1])
}

// seedCauses adds notifications and callbacks that failed for several causes, and some that
// did not.
func seedCauses(t *testing.T, d *db.DB) {
	t.Helper()
	seed(t, d)
	now := d.Now()
	for _, x := range []struct{ no, status, class string }{
		{"2026112000000001", "exhausted", "timeout"},
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
	for range 2 {
		change(t, d, "INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
			" VALUES (?, 'wx', 'wrong_address', ?, '203.0.113.9', 'POST', '', '', '', '')", d.NewID(), now)
	}
}

// TestCausesLeadToTheirRows follows the causes above each list: the list behind one has the rows
// and the money that it names.
func TestCausesLeadToTheirRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seedCauses(t, d)
		cookie := h.SignIn(t, access.Lead)
		for _, c := range []struct {
			path string
			want []string // rows and words of the addresses, most rows first
		}{
			{"/notifications", []string{"3 timeout", "1 bad_status", "1 connect"}},
			{"/notifications?status=exhausted&window=31d", []string{"3 timeout", "1 connect"}},
			{"/notifications?cause=timeout", nil},
			{"/notifications?status=delivered", nil},
			{"/callbacks", []string{"2 wrong_address", "1 bad_signature"}},
			{"/callbacks?refused=no", nil},
			{"/callbacks?outcome=wrong_address", nil},
		} {
			strip := causesForm.FindString(h.Page(t, cookie, c.path).Body)
			var got []string
			sums := map[string]int64{}
			for _, link := range causeForm.FindAllStringSubmatch(strip, -1) {
				target, n := html.UnescapeString(link[1]), plainCount(t, link[2])
				word := regexp.MustCompile(`(?:cause|outcome)=([a-z_]+)`).FindStringSubmatch(target)
				if word == nil || link[3] != "" {
					t.Fatalf("%s: the cause %q", c.path, link[0])
				}
				got = append(got, link[2]+" "+word[1])
				if rows := h.matching(t, cookie, target); rows != n {
					t.Errorf("%s: %d rows, %s has %d", c.path, n, target, rows)
				}
				var money []string
				for _, m := range moneyForm.FindAllStringSubmatch(link[4], -1) {
					money = append(money, html.UnescapeString(m[1]))
					minor, currency, _ := strings.Cut(m[1], " ")
					amount, err := strconv.ParseInt(minor, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					sums[currency] += amount
				}
				slices.Sort(money)
				if there := totalsOf(t, h, cookie, target, totalsForm); !slices.Equal(money, there) {
					t.Errorf("%s: the money %v, %s has %v", c.path, money, target, there)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: causes %q, want %q\n%s", c.path, got, c.want, strip)
			}
			if !strings.Contains(c.path, "exhausted") {
				continue
			}
			var all []string // every row failed
			for currency, minor := range sums {
				all = append(all, plainMoney(minor, currency))
			}
			slices.Sort(all)
			if totals := totalsOf(t, h, cookie, c.path, totalsForm); len(all) < 3 || !slices.Equal(all, totals) {
				t.Errorf("%s: the causes have %v, the totals %v", c.path, all, totals)
			}
		}
	})
}

var (
	numberForm  = regexp.MustCompile(`<a [^>]*href="([^"]+)"[^>]*>\s*([\d,]+)(\+?)\s*</a>`)
	sectionForm = `(?s)aria-labelledby="%s".*?</section>`
)

// rowsBehind returns how many rows the target of a number has: of a list, or of the table that
// the link points into.
func (h *harness) rowsBehind(t *testing.T, cookie, target string) int64 {
	t.Helper()
	path, part, found := strings.Cut(target, "#")
	if !found {
		return h.matching(t, cookie, target)
	}
	section := regexp.MustCompile(fmt.Sprintf(sectionForm, part)).FindString(h.Page(t, cookie, path).Body)
	_, rows, _ := strings.Cut(section, "<tbody>")
	return int64(strings.Count(rows, "<tr>"))
}

// TestNumbersLeadToTheirRows follows every number of a page that is a link: what it leads to has
// as many rows.
func TestNumbersLeadToTheirRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seedCauses(t, d)
		h.InTrouble(t)
		for i, action := range []string{"accept_late", "accept_late", "accept_late", "refund"} { // those that the report tells
			at := time.Date(2026, 11, 20, 1+i, 0, 0, 0, time.UTC).UnixMicro()
			change(t, d,
				"INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params, reason, evidence, hash, maker, checker, state, made_at, expires_at, decided_at)"+
					" VALUES (?, ?, 'exception', 'x', '', 1, 1000, 'CNY', '{}', 'because of a test', '', 'h', 1, 2, 'done', ?, ?, ?)",
				db.IDAt(at), action, at, at, at)
		}
		cookie := h.SignIn(t, access.Lead)
		for _, c := range []struct {
			path string
			want []string // parts of the addresses that its numbers lead to
		}{
			{"/", []string{"merchant=m1&risk=untold"}},
			{"/merchants", []string{"merchant=m1&risk=untold"}},
			{"/suppliers/wx", []string{"outcome=wrong_address", "outcome=bad_signature"}},
			{"/reports", []string{"/approvals?decided=2026-11-20", "#suppliers-title", "#merchants-title"}},
			{"/compensations", []string{"/compensations?"}},
			{"/analytics", []string{"kind=amount_mismatch&state=waiting", "kind=unknown_order&state=waiting"}},
		} {
			var targets []string
			for _, link := range numberForm.FindAllStringSubmatch(h.Page(t, cookie, c.path).Body, -1) {
				target := html.UnescapeString(link[1])
				if strings.Contains(target, "window=1h") {
					continue // a rate, which leads to what it is the rate of
				}
				targets = append(targets, target)
				if n, rows := plainCount(t, link[2]), h.rowsBehind(t, cookie, target); rows != n || link[3] != "" {
					t.Errorf("%s: the number %s%s leads to %d rows of %s", c.path, link[2], link[3], rows, target)
				}
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(targets, func(target string) bool { return strings.Contains(target, want) }) {
					t.Errorf("%s: no number leads to %s, but to %q", c.path, want, targets)
				}
			}
		}
		body := h.Page(t, cookie, "/merchants/m1").Body
		parked := regexp.MustCompile(`<a href="([^"]*status=parked[^"]*)">[^<]*?([\d,]+)[^<]*</a>`).FindStringSubmatch(body)
		if parked == nil {
			t.Fatal("the parked notifications of a merchant lead nowhere")
		}
		if rows := h.matching(t, cookie, html.UnescapeString(parked[1])); rows != plainCount(t, parked[2]) {
			t.Errorf("%s parked, %s has %d rows", parked[2], parked[1], rows)
		}
	})
}
