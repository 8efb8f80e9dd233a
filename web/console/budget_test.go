package console

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
)

var (
	budgetRows = flag.Int("rows", 0, "orders for TestBudget, each with five attempts; 0 = it is skipped")
	budgetDesk = flag.Int("desk", 0,
		"exceptions for TestBudget, half of which are open, and a tenth as many proposals, batches and rows of one batch")
	budgetDB = flag.String("budget-db", "sqlite,postgres", "databases for TestBudget")
)

const (
	budgetDays = 7  // over which the orders are spread
	budgetAsk  = 40 // requests of each page
)

// filling are the statements that write a chunk of orders and what belongs to
// them: ?0 is the first number, ?1 the last, ?2 the smallest id, ?3 the distance
// of two orders' ids, ?4 the first moment and ?5 the distance in time, µs.
var filling = []string{
	"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, supplier_trade_no, paid_amount, created_at, expires_at, next_at, paid_at)" +
		" SELECT id, CAST(id AS TEXT), 1 + i % 50, 'T' || i, 1 + i % 3, 1000 + i % 90000, CASE WHEN i % 20 = 0 THEN 'USD' ELSE 'CNY' END, 2, 'Order ' || i, ''," +
		" CASE WHEN i % 100 < 90 THEN 'paid' WHEN i % 100 < 94 THEN 'closed' WHEN i % 100 < 96 THEN 'failed' WHEN i % 100 < 99 THEN 'pending' ELSE 'paying' END, 2," +
		" CASE WHEN i % 100 < 90 THEN 'S' || i ELSE '' END, CASE WHEN i % 100 < 90 THEN 1000 + i % 90000 ELSE 0 END, at, at + 1800000000," +
		" CASE WHEN i % 1000 = 999 THEN at ELSE NULL END, CASE WHEN i % 100 < 90 THEN at ELSE NULL END FROM o",
	"INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) SELECT id + 2, 1 + i % 50, id, 'order.paid', 2, '{}', at FROM o WHERE i % 100 < 96",
	"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, next_at, last_class, created_at, currency, amount)" +
		" SELECT id + 1, id + 2, 1 + i % 50, id, 'order.paid', 'webhook', '', CASE WHEN i % 100 = 7 THEN 'exhausted' WHEN i % 500 = 8 THEN 'retry_wait' ELSE 'delivered' END," +
		" 5, CASE WHEN i % 500 = 8 THEN at + 86400000000 * 30 ELSE NULL END, 'ok', at, 'CNY', 1000 + i % 90000 FROM o WHERE i % 100 < 96",
	"INSERT INTO notify_attempts (id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error)" +
		" SELECT id + 10 + k, id + 1, 1 + i % 50, k, 'https://merchant.example/notify', 'ok', 200, at + k, 80000, 'n1', 'Webhook-Id: ntf_x', 'Server: nginx', '', ''" +
		" FROM o CROSS JOIN (SELECT 1 AS k UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) AS ks",
	"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
		" SELECT id + 3, 1 + i % 3, id, CAST(id AS TEXT), 'S' || i, 'e', 'd', CASE WHEN i % 2000 = 0 THEN 'late_payment' ELSE 'paid' END, at, '101.226.103.61', 'POST', '', 'Content-Type: application/json', '{}'," +
		" 'signature\t0\t\tRSA-SHA256' FROM o WHERE i % 100 < 90",
	"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
		` SELECT id + 5, 's1', 'bad_signature', at, '203.0.113.9', 'POST', '', '', '', '' FROM o WHERE i % 100 = 50`,
	"INSERT INTO payment_attempts (id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at)" +
		" SELECT id + 4, id, 1, 'R' || i, 'S' || i, 'succeeded', 1000, at, at FROM o WHERE i % 100 < 90",
	"INSERT INTO exceptions (id, kind, state, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)" +
		" SELECT id + 6, CASE WHEN i % 2000 = 7 THEN 'notify_exhausted' ELSE 'late_payment' END, CASE WHEN i % 2000 < 1000 THEN 'open' ELSE 'resolved' END, 1 + i % 50, id, CAST(id AS TEXT), 'x', 1000, 'CNY', '{}', at, at" +
		" FROM o WHERE i % 1000 = 7",
}

// fillWith writes so many orders by some of the statements of filling.
func fillWith(t *testing.T, d *db.DB, rows int, statements []string) {
	t.Helper()
	const chunk = 50_000
	now := d.Now()
	from := now - budgetDays*24*3600*1_000_000
	gap := (now - from) / int64(rows)
	first, step := db.IDAt(from), (db.IDAt(now)-db.IDAt(from))/int64(rows)
	for i := 0; i < rows; i += chunk {
		for _, statement := range statements {
			query := "WITH RECURSIVE n(i) AS (SELECT CAST(?0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?1), o AS (SELECT i, ?2 + i * ?3 AS id, ?4 + i * ?5 AS at FROM n) " + statement
			change(t, d, query, i, min(i+chunk, rows)-1, first, step, from, gap)
		}
	}
}

// fill writes so many orders, spread over the last days, by set-based SQL.
func fill(t *testing.T, d *db.DB, rows int) {
	t.Helper()
	now, start := d.Now(), time.Now()
	fillWith(t, d, rows, filling)
	change(t, d, "UPDATE settings SET value = ? WHERE name = 'claims_checked'", db.IDAt(now-2*60*1_000_000)) // as the dispatcher keeps it
	minutes := func(table string, unit time.Duration, spans int) {
		change(t, d,
			"WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?), m(j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM m WHERE j < 50)"+
				" INSERT INTO "+table+
				" (recipient_id, start, ok, retried, failed, took_us, took, lag) SELECT j, ? - i * ?, 100, 5, 1, 8000000, '0 0 10 60 30 6', '10 60 30 6' FROM n CROSS JOIN m",
			spans, now-now%unit.Microseconds(), unit.Microseconds())
	}
	minutes("report_minutes", time.Minute, 72*60)
	minutes("report_hours", time.Hour, budgetDays*24)
	change(t, d,
		"WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?), m(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM m WHERE j < 3)"+
			" INSERT INTO report_callbacks (start, supplier_id, outcome, n) SELECT ? - i * 60000000, j, 'paid', 100 FROM n CROSS JOIN m",
		72*60,
		now-now%60_000_000)
	change(t, d,
		"INSERT INTO report_suppliers (supplier_id, start, outcome, n) SELECT supplier_id, start - start % 300000000, outcome, sum(n) FROM report_callbacks GROUP BY 1, 2, 3")
	change(t, d,
		"WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?), m(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM m WHERE j < 3), b(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM b WHERE k < 9)"+
			" INSERT INTO report_calls (supplier_id, start, op, class, bucket, n) SELECT j, ? - i * 300000000, 'query', CASE WHEN k = 9 THEN 'timeout' ELSE 'ok' END, k, 100 FROM n CROSS JOIN m CROSS JOIN b", 72*12, now-now%300_000_000)
	analyze(t, d, "report_suppliers report_calls")
	analyze(t, d,
		"orders events deliveries notify_attempts callbacks refused_callbacks payment_attempts exceptions report_minutes report_hours report_callbacks")
	past(t, d, time.UTC, 36, 50)
	analyze(t, d, "report_orders report_waits report_failures report_volume")
	t.Logf("%s: %d orders in %s", d.Engine(), rows, time.Since(start).Round(time.Second))
}

// analyze has the planner know tables, named with spaces between.
func analyze(t *testing.T, d *db.DB, tables string) {
	t.Helper()
	for _, table := range strings.Fields(tables) {
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			if d.IsPostgres() { // the server's own ANALYZE may be at it
				if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '60s'"); err != nil {
					return err
				}
			}
			_, err := tx.ExecContext(ctx, "ANALYZE "+table)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// deskRows are the statements that fill the desk: ?0 is the number of rows, ?1 the smallest id
// and ?2 the distance of two.
var deskRows = []string{
	"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at, assignee)" +
		" SELECT id, CASE i % 5 WHEN 0 THEN 'notify_exhausted' WHEN 1 THEN 'compensation_dead' WHEN 2 THEN 'late_payment' WHEN 3 THEN 'unknown_order' ELSE 'amount_mismatch' END," +
		" CASE WHEN i % 20 < 10 THEN 'resolved' WHEN i % 1000 = 11 THEN 'failed' WHEN i % 20 = 12 THEN 'assigned' WHEN i % 100 = 13 THEN 'proposed' WHEN i % 5000 = 14 THEN 'ignored' ELSE 'open' END," +
		" CASE WHEN i % 5 < 2 THEN 0 ELSE 1 + i % 3 END, 1 + i % 50, id, 'D' || i, CAST(id AS TEXT), 1000 + i % 90000, CASE WHEN i % 20 = 0 THEN 'USD' ELSE 'CNY' END," +
		` '{"type":"order.paid","attempts":12,"last_class":"timeout","last_error":"no answer within 10 s"}', ?3, ?3, CASE WHEN i % 20 = 12 THEN 'op' || i % 9 ELSE '' END FROM o`,
	"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, payload, state, max_attempts, made_by, opened_at)" +
		" SELECT id, 'rerun', 'supplier_timeout', 'order', id, 'D' || i, 1 + i % 50, 1 + i % 3, 1 + i % 3, 1000, 'CNY', '{}', 'dead', 10, 'test', ?3 FROM o WHERE i % 5 = 1",
	"INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params, reason, evidence, hash, maker, checker, state, made_at, expires_at)" +
		" SELECT id, CASE WHEN i % 40 = 0 THEN 'attach' ELSE 'accept_late' END, 'exception', CAST(id AS TEXT), 'D' || i, 1, 1000, 'CNY', '{}', 'because of a test', '', 'h', 1 + i % 30, 50," +
		" CASE WHEN i % 1000 = 0 THEN 'waiting' WHEN i % 500 = 10 THEN 'rejected' ELSE 'done' END, ?3, ?3 FROM o WHERE i % 10 = 0",
	"INSERT INTO batches (id, action, object, filter, max_id, made_by, made_at, expires_at, state, row_count, to_do, planned, rate)" +
		` SELECT id, 'resend', 'delivery', '', 0, 'operator:li', ?3, ?3, 'done', 100, 100, '{"will_run":[{"Currency":"CNY","Orders":100,"Minor":1000}]}', 100 FROM o WHERE i % 10 = 0`,
	"INSERT INTO batch_rows (batch_id, number, object, object_id, order_no, state, outcome, cause, amount, currency, at)" +
		" SELECT 7, 1 + i / 10, 'delivery', id, 'D' || i, CASE WHEN i % 500 = 0 THEN 'failed' ELSE 'done' END, 'will_run', CASE WHEN i % 500 = 0 THEN 'supplier_timeout' ELSE '' END, 1000, 'CNY', ?3 FROM o WHERE i % 10 = 0",
}

// fillDesk writes so many exceptions over the last days, and what stands beside them.
func fillDesk(t *testing.T, d *db.DB, rows int) {
	t.Helper()
	const chunk = 100_000
	now, start := d.Now(), time.Now()
	from := now - budgetDays*24*3600*1_000_000
	first, step := db.IDAt(from)+7, (db.IDAt(now)-db.IDAt(from))/int64(rows)
	for i := 0; i < rows; i += chunk {
		for _, statement := range deskRows {
			query := "WITH RECURSIVE n(i) AS (SELECT CAST(?4 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?0), o AS (SELECT i, ?1 + i * ?2 AS id FROM n) " + statement
			change(t, d, query, min(i+chunk, rows)-1, first, step, now, i)
		}
	}
	change(t, d,
		"INSERT INTO batches (id, action, object, filter, max_id, made_by, made_at, expires_at, state, row_count, to_do, processed_to, planned, rate, started_at)"+
			` VALUES (7, 'resend', 'delivery', '', 0, 'operator:li', ?0, ?0, 'paused', ?1, ?1, ?1, '{"will_run":[{"Currency":"CNY","Orders":100,"Minor":1000}]}', 100, ?0)`, now, rows/10)
	analyze(t, d, "exceptions compensations approvals batches batch_rows")
	t.Logf("%s: %d exceptions in %s", d.Engine(), rows, time.Since(start).Round(time.Second))
}

// TestBudget measures every list at size against what pages may take, on both
// databases. It takes minutes, so that it runs only where -rows is given:
//
//	go test -run TestBudget -v -timeout 60m ./web/console -rows 1000000
//
// With -desk 1000000 it measures the lists of the desk instead, beside a few orders.
func TestBudget(t *testing.T) {
	if *budgetRows == 0 && *budgetDesk == 0 {
		t.Skip("neither -rows nor -desk is given")
	}
	for _, engine := range strings.Split(*budgetDB, ",") {
		t.Run(engine, func(t *testing.T) {
			d, budget := dbtest.SQLite, 100*time.Millisecond
			if engine == "postgres" {
				d, budget = dbtest.Postgres, 50*time.Millisecond
			}
			h := openOn(t, d(t))
			for i := range 50 {
				change(t, h.DB,
					"INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, 'Merchant', '[]', '{}', 0, 0) ON CONFLICT DO NOTHING", i+1, fmt.Sprint("m", i+1))
			}
			declareSupplier(t, h.DB)
			h.ReadSettings(t)
			fill(t, h.DB, cmp.Or(*budgetRows, 1000))
			cookie := h.SignIn(t, access.Ops)
			if *budgetDesk == 0 {
				h.measure(t, cookie, h.pages(t, cookie, budget))
				h.measure(t, h.SignIn(t, access.Lead), []page{{"/audit", budget}})
				return
			}
			fillDesk(t, h.DB, *budgetDesk)
			h.measure(t, cookie, deskPages(budget))
		})
	}
}

// page is a page and what it may take.
type page struct {
	path   string
	budget time.Duration
}

// pages are those of payments and what came of them.
func (h *harness) pages(t *testing.T, cookie string, budget time.Duration) []page {
	t.Helper()
	one := number(t, h.DB, "SELECT id FROM orders WHERE status = 'paid' AND id > (SELECT max(id) - 100000000000000 FROM orders) LIMIT 1")
	deep := "/orders"
	for range 20 {
		deep = links(h.Page(t, cookie, deep).Body)["next"]
	}
	return []page{
		{"/orders", budget},
		{deep, budget},
		{"/orders?status=paid", budget},
		{"/orders?status=failed&merchant=m45", budget},
		{"/orders?status=closing&window=7d", budget}, // there is none: all that one page may is looked at
		{"/orders?merchant=m7&supplier=wx&window=31d", budget},
		{"/orders?risk=stuck", budget},
		{fmt.Sprintf("/orders/%d", one), budget},
		{"/notifications", budget},
		{"/notifications?status=exhausted&window=7d", budget},
		{"/notifications?status=retry_wait&window=7d", budget},
		{"/notifications?merchant=m7&window=7d", budget},
		{"/notifications?risk=untold", budget},
		{"/notifications/" + notify.PublicID(one, "order.paid"), budget},
		{"/callbacks", budget},
		{"/callbacks?supplier=wx&window=7d", budget},
		{"/callbacks?outcome=late_payment&window=7d", budget},
		{fmt.Sprintf("/callbacks/%d", one+3), budget},
		{"/exceptions", budget},
		{"/exceptions?state=needs", budget},
		{"/exceptions?risk=compensated", budget},
		{"/exceptions?kind=late_payment&state=resolved", budget},
		{fmt.Sprintf("/search?q=%d", one), budget},
		{"/search?q=" + fmt.Sprint(one)[10:], budget},
		{"/search?q=S4242", budget},
		{"/suppliers", budget},
		{"/suppliers/quick", budget},
		{"/merchants", budget},
		{"/merchants/m7", budget},
		{"/reports", budget},
		{"/?matter=incident", budget},
		{"/queues", budget},
		{"/queues/notify", budget},
		{"/accounts", budget},
		{"/refunds", budget},
		{"/payouts", budget},
		{"/disputes", budget},
		{"/compensations", budget},
		{"/orders?status=paid&merchant=m7&window=31d", budget},
		{"/orders?status=paid&merchant=m7&supplier=quick&amount=" + url.QueryEscape(">100"), budget},
		{"/notifications?merchant=m7&cause=timeout&status=exhausted", budget},
		{"/", 20 * time.Millisecond},
		{"/analytics?range=24h", 100 * time.Millisecond},
		{"/analytics?range=7d", 100 * time.Millisecond},
		{"/analytics?range=30d", 100 * time.Millisecond},
		{"/analytics?range=400d", 100 * time.Millisecond},
		{"/analytics/notified?format=csv&range=24h", 100 * time.Millisecond}, // reads everything each time
	}
}

// deskPages are those of the desk.
func deskPages(budget time.Duration) (all []page) {
	for _, path := range []string{
		"/exceptions", "/exceptions?state=needs", "/exceptions?state=waiting", "/exceptions?state=resolved", "/exceptions?state=ignored",
		"/exceptions?state=failed",
		"/exceptions?kind=late_payment", "/exceptions?kind=late_payment&state=needs", "/exceptions?kind=late_payment&state=resolved",
		"/exceptions?kind=stuck_paying",
		"/exceptions?kind=late_payment&state=failed", "/exceptions?assignee=op3", "/exceptions?assignee=op3&state=needs",
		"/exceptions?assignee=op3&kind=late_payment&merchant=m7",
		"/exceptions?assignee=nobody", "/exceptions?merchant=m7", "/exceptions?merchant=m7&state=needs",
		"/exceptions?merchant=m7&state=resolved",
		"/exceptions?merchant=m7&kind=late_payment&state=needs", "/exceptions?merchant=m7&kind=stuck_paying&state=needs",
		"/exceptions?supplier=wx", "/exceptions?supplier=wx&state=needs",
		"/exceptions?kind=compensation_dead&supplier=wx", "/exceptions?kind=compensation_dead&cause=supplier_timeout",
		"/exceptions?kind=notify_exhausted&supplier=wx",
		"/exceptions?no=D4242", "/exceptions?risk=compensated",
		"/approvals", "/approvals?state=waiting", "/approvals?state=rejected", "/approvals?action=attach", "/approvals?maker=nobody",
		"/batches", "/batches?state=done", "/batches?maker=nobody",
		"/batches/bat_7", "/batches/bat_7?state=failed", "/batches/bat_7?cause=supplier_timeout", "/batches/bat_7?cause=poison",
		"/batches/bat_7?after=99000",
	} {
		all = append(all, page{path, budget})
	}
	return all
}

// measure asks for each page and writes how long 95 of 100 took at most.
func (h *harness) measure(t *testing.T, cookie string, pages []page) {
	t.Helper()
	for _, p := range pages {
		path := html.UnescapeString(p.path)
		h.Page(t, cookie, path) // warm
		var took []time.Duration
		for range budgetAsk {
			start := time.Now()
			got := h.Page(t, cookie, path)
			took = append(took, time.Since(start))
			if got.Status != http.StatusOK && got.Status != http.StatusSeeOther {
				t.Errorf("%s: %d", path, got.Status)
				break
			}
		}
		slices.Sort(took)
		p95 := took[len(took)*95/100]
		verdict := "met"
		if p95 > p.budget {
			verdict = "MISSED"
		}
		if i := strings.Index(path, "cursor="); i >= 0 {
			path = path[:i] + "cursor=…"
		}
		t.Logf("%-9s %-52s p50 %6.1f ms  p95 %6.1f ms  ≤ %3d ms  %s", h.DB.Engine(), path, ms(took[len(took)/2]), ms(p95),
			p.budget.Milliseconds(), verdict)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
