package report

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

const minuteUS = 60_000_000

func write(ctx context.Context, tx db.Tx, d *db.DB, x *Delta) error {
	w := tx.Writes()
	x.Write(w, d)
	return w.Exec(ctx)
}

func put(t testing.TB, d *db.DB, x *Delta) {
	t.Helper()
	err := d.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		return write(ctx, tx, d, x)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func foldAll(t testing.TB, d *db.DB) {
	t.Helper()
	for {
		n, err := Fold(t.Context(), d, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func exec(t testing.TB, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.NewRaw(query, args...).Exec(context.Background()); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Several nodes fold while transactions write: each delta is added exactly once.
func TestFoldingAtOnceAddsEachDeltaOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const writers, each = 4, 60
		now := d.Now()
		var wg, folders sync.WaitGroup
		stop := make(chan struct{})
		for range 2 {
			folders.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if _, err := Fold(context.Background(), d, time.UTC); err != nil && !db.IsConflict(err) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					x := NewDelta(now)
					x.Attempt(int64(1+i%3), Result(i%3), time.Duration(i)*time.Millisecond)
					x.Callback(7, "paid", 1)
					x.Unnotified(int64(1+w), "CNY", 1, 100)
					err := d.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
						return write(ctx, tx, d, x)
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		folders.Wait()
		foldAll(t, d)
		for _, step := range []time.Duration{time.Minute, time.Hour} {
			points, err := Outcomes(t.Context(), d, allRecipients, now, now, step)
			if err != nil {
				t.Fatal(err)
			}
			p := Total(points)
			if p.Attempts() != writers*each || p.Took.Count() != writers*each || p.OK != writers*each/3 {
				t.Errorf("by %s: %+v, want %d attempts", step, p, writers*each)
			}
		}
		suppliers, err := Suppliers(t.Context(), d, now)
		if err != nil || len(suppliers) != 1 || suppliers[0].Callbacks != writers*each {
			t.Errorf("suppliers %+v, %v", suppliers, err)
		}
		risk, err := AtRisk(t.Context(), d)
		if err != nil || risk.Parts[Unnotified].Orders() != writers*each || len(risk.ByMerchant) != writers {
			t.Errorf("risk %+v, %v", risk, err)
		}
	})
}

// A transaction that rolls back leaves nothing in the figures.
func TestWhatRollsBackIsNotCounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		failed := fmt.Errorf("the fact did not happen")
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			x := NewDelta(d.Now())
			x.Unnotified(1, "CNY", 1, 5)
			x.Raised(d.Now(), "CNY", 5)
			if err := write(ctx, tx, d, x); err != nil {
				return err
			}
			return failed
		})
		if err != failed {
			t.Fatal(err)
		}
		foldAll(t, d)
		if risk, err := AtRisk(t.Context(), d); err != nil || len(risk.Total.Sums) != 0 {
			t.Errorf("%+v, %v", risk, err)
		}
		if got, err := Orders(t.Context(), d, d.Now()-minuteUS, d.Now(), time.Minute); err != nil || len(got) != 0 {
			t.Errorf("orders %+v, %v", got, err)
		}
	})
}

func TestOutcomesFillTheGapsAndRatesAreExact(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		for _, ago := range []int64{0, 0, 5, 7} {
			x := NewDelta(now - ago*minuteUS)
			x.Attempt(1, OK, 20*time.Millisecond)
			x.Attempt(2, Failed, time.Second)
			x.Lag(1, 3*time.Millisecond)
			put(t, d, x)
		}
		foldAll(t, d)
		points, err := Outcomes(t.Context(), d, 1, now-9*minuteUS, now, time.Minute)
		if err != nil || len(points) != 10 {
			t.Fatalf("%d points, %v", len(points), err)
		}
		for i, p := range points {
			want := map[int]int64{9: 2, 4: 1, 2: 1}[i]
			if p.OK != want || p.Lag.Count() != want || p.Start != floor(now, time.Minute)-int64(9-i)*minuteUS {
				t.Errorf("point %d: %+v, want %d", i, p, want)
			}
		}
		health, err := Merchants(t.Context(), d, now-10*minuteUS, 10)
		if err != nil || len(health) != 2 || health[0].Merchant != 2 || health[1].OK != 4 || Total(health[1].Trend).OK != 4 {
			t.Errorf("%+v, %v", health, err)
		}
		if one, err := Merchants(t.Context(), d, now-10*minuteUS, 1); err != nil || len(one) != 1 || one[0].Merchant != 2 {
			t.Errorf("the worst one: %+v, %v", one, err)
		}
		if _, err := Outcomes(t.Context(), d, 1, now, now, 90*time.Second); err == nil {
			t.Error("a step of one and a half minutes was accepted")
		}
	})
}

// TestPartsAreDisjointAndSumUp puts one order into every situation.
func TestPartsAreDisjointAndSumUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		orders := []struct {
			id     int64
			status string
			next   any
		}{
			{1, "paid", nil},                   // told again after giving up
			{2, "paid", nil},                   // given up
			{3, "paying", now - 60*1_000_000},  // stuck
			{4, "closing", now - 60*1_000_000}, // stuck, but stands on the desk
			{5, "closing", now + 60*1_000_000}, // closing within its time
			{6, "pending", now - 60*1_000_000}, // nobody has paid
			{7, "closed", nil},                 // its notification of the closing was given up
			{8, "closed", nil},                 // late money
		}
		for _, o := range orders {
			exec(t, d, "INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
				" VALUES (?0, 'O' || ?0, 1, 'T' || ?0, 1, 100, 'CNY', 2, 's', '', ?1, 1, 0, 0, ?2)", o.id, o.status, o.next)
		}
		except := func(id int64, kind, state string, order int64, ccy string) {
			exec(t, d, "INSERT INTO exceptions (id, kind, state, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
				" VALUES (?0, ?1, ?2, 1, ?3, 'O' || ?3, 's' || ?0, 100, ?4, '{}', ?5, 0)", id, kind, state, order, ccy, now-id)
		}
		except(1, "notify_exhausted", "assigned", 1, "CNY")
		except(2, "notify_exhausted", "open", 2, "CNY")
		except(3, "stuck_paying", "open", 4, "CNY")
		except(4, "notify_exhausted", "open", 7, "CNY")
		except(5, "late_payment", "assigned", 8, "USD")
		except(6, "late_payment", "resolved", 8, "USD")
		except(7, "malformed", "open", 8, "CNY")
		exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at, currency, amount)"+
			" VALUES (1, 1, 1, 1, 'order.paid', 'webhook', '', 'queued', 5, 5, 'CNY', 100), (2, 2, 1, 3, 'order.closed', 'webhook', '', 'queued', 5, 5, '', 0)")
		x := NewDelta(now)
		x.Unnotified(1, "CNY", 1, 100)
		x.Unnotified(1, "", 1, 100)
		put(t, d, x)
		foldAll(t, d)
		risk, err := AtRisk(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		total := map[string]int64{}
		for part, want := range map[Part]int64{Unnotified: 1, Compensated: 2, Stuck: 1, Mismatch: 1} {
			s := risk.Parts[part]
			if s.Orders() != want || len(s.Sums) != 1 || s.Sums[0].Minor != want*100 {
				t.Errorf("%s: %+v, want %d orders", part, s, want)
			}
			for _, m := range s.Sums {
				total[m.Currency] += m.Minor
			}
		}
		for _, m := range risk.Total.Sums {
			if total[m.Currency] != m.Minor {
				t.Errorf("the parts in %s are %d, the total says %d", m.Currency, total[m.Currency], m.Minor)
			}
		}
		if risk.Total.Orders() != 5 || risk.ByMerchant[1].Sums == nil || risk.Parts[Mismatch].Oldest != now-5 {
			t.Errorf("%+v", risk)
		}
		if wrong, err := Recount(t.Context(), d); err != nil || len(wrong) != 0 {
			t.Errorf("recount: %+v, %v", wrong, err)
		}
	})
}

func TestRecountSeesAndMendPutsRight(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at, currency, amount)"+
			" VALUES (1, 1, 9, 1, 'order.paid', 'webhook', '', 'queued', 5, 5, 'CNY', 700)")
		x := NewDelta(d.Now())
		x.Unnotified(8, "JPY", 2, 30)
		put(t, d, x)
		wrong, err := Recount(t.Context(), d)
		if err != nil || len(wrong) != 2 {
			t.Fatalf("%+v, %v", wrong, err)
		}
		if err := Repair(t.Context(), d, wrong); err != nil {
			t.Fatal(err)
		}
		if wrong, err = Recount(t.Context(), d); err != nil || len(wrong) != 0 {
			t.Errorf("still wrong: %+v, %v", wrong, err)
		}
		foldAll(t, d)
		risk, err := AtRisk(t.Context(), d)
		if err != nil || len(risk.Total.Sums) != 1 || risk.Total.Sums[0] != (Sum{"CNY", 1, 700}) {
			t.Errorf("%+v, %v", risk, err)
		}
	})
}

func TestThePastOfTheRiskIsSampledOnceATime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := NewDelta(d.Now())
		x.Unnotified(1, "CNY", 3, 900)
		put(t, d, x)
		foldAll(t, d)
		for range 3 {
			if err := Sample(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		past, err := History(t.Context(), d, d.Now()-2*sampleEvery.Microseconds())
		if err != nil || len(past) < 1 || len(past) > 2 || past[0].Parts[Unnotified].Orders() != 3 {
			t.Errorf("%+v, %v", past, err)
		}
	})
}

func TestCleanRemovesOnlyOldFigures(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		for _, hours := range []int64{0, 50, 80, 200} {
			x := NewDelta(now - hours*60*minuteUS)
			x.Attempt(1, OK, time.Millisecond)
			x.Callback(1, "paid", 1)
			x.Raised(now-hours*60*minuteUS, "CNY", 1)
			put(t, d, x)
		}
		foldAll(t, d)
		if _, err := Clean(t.Context(), d, 100*time.Hour); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]int{
			"report_minutes": 4, "report_hours": 6, "report_callbacks": 2,
			"report_orders WHERE span_s IN (60, 3600)": 5,
		} {
			var n int
			if err := d.NewRaw("SELECT count(*) FROM "+table).Scan(t.Context(), &n); err != nil || n != want {
				t.Errorf("%s has %d rows, want %d (%v)", table, n, want, err)
			}
		}
	})
}
