package batch_test

import (
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/batch"
	"backstop/internal/notify"
)

// A plan of 100,000 rows, and 10,000 resends. Run with -benchtime 1x.
func BenchmarkPlan(b *testing.B) {
	const rows = batch.MaxRows
	d := dbtest.Default(b)
	k := open(b, d)
	for range rows / 1000 {
		put(b, d, notify.Exhausted, "CNY", 1000)
	}
	ids := k.rows()
	for b.Loop() {
		p, err := k.propose(ids)
		if err != nil || p.ToDo != rows {
			b.Fatalf("%+v, %v", p, err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkResend(b *testing.B) {
	const rows = 10_000
	d := dbtest.Default(b)
	k := open(b, d)
	for b.Loop() {
		b.StopTimer()
		for range rows / 1000 {
			put(b, d, notify.Exhausted, "CNY", 1000)
		}
		p := k.plan(k.rows(notify.Exhausted))
		if err := k.start(p, li); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := k.RunNow(b.Context(), p.ID); err != nil || k.find(p.ID).State != batch.Done {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
