package console

import (
	"encoding/csv"
	"html"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/analytics"
	"backstop/internal/base/db"
	"backstop/internal/report"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// past writes the figures of so many days, as transactions and the fold would: days and nights,
// quiet weekends, an outage five hours ago, and a backlog that has grown for half an hour.
func past(t *testing.T, d *db.DB, zone *time.Location, days, merchants int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	now := d.Now()
	minute := time.Minute.Microseconds()
	var orders, waits, failures, volume [][]any
	for at := now - now%minute - int64(days)*24*60*minute; at <= now; at += minute {
		local := time.UnixMicro(at).In(zone)
		hour := float64(local.Hour()) + float64(local.Minute())/60
		mean := 9 + 7*math.Sin((hour-9)/24*2*math.Pi)
		if day := local.Weekday(); day == time.Saturday || day == time.Sunday {
			mean *= 0.6
		}
		ago := (now - at) / minute
		for _, c := range []struct {
			code  string
			share float64
		}{{"CNY", 1}, {"USD", 0.15}} {
			n := int64(max(0, math.Round(mean*c.share+math.Sqrt(mean*c.share)*r.NormFloat64())))
			if n == 0 {
				continue
			}
			late := int64(0)
			if r.Float64() < 0.02 {
				late = 1
			}
			if ago > 280 && ago < 330 {
				late = n * 2 / 5
			}
			told := n - min(late, n)
			orders = append(orders, []any{60, at, c.code, n, n * 12_345, told, told * 12_345})
			if c.code != "CNY" {
				continue
			}
			waits = append(waits, []any{60, at, 3, told - told/3 - told/9}, []any{60, at, 6, told / 3}, []any{60, at, 12, told / 9})
			if late > 0 {
				waits = append(waits, []any{60, at, 21, late})
				failures = append(failures, []any{60, at, "timeout", "CNY", 3 * late, late, late * 12_345})
				if r.Float64() < 0.3 {
					failures = append(failures, []any{60, at, "bad_status", "CNY", 1, 1, 12_345})
				}
			}
			if ago < 200 && r.Float64() < 0.05 {
				failures = append(failures, []any{60, at, "tls", "CNY", 2, 1, 12_345})
			}
		}
		if at%(60*minute) == 0 {
			for m := range int64(merchants) {
				n := int64(mean * 60 / float64(m+1))
				volume = append(volume, []any{
					3600, at, m + 1, m%3 + 1, "CNY", n, n * 12_345, n * (90 - m%7) / 100,
					n * (90 - m%7) / 100 * 12_345,
				})
			}
		}
		if ago <= 35 {
			change(t, d, "INSERT INTO report_backlog (start, due, held) VALUES (?, ?, 40) ON CONFLICT DO NOTHING", at, 300+max(0, 14*(30-ago))+
				r.Int64N(15))
			change(t, d,
				"INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (0, ?, ?, ?, 0, 0, '', '') ON CONFLICT DO NOTHING", at, 985+ago/5, 15-ago/5)
		}
	}
	insert := func(table string, rows [][]any) {
		for part := range slices.Chunk(rows, 1000) {
			var marks []string
			var args []any
			for _, row := range part {
				marks = append(marks, "("+strings.TrimSuffix(strings.Repeat("?, ", len(row)), ", ")+")")
				args = append(args, row...)
			}
			change(t, d, "INSERT INTO "+table+" VALUES "+strings.Join(marks, ", ")+" ON CONFLICT DO NOTHING", args...)
		}
	}
	insert("report_orders", orders)
	insert("report_waits", waits)
	insert("report_failures", failures)
	insert("report_volume", volume)
	_, offset := time.UnixMicro(now).In(zone).Zone()
	for _, sum := range []struct{ table, key, columns string }{
		{"report_orders", "currency", "sum(raised), sum(raised_amount), sum(notified), sum(notified_amount)"},
		{"report_waits", "bucket", "sum(orders)"},
		{"report_failures", "class, currency", "sum(attempts), sum(orders), sum(amount)"},
		{"report_volume", "merchant_id, supplier_id, currency", "sum(created), sum(created_amount), sum(paid), sum(paid_amount)"},
	} {
		if sum.table != "report_volume" {
			change(t, d, "INSERT INTO "+sum.table+" SELECT 300, start - start % 300000000, "+sum.key+", "+sum.columns+" FROM "+sum.table+
				" WHERE span_s = 60 GROUP BY start - start % 300000000, "+sum.key)
			change(t, d, "INSERT INTO "+sum.table+" SELECT 3600, start - start % 3600000000, "+sum.key+", "+sum.columns+" FROM "+sum.table+
				" WHERE span_s = 60 GROUP BY start - start % 3600000000, "+sum.key)
		}
		if sum.table != "report_orders" {
			change(t, d, "DELETE FROM "+sum.table+" WHERE span_s = 60")
		}
		change(t, d, "INSERT INTO "+sum.table+" SELECT 86400, start - (start + ?) % 86400000000, "+sum.key+", "+sum.columns+" FROM "+
			sum.table+" WHERE span_s = 3600 GROUP BY start - (start + ?) % 86400000000, "+sum.key, int64(offset)*1_000_000,
			int64(offset)*1_000_000)
	}
}

func TestTheObjectiveIsTheConfiguredOne(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_NOTIFY_OBJECTIVE=90.5%")
	now := h.DB.Now()
	h.Put(t, figuresAt(now, func(x *report.Delta) {
		for i := range int64(200) {
			if x.Raised(now, "CNY", 1000); i > 0 {
				x.Notified(now-700_000, "CNY", 1000)
			}
		}
	}))
	page := strings.Join(strings.Fields(tagForm.ReplaceAllString(h.Page(t, h.SignIn(t, access.Viewer), "/analytics?lang=en").Body, " ")),
		" ")
	for _, want := range []string{"Objective 90.5%", "5% 1 of 19 orders"} { // 1 of the 19 that 9.5 % of 200 are
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// What the page says agrees with the rows that were counted.
func TestAnalyticsCountWhatHappened(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := h.DB.Now()
	yesterday := now - (26 * time.Hour).Microseconds()
	h.Put(t, figuresAt(yesterday, func(x *report.Delta) { x.Raised(yesterday, "CNY", 100) }))
	change(t, h.DB,
		"INSERT INTO report_failures (span_s, start, class, currency, attempts, orders, amount) VALUES (300, ?, 'refused', 'CNY', 7, 1, 1)",
		(now-(7*24+3)*3600_000_000)/300_000_000*300_000_000)
	h.Put(t, figuresAt(now, func(x *report.Delta) {
		for i := range int64(4) {
			x.Created(now, 1, 1, "CNY", 1000)
			if i < 3 {
				x.Paid(now, 1, 1, "CNY", 1000)
				x.Raised(now, "CNY", 1000)
			}
			if i < 2 {
				x.Notified(now-700_000, "CNY", 1000)
			}
		}
		x.Failure("timeout", "CNY", 1000, true)
		x.Failure("timeout", "CNY", 1000, false)
	}))
	for _, r := range analytics.Ranges {
		p, err := analytics.Read(t.Context(), h.DB, h.Config.Timezone, r)
		if err != nil {
			t.Fatal(err)
		}
		raised := map[bool]int64{true: 3, false: 4}[r.Name == "24h"]
		if p.Total.Raised != raised || p.Total.Notified != 2 || len(p.Currencies) != 1 || p.Currency != "CNY" {
			t.Errorf("%s: %+v", r.Name, p.Total)
		}
		if len(p.Causes) != 1 || p.Causes[0].Attempts != 2 || p.Causes[0].Orders != 1 || p.Causes[0].Sums[0].Minor != 1000 ||
			p.Causes[0].NewSince == 0 {
			t.Errorf("%s: %+v", r.Name, p.Causes)
		}
		if len(p.Merchants) != 1 || p.Merchants[0].Created != 4 || p.Merchants[0].Paid != 3 || p.Merchants[0].Code != "m1" ||
			len(p.Suppliers) != 1 {
			t.Errorf("%s: %+v", r.Name, p.Merchants)
		}
		var before int64
		for _, n := range p.FailedBefore {
			before += n
		}
		if want := map[bool]int64{true: 7}[r.Name == "24h"]; before != want { // longer ranges read hours and days
			t.Errorf("%s: %d failures a week before, want %d", r.Name, before, want)
		}
		var waited int64
		for _, w := range p.Waits {
			waited += w.Count()
		}
		if waited != 2 || len(p.Starts) != r.N || p.Starts[r.N-1] > now {
			t.Errorf("%s: %d waited, %v", r.Name, waited, p.Starts)
		}
	}
}

func figuresAt(at int64, add func(*report.Delta)) *report.Delta {
	x := report.NewDelta(at)
	add(x)
	return x
}

// A week before is compared up to the same moment of that week, and the page's figures have the
// tables that their CSV has.
func TestAnalyticsPageAndItsTables(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	past(t, h.DB, h.Config.Timezone, 36, 5)
	cookie := h.SignIn(t, access.Viewer)
	for _, r := range analytics.Ranges {
		got := h.Page(t, cookie, "/analytics?lang=en&range="+r.Name)
		if got.Status != http.StatusOK {
			t.Fatalf("%s: %d: %s", r.Name, got.Status, h.Logged())
		}
		if n, _ := h.transferred(t, cookie, "/analytics?range="+r.Name); n > laterVisit {
			t.Errorf("%s: %d bytes, at most %d", r.Name, n, laterVisit)
		} else {
			t.Logf("%s: %d bytes", r.Name, n)
		}
		for _, want := range []string{
			"The backlog reaches 1,000 at about", "orders within the next hour", "WAPE", "no answer in time",
			"Error budget spent",
		} {
			if !strings.Contains(got.Body, want) {
				t.Errorf("%s: the page does not say %q", r.Name, want)
			}
		}
		if inlineCode.MatchString(got.Body) || leakedKey(got.Body) != "" {
			t.Errorf("%s: %s", r.Name, inlineCode.FindString(got.Body)+leakedKey(got.Body))
		}
	}
	for _, figure := range []string{
		"notified", "waits", "curve", "causes", "suppliers", "merchants", "exceptions", "volume", "backlog",
		"rate",
	} {
		got := h.Page(t, cookie, "/analytics/"+figure+"?format=csv&range=7d&lang=en")
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(got.Body, "\ufeff"))).ReadAll()
		if err != nil || got.Status != http.StatusOK || len(rows) < 3 {
			t.Fatalf("%s: %d, %d rows, %v: %s", figure, got.Status, len(rows), err, h.Logged())
		}
		if !strings.Contains(rows[0][0], "range=7d") || len(rows[1]) != len(rows[2]) {
			t.Errorf("%s: %q", figure, rows[:2])
		}
	}
	// The tables and the values of the charts come when they are asked for: to a script as a part,
	// and by a plain link as a page with the table open.
	page := h.Page(t, cookie, "/analytics?lang=en&range=7d").Body
	for _, figure := range []string{
		"notified", "waits", "curve", "causes", "suppliers", "merchants", "exceptions", "volume", "backlog",
		"rate",
	} {
		link, table := "/analytics?range=7d&table="+figure, `<details class="as-table" open><summary id="`+figure+`-table">`
		if !strings.Contains(html.UnescapeString(page), `href="`+link+"#"+figure+`-title"`) || strings.Contains(page, table) {
			t.Errorf("%s: the page has no link to its table, or the table itself", figure)
		}
		if got := h.Page(t, cookie, link); strings.Count(got.Body, table) != 1 {
			t.Errorf("%s is not open at %s", figure, link)
		}
		if got := h.fragment(t, cookie, "/analytics/"+figure+"/_table?range=7d"); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, table) || strings.Contains(got.Body, "<html") {
			t.Errorf("%s: %d, %s", figure, got.Status, got.Body)
		}
		if got := h.Page(t, cookie, "/analytics/"+figure+"/_table?range=7d"); got.Status != http.StatusSeeOther ||
			got.Header.Get("Location") != link+"#"+figure+"-title" {
			t.Errorf("%s without a script: %d to %s", figure, got.Status, got.Header.Get("Location"))
		}
	}
	for _, chart := range []string{"notified", "waits", "heat", "causes", "volume", "backlog", "rate"} {
		path := "/analytics/" + chart + "/_chart?range=7d"
		if !strings.Contains(page, `hx-get="`+path+`"`) {
			t.Errorf("%s does not load its values", chart)
		}
		if got := h.fragment(t, cookie, path); got.Status != http.StatusOK || strings.Count(got.Body, `class="spot"`) < 30 ||
			strings.Contains(got.Body, "hx-get") {
			t.Errorf("%s: %d, %s", chart, got.Status, got.Body)
		}
		if got := h.Page(t, cookie, path); got.Status != http.StatusSeeOther {
			t.Errorf("%s without a script: %d", chart, got.Status)
		}
	}
	for _, path := range []string{"/analytics/nothing?format=csv", "/analytics/nothing/_table", "/analytics/nothing/_chart"} {
		if got := h.Page(t, cookie, path); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if got := h.Page(t, cookie, "/analytics/notified?range=7d"); got.Status != http.StatusSeeOther {
		t.Errorf("without a format: %d", got.Status)
	}
	if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action = 'list.export' AND object_id LIKE 'analytics-%'"); n != 10 {
		t.Errorf("%d exports in the audit", n)
	}
}

// TestAnalyticsInABrowser looks at the page with and without data in both languages and themes,
// wide and narrow.
func TestAnalyticsInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	said.take()
	look := func(name, path string, width int64) {
		t.Helper()
		var at struct {
			Theme, Language string
			Overflow        int
			Violations      []string
		}
		run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false), chromedp.Navigate(base+path), chromedp.WaitReady("main"),
			chromedp.Evaluate(examine, &at))
		at.Violations = append(at.Violations, violations(t, ctx)...)
		if at.Overflow > 0 || len(at.Violations) > 0 {
			t.Errorf("%s at %d: %+v", name, width, at)
		}
		if *screenshots != "" {
			height := int64(2000)
			if width < 700 {
				height = 4400
			}
			run(t, ctx, emulation.SetDeviceMetricsOverride(width, height, 1, false))
			takeScreenshot(t, ctx, name)
		}
	}
	look("analytics-empty", "/analytics?range=7d", 1440)
	past(t, h.DB, h.Config.Timezone, 36, 9)
	h.walk(t, access.Admin, "main", namedPage{name: "analytics", path: "/analytics?range=24h"})
	run(t, ctx, reads(base, "en", "dark"))
	for _, r := range analytics.Ranges[1:] {
		look("analytics-"+r.Name, "/analytics?range="+r.Name, 1280)
	}
	// By keyboard: the definition and the table behind a figure open.
	run(t, ctx, presses("#main .figure-foot summary", "\r", ".figure-foot details[open] p"),
		chromedp.WaitVisible(".figure-foot details[open] p"))
	run(t, ctx, presses("#notified-table", "\r", ".figure-foot details[open] > summary#notified-table"),
		chromedp.WaitVisible(".figure-foot details[open] > summary#notified-table:focus + .table-wrap"))
	// Its columns say their values by the arrow keys, and under the pointer.
	run(t, ctx, chromedp.Focus("#notified-chart"), chromedp.WaitVisible("#notified-chart:focus .spot", chromedp.ByQuery),
		chromedp.KeyEvent(kb.ArrowLeft), becomes(`document.querySelector(".tip")?.textContent.includes("by orders")`))
	var at struct{ X, Y float64 }
	run(t, ctx, chromedp.Evaluate(`document.querySelector("#causes-chart").scrollIntoView({ block: "center", behavior: "instant" })`, nil),
		chromedp.Evaluate(`(r => ({ X: r.right - 30, Y: r.top + 40 }))(document.querySelector("#causes-chart").getBoundingClientRect())`,
			&at))
	run(t, ctx, chromedp.MouseEvent(input.MouseMoved, at.X, at.Y), becomes(`!!document.querySelector("#causes-chart .spot")`),
		chromedp.MouseEvent(input.MouseMoved, at.X-30, at.Y),
		becomes(`document.querySelector(".tip")?.textContent.includes("failed attempts")`))
	if left := violations(t, ctx); len(left) > 0 {
		t.Errorf("with a table open: %v", left)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("the browser said: %s", strings.Join(all, "; "))
		for _, line := range strings.Split(h.Logged(), "\n") {
			if strings.Contains(line, `"ERROR"`) {
				t.Log(line)
			}
		}
	}
}
