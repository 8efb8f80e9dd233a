package console

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/recipient"
	"backstop/internal/settings"
)

// scans returns the lines of a statement's plan that scan a whole table.
func scans(t *testing.T, d *db.DB, query string) (found []string) {
	t.Helper()
	word := "SCAN "
	if d.IsPostgres() {
		word = "Seq Scan on "
	}
	for _, line := range dbtest.Plan(t, d, query) {
		// A scan in index order that ends at a limit reads only as much as requested; bounded
		// says which statements are of that kind.
		if _, rest, ok := strings.Cut(line, word); ok && !strings.Contains(rest, "USING") {
			found = append(found, rest)
		}
	}
	return found
}

// readWhole are tables that are small by nature: counters by merchant, processes, and SQLite's
// names for subqueries.
var readWhole = []string{"report_unnotified", "nodes", "w", "s", "CONSTANT", "(subquery", "rr"}

// TestTheMonitorNeverScans checks that every statement of the monitoring API uses its index.
func TestTheMonitorNeverScans(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		breakers := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} })
		if _, err := d.NewRaw("INSERT INTO breakers (owner_id, state, by_hand, updated_at) VALUES (2, 'open', TRUE, ?)",
			d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE nodes SET slow = '[3]'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := New(d, settings.NewStore(d, nil, nil, nil), breakers)
		seen := &dbtest.Statements{}
		dbtest.HookReads(d, seen)
		now := d.Now()
		day := list.Slice{From: now - 24*time.Hour.Microseconds(), To: now}
		insert := func(query string) {
			t.Helper()
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		insert("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm1', 'M', '[]', '{}', 0, 0)")
		insert("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)" +
			" VALUES (1, 'O1', 1, 'T1', 1, 1, 'CNY', 2, '', '', 'paid', 2, 0, 0)")
		insert("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at) VALUES (1, 1, 1, 1, 'order.paid', 'webhook', '', 'delivered', 0)")
		for _, q := range []list.Query{
			ask(AttemptList), ask(AttemptList, "order_no", "O1"), ask(AttemptList, "merchant", "m1"),
			ask(AttemptList, "class", "ok", "status", "200"),
		} {
			if _, err := b.Attempts(t.Context(), q, day); err != nil {
				t.Fatal(err)
			}
		}
		day.At.ID = db.IDAt(now)
		if _, err := b.Attempts(t.Context(), ask(AttemptList), day); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Realtime(t.Context(), func(context.Context) (map[string]queue.Size, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.MerchantStatuses(t.Context(), "", 0, 50); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		texts := seen.Texts
		for _, q := range texts {
			for _, table := range scans(t, d, q) {
				name, _, _ := strings.Cut(table, " ")
				if !slices.Contains(readWhole, name) {
					t.Errorf("%s\n\tscans %s", q, table)
				}
			}
		}
		if len(texts) < 15 {
			t.Errorf("only %d statements seen", len(texts))
		}
		if found := scans(t, d, "SELECT id FROM orders WHERE subject = 'x'"); len(found) == 0 {
			t.Error("a scan is not seen: the test cannot fail")
		}
	})
}

// TestEachRowStandsInOneLane: rows being sent belong to no queue; those of a merchant with an
// open breaker wait in the delayed lane and are not late; those of a merchant that another node
// lists as slow wait in the slow lane.
func TestEachRowStandsInOneLane(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		run := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, status := range []string{"sending", "sending", "queued", "retry_wait", "delivered"} {
			for merchant := range 3 {
				var next any = d.Now() - 1_000_000
				if status == "delivered" {
					next = nil
				}
				run("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at)"+
					" VALUES (?, 1, ?, 1, 'order.paid', 'webhook', '', ?, ?, 0)", 10*merchant+i+1, merchant+1, status, next)
			}
		}
		run("INSERT INTO breakers (owner_id, state, by_hand, updated_at) VALUES (2, 'open', TRUE, ?)", d.Now())
		run("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, slow) VALUES (9, 'x', 'other', 1, 1, ?, '[2,3]')",
			d.Now())
		breakers := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} })
		if err := breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		q, err := New(d, settings.NewStore(d, nil, nil, nil), breakers).Queues(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]int64{}
		for _, l := range q.Lanes {
			rows[l.Name] = l.Rows
			if late := l.Overdue > 0; late != (rows[l.Name] > 0 && l.Name != "notify_delayed") || l.More {
				t.Errorf("%s: %+v", l.Name, l)
			}
		}
		if q.InFlight != 4 || q.InFlightMore || q.Slow != 2 || rows["notify_slow"] != 2 || rows["notify"] != 1 ||
			rows["notify_retry"] != 1 || rows["notify_delayed"] != 4 {
			t.Errorf("in flight %d, lanes %v", q.InFlight, rows)
		}
	})
}
