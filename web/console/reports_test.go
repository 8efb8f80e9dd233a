package console

import (
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/analytics"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/dailyreport"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/views/figures"
)

// seedReports stores the reports of two days: a busy one with a stranger's texts, which was
// mailed, and a quiet one.
func seedReports(t *testing.T, d *db.DB) {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, zone)
	sums := []report.Sum{{Currency: "CNY", Orders: 7, Minor: 31_845_000}, {Currency: "JPY", Orders: 1, Minor: 500}}
	busy := dailyreport.Figures{
		From: start.UnixMicro(), To: start.AddDate(0, 0, 1).UnixMicro(), At: start.AddDate(0, 0, 1).Add(10 * time.Minute).UnixMicro(),
		Objective: 0.995,
		Notified:  analytics.Notified{Raised: 12_450, Notified: 12_301, RaisedAmount: 1, NotifiedAmount: 1},
		LastWeek:  analytics.Notified{Raised: 11_020, Notified: 11_000},
		Currencies: []analytics.Currency{
			{Code: "CNY", Notified: analytics.Notified{
				Raised: 12_440, Notified: 12_292, RaisedAmount: 987_654_321,
				NotifiedAmount: 975_000_000,
			}},
			{Code: "JPY", Notified: analytics.Notified{Raised: 10, Notified: 9, RaisedAmount: 5000, NotifiedAmount: 4500}},
		},
		Risk: &dailyreport.Risk{At: start.AddDate(0, 0, 1).UnixMicro(), Parts: map[report.Part][]report.Sum{
			report.Unnotified: sums,
			report.Mismatch:   sums[:1],
		}},
		RiskBefore: &dailyreport.Risk{At: start.UnixMicro(), Parts: map[report.Part][]report.Sum{report.Stuck: sums[1:]}},
		Decisions: []approval.Tally{
			{Action: "accept_late", State: approval.Done, Currency: "CNY", N: 3, Amount: 59_700},
			{Action: "refund", State: approval.Rejected, Currency: "CNY", N: 1, Amount: 1999},
		},
		Exceptions: []dailyreport.Exceptions{
			{Kind: exception.LatePayment, Opened: 5, LastWeek: 2, Closed: 4, Sums: sums[:1]},
			{Kind: exception.NotifyExhausted, Opened: 1, LastWeek: 3},
		},
		Suppliers: []dailyreport.Supplier{{Code: "wx", Created: 9000, Paid: 5400, Before: 8000, PaidBefore: 7300, Openings: 2}},
		Merchants: []dailyreport.Merchant{{
			Code: "m1", Name: "Galaxy <script>alert(1)</script><b>forged", Attempts: 4020, OK: 3100,
			Openings: 1,
		}},
		Growth: []dailyreport.Growth{
			{Kind: dailyreport.OfCause, Name: "timeout", N: 640, Before: 21, Sums: sums[:1]},
			{Kind: dailyreport.OfCause, Name: "tls", N: 9, FirstSince: start.Add(14 * time.Hour).UnixMicro()},
			{Kind: dailyreport.OfException, Name: exception.LatePayment, N: 5, Before: 2},
			{Kind: dailyreport.OfMerchant, Name: "m1", N: 4100, Before: 3000},
		},
	}
	quiet := dailyreport.Figures{From: start.AddDate(0, 0, -1).UnixMicro(), To: start.UnixMicro(), At: start.UnixMicro(), Objective: 0.995}
	now := d.Now()
	mail := &alert.Message{
		ID: d.NewID(), Target: "smtp-0a1b2c", Title: "t", Body: "b", HTML: "<p>", Status: alert.Sent, Attempts: 1,
		CreatedAt: now, FinishedAt: &now,
	}
	rows := []*dailyreport.Report{
		{ID: d.NewID(), Day: "2026-11-19", Zone: zone.String(), Figures: quiet, MadeAt: quiet.At},
		{ID: d.NewID(), Day: "2026-11-20", Zone: zone.String(), Figures: busy, MadeAt: busy.At, Mails: dailyreport.IDs([]int64{mail.ID})},
	}
	for _, row := range []any{mail, &rows} {
		if _, err := d.NewInsert().Model(row).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReportsAreListedExportedAndShown(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seedReports(t, d)
		cookie := h.SignIn(t, access.Viewer)
		list := h.Page(t, cookie, "/reports?lang=en").Body
		if a, b := strings.Index(list, "/reports/2026-11-20"), strings.Index(list, "/reports/2026-11-19"); a < 0 || b < a {
			t.Errorf("the newest report is not first: %d, %d", a, b)
		}
		rows := cells(t, h.Page(t, cookie, "/reports?format=csv&lang=en").Body)
		all := map[string]string{}
		for i, head := range rows[1] {
			all[head] = rows[2][i]
		}
		for head, want := range map[string]string{
			"Day": "2026-11-20", "To notify": "12450", "Notified": "12301", "Notified rate": "0.988032",
			"Orders at risk at the day's end": "15",
			"At risk at the day's end":        "636900.00 CNY; 500 JPY", "Decisions": "4", "Failing suppliers": "1",
			"Failing merchants": "1",
		} {
			if all[head] != want {
				t.Errorf("exported %s: %q, want %q", head, all[head], want)
			}
		}
		page := strings.Join(strings.Fields(tagForm.ReplaceAllString(h.Page(t, cookie, "/reports/2026-11-20?lang=en").Body, " ")), " ")
		for _, want := range []string{
			"12,301 of 12,450 orders; a week before: 99.82%", "239% Objective 99.5%", "¥636,900.00 CNY · ¥500 JPY",
			"orders: 15; the day before: ¥500 JPY",
			"wx 9,000 60.00% 91.25% 2", "4,020 77.11% 1", "new since 14:00", "smtp-0a1b2c Sent", "(m1)",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the report does not say %q", want)
			}
		}
		if strings.Contains(page, "Changed since") {
			t.Error("figures that are no longer kept count as a change")
		}
		// Later notifications change nothing but one sentence.
		var r dailyreport.Report
		if err := d.Read.NewSelect().Model(&r).Where("day = '2026-11-20'").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		change(t, d,
			"INSERT INTO report_orders (span_s, start, currency, raised, raised_amount, notified, notified_amount) VALUES (86400, ?, 'CNY', 12450, 1, 12400, 1)", r.Figures.From)
		page = h.Page(t, cookie, "/reports/2026-11-20?lang=en").Body
		if !strings.Contains(page, "Changed since: 12,400 of 12,450 orders are notified by now (99.60%)") ||
			!strings.Contains(page, "12,301 of 12,450") {
			t.Error("the page does not say what has changed since")
		}
		for path, want := range map[string]int{
			"/reports/2026-11-18": 404, "/reports/today": 404, "/reports/2026-11-20?zone=UTC": 404,
			"/reports/2026-11-20?zone=Asia/Shanghai": 200,
		} {
			if got := h.Page(t, cookie, path); got.Status != want {
				t.Errorf("%s: %d, want %d", path, got.Status, want)
			}
		}
	})
}

// The mail says what the page says, in both of its forms, and loads nothing.
func TestTheMailOfAReportSaysTheSame(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	seedReports(t, d)
	r, err := dailyreport.Find(t.Context(), d.Read, "2026-11-20", "")
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		t.Fatal(err)
	}
	for language, words := range map[string][]string{
		"en": {"Backstop daily report · 2026-11-20", "Payments without a matching order", "new since 14:00"},
		"zh": {"Backstop 日报 · 2026-11-20", "异常款待处理", "新增 · 14:00 起"},
	} {
		m, err := figures.DailyMessage(t.Context(), r, language, zone, "https://desk.example/")
		if err != nil || m.Title != words[0] {
			t.Fatalf("%q, %v", m.Title, err)
		}
		plain := strings.Join(strings.Fields(tagForm.ReplaceAllString(m.HTML, " ")), " ")
		for _, want := range append(words, "12,301", "¥636,900.00 CNY", "¥9,876,543.21 CNY", "60.00%",
			"https://desk.example/reports/2026-11-20?zone=Asia%2FShanghai") {
			if !strings.Contains(m.Text, want) || !strings.Contains(plain, want) && !strings.Contains(m.HTML, want) {
				t.Errorf("%s: %q is in the text %t, in the HTML %t", language, want, strings.Contains(m.Text, want),
					strings.Contains(m.HTML, want))
			}
		}
		for _, bad := range []string{"<img", "src=", "<link", "url(", "<script>alert", "<b>forged", "%!"} {
			if strings.Contains(m.HTML, bad) {
				t.Errorf("%s: the mail has %q", language, bad)
			}
		}
		if language == "en" && (han.MatchString(m.HTML) || han.MatchString(m.Text)) {
			t.Error("the English mail has Chinese words")
		}
	}
}
