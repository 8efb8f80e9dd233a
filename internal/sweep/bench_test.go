package sweep

import (
	"flag"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

var benchRows = flag.Int("sweep.rows", 1_000_000, "orders of BenchmarkSweep, of which a twentieth is lost")

// BenchmarkSweep looks at orders of which a twentieth is past its time and due never, without
// a limit of its rate: what it takes beyond pushed/BACKSTOP_SWEEP_RATE is the sweep's own.
func BenchmarkSweep(b *testing.B) {
	f := open(b, dbtest.Default(b))
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		f.exec("DELETE FROM orders")
		f.exec("DELETE FROM sweeps")
		now := f.DB.Now()
		first := db.IDAt(now - hour)
		f.exec("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
			" WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"+
			" SELECT ? + i, 'B' || i, ?, 'B' || i, ?, 1999, 'CNY', 2, 'tea', 'd', 'pending', 1, ?, CASE WHEN i % 20 = 0 THEN ? ELSE ? END, CASE WHEN i % 20 = 0 THEN NULL ELSE ? END FROM n",
			*benchRows-1, first, f.M1.ID, f.Supplier.ID, now-hour, now-hour/2, now+24*hour, now+24*hour)
		s := f.begin()
		f.r = f.runner(1_000_000)
		b.StartTimer()
		begun := time.Now()
		if err := f.r.Continue(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun).Seconds()
		if s = f.find(s); s.PushedRows() != int64(*benchRows)/20 {
			b.Fatalf("pushed %v of %d rows", s.Pushed(), *benchRows)
		}
		b.ReportMetric(float64(s.LookedAt)/took, "looked_at/s")
		b.ReportMetric(float64(s.PushedRows())/took, "pushed/s")
	}
}
