package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// With a day of figures stored, the page's reads find their rows by an index and pass over few
// others: that, and not the speed of a machine, keeps them fast.
func TestReadsPassOverLittleBehindADayOfFigures(t *testing.T) {
	t.Parallel()
	const merchants = 10
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		for m := range 24 * 60 {
			x := NewDelta(now - int64(m)*minuteUS)
			for merchant := range int64(merchants) {
				x.Attempt(1+merchant, Result(rand.IntN(3)), time.Duration(rand.IntN(3000))*time.Millisecond)
			}
			x.Callback(1, "paid", 1)
			x.Raised(now-int64(m)*minuteUS, "CNY", 1)
			x.Raised(now-int64(m)*minuteUS, "USD", 1)
			put(t, d, x)
		}
		foldAll(t, d)
		// Waiting rows that were tried lie beside the few that were not.
		exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, next_at, created_at, currency, amount)"+
			" WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 5000)"+
			" SELECT n, n, 1, n, 'order.paid', 'webhook', '', 'retry_wait', CASE WHEN n <= 10 THEN 0 ELSE 1 END, 5, n, 'CNY', 1 FROM i")
		// Many orders become due within the next minute; one of them could not be closed.
		exec(t, d, "INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, close_tries, created_at, expires_at, next_at)"+
			" WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 5000)"+
			" SELECT n, CAST(n AS TEXT), 1, CAST(n AS TEXT), 1, 1, 'CNY', 2, '', '', CASE WHEN n = 7 THEN 'closing' ELSE 'paid' END, 1, CASE WHEN n = 7 THEN 1 ELSE 0 END, 0, 0, ?0 + n FROM i", now+30_000_000)
		exec(t, d, "ANALYZE")
		for name, c := range map[string]struct {
			most int // rows
			read func(d *db.DB) error
		}{
			"outcomes of a day": {24*60 + 30, func(d *db.DB) error {
				_, err := Outcomes(t.Context(), d, 0, now-24*60*minuteUS, now, 30*time.Minute)
				return err
			}},
			"outcomes of a week": {25, func(d *db.DB) error {
				_, err := Outcomes(t.Context(), d, 0, now-7*24*60*minuteUS, now, 4*time.Hour)
				return err
			}},
			"merchants": {62 * (1 + merchants), func(d *db.DB) error {
				_, err := Merchants(t.Context(), d, now-60*minuteUS, 12)
				return err
			}},
			"suppliers": {6, func(d *db.DB) error { _, err := Suppliers(t.Context(), d, now-5*minuteUS); return err }},
			"orders of a day": {2, func(d *db.DB) error {
				_, err := Orders(t.Context(), d, now-24*60*minuteUS, now, 30*time.Minute)
				return err
			}},
			"orders of a week": {2, func(d *db.DB) error {
				_, err := Orders(t.Context(), d, now-7*24*60*minuteUS, now, 4*time.Hour)
				return err
			}},
			"not tried": {1, func(d *db.DB) error { _, err := NotTried(t.Context(), d); return err }},
			"at risk":   {1, func(d *db.DB) error { _, err := AtRisk(t.Context(), d); return err }},
		} {
			t.Run(name, func(t *testing.T) {
				seen, plain := &dbtest.Statements{}, d.Read
				d.Read = plain.WithQueryHook(seen)
				err := c.read(d)
				d.Read = plain
				if err != nil {
					t.Fatal(err)
				}
				if len(seen.Texts) == 0 {
					t.Fatal("no statement seen")
				}
				for _, q := range seen.Texts {
					passesOver(t, d, q, c.most)
				}
			})
		}
	})
}

// passesOver fails where a query returns or passes over more rows than it may, or
// scans a table.
func passesOver(t *testing.T, d *db.DB, query string, most int) {
	t.Helper()
	query = strings.ReplaceAll(query, "?", "??")
	var rows int
	if err := d.Read.NewRaw("SELECT count(*) FROM ("+query+") AS x").Scan(t.Context(), &rows); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if rows > most {
		t.Errorf("%d rows, at most %d are needed: %s", rows, most, query)
	}
	for _, line := range plan(t, d, query) {
		var removed int
		if i := strings.Index(line, "Rows Removed by Filter: "); i >= 0 {
			if _, err := fmt.Sscanf(line[i:], "Rows Removed by Filter: %d", &removed); err != nil {
				t.Fatal(err)
			}
		}
		// The counter of unnotified money is read whole: it has one row a merchant and currency.
		// So is the index of what was never tried: it holds nothing else, and a limit ends it.
		scan := (strings.Contains(line, "Seq Scan") || strings.HasPrefix(line, "SCAN")) && !strings.Contains(line, "report_unnotified") &&
			!strings.Contains(line, "USING INDEX deliveries_untried")
		if removed > most || scan && !strings.HasPrefix(line, "SCAN w") {
			t.Errorf("%s\n\t%s", query, line)
		}
	}
}

// plan is how the database finds the rows of a query, line by line.
func plan(t *testing.T, d *db.DB, query string) (lines []string) {
	t.Helper()
	if d.IsPostgres() {
		if err := d.Read.NewRaw("EXPLAIN (ANALYZE, TIMING OFF) "+query).Scan(t.Context(), &lines); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return lines
	}
	return dbtest.Plan(t, d, query)
}
