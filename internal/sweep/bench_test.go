package sweep

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

var (
	benchRows = flag.Int("sweep.rows", 1_000_000, "orders of BenchmarkSweep, of which a twentieth is lost")
	benchRate = flag.Int("sweep.rate", 200, "rows per second that BenchmarkSweep pushes at most")
	benchLive = flag.Int("sweep.live", 50, "callbacks per second beside BenchmarkSweep")
)

// liveBase is how long callbacks are measured before the sweep.
const liveBase = 20 * time.Second

// BenchmarkSweep looks at a million orders of which a twentieth is past its time and due never,
// while callbacks come in, on both engines. Wanted: the callbacks' p99 at most twice that before
// the sweep, Redis at most 20 MB, and the end within ten minutes:
//
//	go test ./internal/sweep -run xxx -bench Sweep -benchtime 1x -timeout 60m
func BenchmarkSweep(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) { benchSweep(b, open(b)) })
	}
}

func benchSweep(b *testing.B, d *db.DB) {
	redis := queuetest.Start(b)
	f := &fixture{t: b, Fixture: paymenttest.New(b, d, paymenttest.Options{
		Fakes: paymenttest.NewFakes("f1", "f2"), Steps: steps, URL: "http://127.0.0.1:1/n",
		Tasks: queue.New(redis.Client(), queue.Config{}),
	})}
	const chunk = 100_000
	now := d.Now()
	first := db.IDAt(now - hour)
	for from := 0; from < *benchRows; from += chunk {
		f.exec("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
			" WITH RECURSIVE n (i) AS (SELECT CAST(? AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?)"+
			" SELECT ? + i, 'B' || i, ?, 'B' || i, ?, 1999, 'CNY', 2, 'tea', 'd', 'pending', 1, ?, CASE WHEN i % 20 = 0 THEN ? ELSE ? END, CASE WHEN i % 20 = 0 THEN NULL ELSE ? END FROM n",
			from, min(from+chunk, *benchRows)-1, first, f.M1.ID, f.Supplier.ID, now-hour, now-hour/2, now+24*hour, now+24*hour)
	}
	f.exec("ANALYZE orders")
	f.r = f.runner(*benchRate)
	b.ResetTimer()
	for range b.N {
		base := f.callbacks(func() { time.Sleep(liveBase) }) // so long without a sweep
		s := f.begin()
		begun := time.Now()
		var took time.Duration
		live := f.callbacks(func() {
			if err := f.r.Continue(b.Context()); err != nil {
				b.Fatal(err)
			}
			took = time.Since(begun)
		})
		if s = f.find(s); s.PushedRows() != int64(*benchRows)/20 {
			b.Fatalf("pushed %v of %d rows", s.Pushed(), *benchRows)
		}
		memory := float64(redis.Memory()) / (1 << 20)
		b.ReportMetric(float64(s.LookedAt)/took.Seconds(), "looked_at/s")
		b.ReportMetric(float64(s.PushedRows())/took.Seconds(), "pushed/s")
		b.ReportMetric(took.Seconds(), "s/sweep")
		b.ReportMetric(ms(base), "base_p99_ms")
		b.ReportMetric(ms(live), "live_p99_ms")
		b.ReportMetric(float64(live)/float64(base), "p99_ratio")
		b.ReportMetric(memory, "redis_MB")
		b.Logf("%s: %d rows, %d pushed in %s (≤ 10 min); p99 %s before, %s meanwhile (≤ 2 ×); Redis %.1f MB (≤ 20)",
			d.Engine(), s.LookedAt, s.PushedRows(), took.Round(time.Second), base.Round(time.Microsecond), live.Round(time.Microsecond),
			memory)
		f.exec("UPDATE orders SET next_at = NULL WHERE order_no LIKE 'B%' AND expires_at < ?", now)
	}
}

// callbacks has payments confirmed at an even rate while f runs, and returns the time that 99 of
// 100 took at most.
func (f *fixture) callbacks(during func()) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	took := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		tick := time.NewTicker(time.Second / time.Duration(*benchLive))
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			o, _, err := f.Processor.Create(context.Background(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 1999,
				Currency: "CNY", Supplier: "sp-main", Subject: "tea",
			})
			if err != nil {
				f.t.Error(err)
				break
			}
			begun := time.Now()
			if _, err := f.Processor.Submit(context.Background(), f.Callback(o.OrderNo, "T-"+o.OrderNo, o.Amount)); err != nil {
				f.t.Error(err)
				break
			}
			all = append(all, time.Since(begun))
		}
		took <- all
	}()
	during()
	cancel()
	all := <-took
	if len(all) == 0 {
		f.t.Fatal("no callback arrived")
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
