package report

import (
	"context"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// busy is one second of deltas under load: what batches of a dozen orders of 20 merchants
// write as they are paid, and as their notifications end.
func busy(now int64) []*Delta {
	const batch, merchants = 12, 20
	all := make([]*Delta, 0, foldDeltas)
	for i := 0; len(all) < foldDeltas; i++ {
		callbacks, created, ended := NewDelta(now), NewDelta(now), NewDelta(now)
		for j := range batch {
			merchant := int64(1 + (i*7+j)%merchants)
			callbacks.Callback(1, "paid", 1)
			created.Unnotified(merchant, "CNY", 1, 1999)
			created.Raised(now, "CNY", 1999)
			ended.Attempt(merchant, OK, time.Duration(j)*3*time.Millisecond)
			ended.Lag(merchant, time.Duration(j)*time.Millisecond)
			ended.Unnotified(merchant, "CNY", -1, -1999)
			ended.Notified(now, "CNY", 1999)
		}
		all = append(all, callbacks, created, ended)
	}
	return all[:foldDeltas]
}

func BenchmarkFold(b *testing.B) {
	for _, engine := range []struct {
		name string
		open func(testing.TB) *db.DB
	}{{"sqlite", dbtest.SQLite}, {"postgres", dbtest.Postgres}} {
		b.Run(engine.name, func(b *testing.B) {
			d := engine.open(b)
			for b.Loop() {
				b.StopTimer()
				err := d.Tx(b.Context(), func(ctx context.Context, tx db.Tx) error {
					w := tx.Writes()
					for _, x := range busy(d.Now()) {
						x.Write(w, d)
					}
					return w.Exec(ctx)
				})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if n, err := Fold(b.Context(), d, time.UTC); err != nil || n != foldDeltas {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkSumUp(b *testing.B) {
	var bodies []string
	for _, x := range busy(time.Now().UnixMicro()) {
		bodies = append(bodies, x.text())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sumUp(bodies, time.UTC); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDelta(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range busy(time.Now().UnixMicro()) {
			x.text()
		}
	}
}
