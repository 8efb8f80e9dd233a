package demo

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"backstop/internal/analytics"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/ledger"
	"backstop/internal/report"
	"backstop/internal/sweep"
	"backstop/internal/verify"

	"github.com/uptrace/bun"
)

// A demo begins with the figures of two weeks, for which a forecast is known, and with some of
// their orders; neither the recount nor a second start finds anything to add, and verify is
// content. A full run writes it on both engines.
func TestTheDemoHasAPast(t *testing.T) {
	t.Parallel()
	each := dbtest.Each
	if os.Getenv("E2E_FULL") != "1" {
		each = func(t *testing.T, test func(*testing.T, *db.DB)) { test(t, dbtest.Default(t)) }
	}
	each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		for i, s := range shopList() {
			if _, err := d.NewRaw(
				"INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, ?, '[]', '{}', ?, ?)", i+1, s.code, s.name, now, now).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (1, 'a')").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, kind := range []string{"sortedparams", "stripe"} {
			if _, err := d.NewRaw(
				"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (?, ?, ?, 1, TRUE, '[]', '{}', ?, ?)", i+1, codes[kind], kind, now, now).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		nights := func() []*sweep.Sweep {
			t.Helper()
			all, err := sweep.Nights(t.Context(), d.Read, 0)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		start := time.Now()
		n, err := History(t.Context(), d, time.UTC, map[string]string{})
		if err != nil || n < 14*288*historyRate/2 {
			t.Fatalf("figures of %d orders, %v", n, err)
		}
		pushed, differ, missed := int64(0), 0, 0
		for _, s := range nights() {
			pushed += s.PushedRows()
			differ += len(s.Differences())
			if s.State == sweep.Missed {
				missed++
			}
		}
		if n := len(nights()); n < historyNights-1 || pushed == 0 || differ != 1 || missed != 1 {
			t.Errorf("%d nights, %d rows pushed, %d differences, %d missed", n, pushed, differ, missed)
		}
		t.Logf("written in %s", time.Since(start).Round(time.Millisecond))
		for {
			folded, err := report.Fold(t.Context(), d, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			if folded == 0 {
				break
			}
		}
		t.Logf("folded after %s", time.Since(start).Round(time.Millisecond))
		e, err := analytics.Volume(t.Context(), d)
		if err != nil || e.Days < analytics.NeededDays {
			t.Errorf("a forecast from %d days, %v", e.Days, err)
		}
		// Today is an ordinary day, as busy as the demo goes on to be, and the page's own figures agree.
		if !e.Known || e.Level < 0.9 || e.Level > 1.1 || e.Ahead[0].Value < historyRate*0.6 || e.Ahead[0].Value > historyRate*1.2 {
			t.Errorf("known %v: level %.2f, %+v expected next", e.Known, e.Level, e.Ahead[:1])
		}
		if e.Inside < 0.8 || e.Error > 0.2 {
			t.Errorf("last week's error %.2f, %.2f within the band", e.Error, e.Inside)
		}
		for name, read := range map[string]func(context.Context, *db.DB, float64) (analytics.Outlook, error){
			"backlog":      analytics.Backlog,
			"success rate": analytics.SuccessRate,
		} {
			if o, err := read(t.Context(), d, 0.5); err != nil || !o.Known {
				t.Errorf("%s: a trend is known %v, %v", name, o.Known, err)
			}
		}
		page, err := analytics.Read(t.Context(), d, time.UTC, analytics.RangeOf("24h"))
		if err != nil {
			t.Fatal(err)
		}
		var paid, waited int64
		for _, f := range page.Merchants {
			paid += f.Paid
		}
		for _, h := range page.Waits {
			waited += h.Count()
		}
		if len(page.Currencies) != 2 {
			t.Errorf("amounts in %+v, want those of both suppliers", page.Currencies)
		}
		if share := float64(page.Total.Raised) / float64(paid); share < 0.9 || share > 1.1 || waited != page.Total.Notified {
			t.Errorf("%d orders paid, %d to notify, %d notified, %d waits", paid, page.Total.Raised, page.Total.Notified, waited)
		}
		points, err := report.Outcomes(t.Context(), d, 0, now-24*time.Hour.Microseconds(), now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range points[1 : len(points)-1] {
			if p.Attempts() == 0 {
				t.Errorf("the overview has no attempts in hour %d", i)
			}
		}
		// Behind every hour of figures some orders are stored, and all those that count as notified.
		book := ledger.New(d)
		for {
			folded, err := book.Fold(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if folded == 0 {
				break
			}
		}
		t.Logf("booked after %s", time.Since(start).Round(time.Millisecond))
		for _, p := range points[1 : len(points)-1] {
			for _, table := range []string{"orders", "callbacks", "deliveries", "account_lines"} {
				var n int
				if err := d.Read.NewRaw("SELECT count(*) FROM ? WHERE id >= ? AND id < ?", bun.Ident(table), db.IDAt(p.Start),
					db.IDAt(p.Start+time.Hour.Microseconds())).Scan(t.Context(), &n); err != nil || n == 0 {
					t.Errorf("%d %s in the hour from %s, %v", n, table, time.UnixMicro(p.Start).UTC(), err)
				}
			}
		}
		result, err := verify.Run(t.Context(), d, new(seal.Keyring), nil)
		if err != nil || !result.OK() {
			out := new(bytes.Buffer)
			_ = result.WriteText(out)
			t.Errorf("the books of the past: %v\n%s", err, out)
		}
		if wrong, err := report.RecountOrders(t.Context(), d, 30*24*time.Hour); err != nil || len(wrong) > 0 {
			t.Errorf("the recount finds %d differences, %v: %+v", len(wrong), err, wrong[:min(len(wrong), 3)])
		}
		if n, err := History(t.Context(), d, time.UTC, map[string]string{}); n != 0 || err != nil {
			t.Errorf("a second start writes figures of %d orders again, %v", n, err)
		}
	})
}
