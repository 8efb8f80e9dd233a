package compensation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
	"backstop/internal/base/work"

	"github.com/uptrace/bun"
)

// fill writes waiting items in a few lanes, and some dead ones.
func fill(t testing.TB, d *db.DB, n int) {
	t.Helper()
	const step = 50_000
	for from := 0; from < n; from += step {
		fillRange(t, d, from+1, min(n, from+step))
	}
	if _, err := d.NewRaw("ANALYZE compensations").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func fillRange(t testing.TB, d *db.DB, from, to int) {
	t.Helper()
	series := fmt.Sprintf("generate_series(%d, %d) AS s(n)", from, to)
	if !d.IsPostgres() {
		series = fmt.Sprintf("(WITH RECURSIVE c(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c) AS s", from,
			to)
	}
	now := d.Now()
	_, err := d.NewRaw(
		"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, state, max_attempts, next_at, made_by, opened_at)"+
			" SELECT n, 'rerun', 'supplier_timeout', 'order', n, 'O', 1, n % 5 + 1, n % 5 + 1, 100, 'CNY', CASE WHEN n % 1000 = 0 THEN 'dead' ELSE 'waiting' END, 10,"+
			" CASE WHEN n % 1000 = 0 THEN NULL ELSE ? + n END, 'test', ? FROM "+series, now-60_000_000, now).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// Queries that run every second, and for each claim, use an index and sort nothing, however
// many items wait.
func TestWhatRunsOftenGoesByAnIndex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fill(t, d, 20_000)
		seen, plain := new(dbtest.Statements), d.Read
		d.Read = plain.WithQueryHook(seen)
		s := &source{d}
		jobs, err := s.Due(t.Context(), 3, d.Now(), work.PageSize)
		if err == nil {
			_, _, err = DueLanes(t.Context(), d, 0, 10)
		}
		if err == nil {
			_, err = Waits(t.Context(), d, 1000)
		}
		d.Read = plain
		if err != nil || len(jobs) != work.PageSize || len(seen.Texts) < 3 {
			t.Fatalf("%d jobs, %d queries, %v", len(jobs), len(seen.Texts), err)
		}
		claim := d.QueryGen().FormatQuery(claimQuery, Running, 1, d.Now(), d.Now(), bun.List([]int64{1, 2, 3}), int64(1)<<62, d.Now())
		for _, text := range append(seen.Texts, claim) {
			for _, line := range dbtest.Plan(t, d, text) {
				whole := strings.Contains(line, "Seq Scan on compensations") || strings.Contains(line, "SCAN compensations") &&
					!strings.Contains(line, "INDEX")
				if whole || strings.Contains(line, "TEMP B-TREE") || strings.Contains(line, "Sort") {
					t.Errorf("%s\n%s", text, line)
				}
			}
		}
	})
}

// BenchmarkClaim claims one of a million waiting items; the target is 5 ms. It also has all of
// them nudged, as re-drives do, while nobody takes a task: the target is 5 MB of Redis.
func BenchmarkClaim(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for _, rows := range []int{20_000, 1_000_000} { // the first shows what the disk costs
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) { benchClaim(b, open(b), rows) })
		}
	}
}

func benchClaim(b *testing.B, d *db.DB, rows int) {
	fill(b, d, rows)
	s := &source{d}
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		jobs, err := s.Due(b.Context(), int64(n%5+1), d.Now(), 1)
		if err != nil || len(jobs) != 1 {
			b.Fatalf("%d jobs, %v", len(jobs), err)
		}
		b.StartTimer()
		l := work.Lease{Owner: d.Boot(), Until: d.Now() + 60_000_000}
		if all, err := s.Claim(b.Context(), []work.Slot{{ID: jobs[0].ID, Lane: jobs[0].Lane}}, l); err != nil || len(all) != 1 {
			b.Fatalf("%d claimed, %v", len(all), err)
		}
	}
	redis := queuetest.Start(b)
	empty := redis.Memory()
	if err := nudgeAll(b.Context(), queue.New(redis.Client(), queue.Config{Window: window}), rows); err != nil {
		b.Fatal(err)
	}
	const mb = 1 << 20
	b.ReportMetric(float64(redis.Memory())/mb, "redis_MB")
	b.ReportMetric(float64(redis.Memory()-empty)/mb, "redis_more_MB")
}

// window is the default of BACKSTOP_NOTIFY_WINDOW.
const window = 20_000

// nudgeAll nudges items as re-drives of MaxRedrive each do. Redis refuses what is beyond a
// queue's window: those rows stay due, and the tick finds them.
func nudgeAll(ctx context.Context, q *queue.Client, rows int) error {
	for from := 0; from < rows; from += MaxRedrive {
		var nudges []queue.Nudge
		for id := from; id < min(from+MaxRedrive, rows); id++ {
			nudges = append(nudges, queue.Nudge{Delivery: 1<<60 + int64(id), Recipient: 1<<60 + int64(id%5)})
		}
		var err error
		waittest.Within(time.Minute, func() bool { // a machine that is busy may take longer than a call may
			err = q.Compensate(ctx, nudges)
			return !errors.Is(err, queue.ErrUnavailable)
		})
		if err != nil && !errors.Is(err, queue.ErrWindowFull) {
			return err
		}
	}
	return nil
}

// However many items wait and are nudged, Redis holds no more of them than one queue's window.
func TestAMillionWaitingItemsNeedLittleRedis(t *testing.T) {
	t.Parallel()
	redis := queuetest.Start(t)
	q := queue.New(redis.Client(), queue.Config{Window: window})
	empty := redis.Memory()
	if err := nudgeAll(t.Context(), q, 1_000_000); err != nil {
		t.Fatal(err)
	}
	used := redis.Memory() - empty
	t.Logf("%d KiB more than empty", used>>10)
	if used > 5<<20 || used == 0 {
		t.Errorf("1,000,000 nudged items use %d bytes of Redis", used)
	}
}
