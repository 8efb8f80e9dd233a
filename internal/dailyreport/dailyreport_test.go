package dailyreport

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/analytics"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
)

func write(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// berlin has a day of 25 hours on 2026-10-25.
func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// seed writes the figures and rows of 2026-10-25 in the zone, of the same day a week before, and
// of the day after, which is not part of the report.
func seed(t *testing.T, d *db.DB, zone *time.Location) (day time.Time) {
	t.Helper()
	day = time.Date(2026, 10, 25, 0, 0, 0, 0, zone)
	before, after := day.AddDate(0, 0, -7), day.AddDate(0, 0, 1)
	dayAfter := before.AddDate(0, 0, 1) // it begins less than 168 hours before the day ends
	us := time.Time.UnixMicro
	write(t, d, "INSERT INTO supplier_accounts (id, name) VALUES (3, 's')")
	for id, code := range []string{"m1", "m2"} {
		write(t, d, "INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, ?, '[]', '{}', 0, 0)", id+1, code, "Mall <"+code+">")
		write(t, d, "INSERT INTO suppliers (id, account_id, code, kind, enabled, config, allow_ips, created_at, updated_at) VALUES (?, 3, ?, 'sortedparams', TRUE, '{}', '[]', 0, 0)", id+11, "s"+code)
	}
	for _, r := range []struct {
		at                                   time.Time
		raised, amount, notified, notifiedAm int64
	}{
		{before, 100, 100_000, 100, 100_000},
		{dayAfter, 5000, 5_000_000, 0, 0},
		{day, 200, 200_000, 190, 190_000},
		{after, 1000, 1_000_000, 1, 1},
	} {
		write(t, d, "INSERT INTO report_orders (span_s, start, currency, raised, raised_amount, notified, notified_amount) VALUES (86400, ?, 'CNY', ?, ?, ?, ?)", us(r.at), r.raised, r.amount, r.notified, r.notifiedAm)
	}
	for _, r := range []struct {
		at     time.Time
		class  string
		n, sum int64
	}{
		{before, "timeout", 5, 5000},
		{before, "tls", 9, 9000},
		{dayAfter, "timeout", 6000, 1},
		{day, "timeout", 30, 10_000},
		{day, "tls", 2, 2000},
		{after, "timeout", 700, 1},
	} {
		write(t, d, "INSERT INTO report_failures (span_s, start, class, currency, attempts, orders, amount) VALUES (86400, ?, ?, 'CNY', ?, ?, ?)", us(r.at), r.class, r.n, r.n/2, r.sum)
	}
	for _, r := range []struct {
		at                 time.Time
		merchant, supplier int64
		created, paid      int64
	}{
		{before, 1, 11, 100, 90},
		{before, 2, 12, 100, 90},
		{dayAfter, 1, 11, 7000, 0},
		{day, 1, 11, 150, 60},
		{day, 2, 12, 90, 80},
		{after, 1, 11, 999, 0},
	} {
		write(t, d, "INSERT INTO report_volume (span_s, start, merchant_id, supplier_id, currency, created, created_amount, paid, paid_amount) VALUES (86400, ?, ?, ?, 'CNY', ?, 0, ?, ?)",
			us(r.at), r.merchant, r.supplier, r.created, r.paid, r.paid*1000)
	}
	for hour := range 26 { // the day has 25; the last one is of the next day
		for merchant, ok := range map[int64]int64{0: 50, 1: 8, 2: 42} {
			write(t, d, "INSERT INTO report_hours (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (?, ?, ?, ?, 0, 0, '', '')",
				merchant, us(day.Add(time.Duration(hour)*time.Hour)), ok, map[int64]int64{0: 3, 1: 2, 2: 1}[merchant])
		}
	}
	for at, amount := range map[time.Time]int64{day: 500, after: 12_345} {
		write(t, d, "INSERT INTO report_risk (start, part, currency, orders, amount) VALUES (?, '', '', 0, 0), (?, 'untold', 'CNY', 7, ?), (?, 'stuck', 'JPY', 1, 3)", us(at), us(at), amount, us(at))
	}
	x := func(at time.Time, n int, kind, state string, ended *int64) {
		write(t, d, "INSERT INTO exceptions (id, kind, state, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at, resolved_at) VALUES (?, ?, ?, 1, 0, '', ?, 100, 'CNY', '{}', ?, ?, ?)",
			db.IDAt(us(at))+int64(n), kind, state, at.String()+kind+state, us(at), us(at), ended)
	}
	noon, tomorrow := us(day.Add(12*time.Hour)), us(after.Add(time.Hour))
	x(before.Add(time.Hour), 1, "late_payment", "open", nil)
	x(day.Add(time.Hour), 2, "late_payment", "resolved", &noon)
	x(day.Add(2*time.Hour), 3, "late_payment", "open", nil)
	x(day.Add(24*time.Hour+30*time.Minute), 4, "late_payment", "resolved", &tomorrow) // in the day's last hour
	x(after.Add(time.Minute), 5, "late_payment", "open", nil)
	for i, at := range []time.Time{day.Add(-time.Microsecond), day, after.Add(-time.Microsecond), after} {
		write(t, d, "INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params, reason, evidence, hash, maker, checker, state, made_at, expires_at, decided_at)"+
			" VALUES (?, 'accept_late', 'exception', ?, '', 1, 250, 'CNY', '{}', 'because', '', 'h', 1, 2, 'done', 0, 0, ?)", i+1, i,
			us(at))
	}
	write(t, d, "INSERT INTO breaker_history (id, owner_id, owner_kind, generation, from_state, to_state, cause, failures, actor, reason, at) VALUES"+
		" (?, 12, 'supplier', 1, 'closed', 'open', 'failures', 5, '', '', 0), (?, 12, 'supplier', 2, 'half_open', 'open', 'probe_failed', 5, '', '', 0)", db.IDAt(noon), db.IDAt(noon)+1)
	return day
}

func TestAReportCountsItsDay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		zone := berlin(t)
		day := seed(t, d, zone)
		f, err := Read(t.Context(), d, zone, day.UnixMicro(), 0.995)
		if err != nil {
			t.Fatal(err)
		}
		if f.From != day.UnixMicro() || f.To != day.AddDate(0, 0, 1).UnixMicro() || f.To-f.From != (25*time.Hour).Microseconds() {
			t.Errorf("the day is %d to %d", f.From, f.To)
		}
		if want := (analytics.Notified{Raised: 200, Notified: 190, RaisedAmount: 200_000, NotifiedAmount: 190_000}); f.Notified != want ||
			f.LastWeek.Raised != 100 || f.LastWeek.Notified != 100 {
			t.Errorf("notified %+v, a week before %+v", f.Notified, f.LastWeek)
		}
		if got := f.Risk.Total(); !slices.Equal(got, []report.Sum{
			{Currency: "CNY", Orders: 7, Minor: 12_345},
			{Currency: "JPY", Orders: 1, Minor: 3},
		}) || f.Risk.Orders() != 8 || f.RiskBefore.Total()[0].Minor != 500 {
			t.Errorf("at risk %+v, before %+v", f.Risk, f.RiskBefore)
		}
		if len(f.Decisions) != 1 || f.Decisions[0].N != 2 || f.Decisions[0].Amount != 500 || f.Decisions[0].Action != "accept_late" {
			t.Errorf("decided %+v", f.Decisions)
		}
		if len(f.Exceptions) != 1 || f.Exceptions[0].Opened != 3 || f.Exceptions[0].LastWeek != 1 || f.Exceptions[0].Closed != 1 ||
			f.Exceptions[0].Sums[0].Minor != 300 {
			t.Errorf("exceptions %+v", f.Exceptions)
		}
		// The share of sm1's orders fell from 90 % to 40 %; the breaker of sm2 opened.
		if len(f.Suppliers) != 2 || f.Suppliers[0] != (Supplier{"sm1", 150, 60, 100, 90, 0}) ||
			f.Suppliers[1] != (Supplier{"sm2", 90, 80, 100, 90, 1}) {
			t.Errorf("suppliers %+v", f.Suppliers)
		}
		if len(f.Merchants) != 1 || f.Merchants[0] != (Merchant{"m1", "Mall <m1>", 250, 200, 0}) {
			t.Errorf("merchants %+v", f.Merchants)
		}
		grew := map[string][2]int64{}
		for _, g := range f.Growth {
			grew[g.Kind+" "+g.Name] = [2]int64{g.N, g.Before}
		}
		for name, want := range map[string][2]int64{
			"cause timeout": {30, 5}, "exception late_payment": {3, 1}, "supplier sm1": {150, 100},
			"merchant m1": {150, 100},
		} {
			if grew[name] != want {
				t.Errorf("%s grew %v, want %v", name, grew[name], want)
			}
		}
		if len(grew) != 4 {
			t.Errorf("grew: %v", grew)
		}
	})
}

func keeper(d *db.DB, zone *time.Location, now time.Time, targets ...string) *Keeper {
	return &Keeper{
		DB: d, Zone: zone, Objective: 0.995, Log: slog.New(slog.DiscardHandler), Targets: targets,
		Compose: func(_ context.Context, r *Report) (Mail, error) {
			return Mail{"report " + r.Day, "text", "<p>html</p>"}, nil
		},
		now: now.UnixMicro,
	}
}

func stored(t *testing.T, d *db.DB) (days []string, mails []string) {
	t.Helper()
	var rows []*Report
	if err := d.Read.NewSelect().Model(&rows).OrderExpr("dr.day").Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		days = append(days, r.Day)
		all, err := r.Messages(t.Context(), d.Read)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			mails = append(mails, m.Target+" "+m.Title)
			if m.HTML != "<p>html</p>" || m.Body != "text" || m.Status != alert.Waiting {
				t.Errorf("mail %+v", m)
			}
		}
	}
	return days, mails
}

// A report is made once for each day, ten minutes after it; days without a server are made up for
// with one mail.
func TestADayIsReportedOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		zone := berlin(t)
		day := seed(t, d, zone) // figures begin a week before
		run := func(now time.Time, want bool) {
			t.Helper()
			if got, err := keeper(d, zone, now, "smtp-a", "smtp-b").Run(t.Context()); err != nil || got != want {
				t.Fatalf("at %s: mails %t, %v", now, got, err)
			}
		}
		run(day.AddDate(0, 0, -6).Add(9*time.Minute), false) // the first day may still change
		if days, _ := stored(t, d); len(days) != 0 {
			t.Fatalf("too early: %v", days)
		}
		run(day.AddDate(0, 0, -6).Add(10*time.Minute), true)
		run(day.AddDate(0, 0, -6).Add(11*time.Minute), false)
		if days, mails := stored(t, d); !slices.Equal(days, []string{"2026-10-18"}) ||
			!slices.Equal(mails, []string{"smtp-a report 2026-10-18", "smtp-b report 2026-10-18"}) {
			t.Fatalf("%v, %v", days, mails)
		}
		run(day.AddDate(0, 0, 1).Add(8*time.Hour), true) // after a week without a server
		run(day.AddDate(0, 0, 1).Add(9*time.Hour), false)
		days, mails := stored(t, d)
		if want := []string{
			"2026-10-18", "2026-10-19", "2026-10-20", "2026-10-21", "2026-10-22", "2026-10-23", "2026-10-24",
			"2026-10-25",
		}; !slices.Equal(days, want) {
			t.Errorf("days %v", days)
		}
		if len(mails) != 4 || mails[2] != "smtp-a report 2026-10-25" {
			t.Errorf("mails %v", mails)
		}
		write(t, d, "UPDATE report_orders SET notified = raised")
		run(day.AddDate(0, 0, 1).Add(10*time.Hour), false)
		r, err := Find(t.Context(), d.Read, "2026-10-25", "Europe/Berlin")
		if err != nil || r == nil || r.Figures.Notified.Notified != 190 || len(r.Figures.Suppliers) != 2 || r.Figures.Risk.Orders() != 8 {
			t.Errorf("the stored report has changed: %+v, %v", r, err)
		}
		if r, err := Find(t.Context(), d.Read, "2026-10-25", "Asia/Shanghai"); err != nil || r != nil {
			t.Errorf("of another zone: %+v, %v", r, err)
		}
	})
}

// A day without a midnight has a report of its own: clocks are put forward at the end of the day
// before it.
func TestADayWithoutMidnightIsReported(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, "INSERT INTO report_orders (span_s, start, currency, raised, raised_amount, notified, notified_amount) VALUES (86400, ?, 'CNY', 1, 1, 1, 1)",
		report.DayOf(time.Date(2026, 9, 4, 12, 0, 0, 0, zone).UnixMicro(), zone))
	for day, want := range map[int][]string{
		5: {"2026-09-04"}, 6: {"2026-09-04", "2026-09-05"},
		7: {"2026-09-04", "2026-09-05", "2026-09-06"}, 8: {"2026-09-04", "2026-09-05", "2026-09-06", "2026-09-07"},
	} {
		write(t, d, "DELETE FROM daily_reports")
		for at := 5; at <= day; at++ {
			if _, err := keeper(d, zone, time.Date(2026, 9, at, 8, 0, 0, 0, zone)).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if days, _ := stored(t, d); !slices.Equal(days, want) {
			t.Errorf("on the %dth: %v, want %v", day, days, want)
		}
	}
}

// Whoever stores a report first writes its mails; nobody else does.
func TestTwoNodesMakeOneReport(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		zone := berlin(t)
		day := seed(t, d, zone)
		k := keeper(d, zone, day.AddDate(0, 0, 1).Add(time.Hour), "smtp-a")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := k.make(t.Context(), day.UnixMicro(), true); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		days, mails := stored(t, d)
		if len(days) != 1 || len(mails) != 1 {
			t.Errorf("%v, %v", days, mails)
		}
		var n int
		if err := d.Read.NewRaw("SELECT count(*) FROM alert_messages").Scan(t.Context(), &n); err != nil || n != 1 {
			t.Errorf("%d mails, %v", n, err)
		}
	})
}
