package console

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
