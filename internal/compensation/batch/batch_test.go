package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/settings"
)

// put writes orders with notifications that stand as told, ¥1.00 each.
func put(t *testing.T, d *db.DB, status notify.Status, currency string, n int) {
	t.Helper()
	now := d.Now()
	orders, deliveries := make([]order.Order, n), make([]notify.Delivery, n)
	for i := range n {
		o, id := d.NewID(), d.NewID()
		orders[i] = order.Order{ID: o, OrderNo: fmt.Sprint(o), OutTradeNo: fmt.Sprint(o), MerchantID: 1, SupplierID: 1, Amount: 100, Currency: currency, Status: order.Paid, Version: 2, CreatedAt: now}
		deliveries[i] = notify.Delivery{ID: id, EventID: id, MerchantID: 1, SubjectID: o, EventType: "order.paid", Channel: notify.Webhook, Status: status, Attempts: 4, CreatedAt: now, Currency: currency, Amount: 100}
		switch status {
		case notify.Exhausted, notify.Delivered, notify.Skipped:
			deliveries[i].FinishedAt = &now
		default:
			later := now + 3_600_000_000
			deliveries[i].NextAt = &later
		}
	}
	for _, rows := range []any{&orders, &deliveries} {
		if _, err := d.NewInsert().Model(rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, d *db.DB, query string) (n int) {
	t.Helper()
	if err := d.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// everything is what a dry run must not change.
func everything(t *testing.T, d *db.DB) string {
	t.Helper()
	var all []map[string]any
	for _, table := range []string{"deliveries", "orders", "exceptions", "report_deltas", "report_untold", "audit", "form_keys"} {
		var rows []map[string]any
		if err := d.Read.NewRaw("SELECT * FROM "+table).Scan(t.Context(), &rows); err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	return fmt.Sprint(all)
}

func start(t *testing.T, d *db.DB, id int64, by string) error {
	t.Helper()
	return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		_, err := Start(ctx, tx, d, id, by)
		return err
	})
}

func runAll(t *testing.T, d *db.DB, book *console.Book, id int64) (nudged int) {
	t.Helper()
	for {
		n, more, err := Step(t.Context(), d, book, id)
		if err != nil {
			t.Error(err)
			return nudged
		}
		if nudged += len(n); !more {
			return nudged
		}
	}
}

func TestARunDoesWhatThePlanShowedAndNothingElse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := console.New(d, nil, breaker.NewBook(d, nil))
		put(t, d, notify.Exhausted, "CNY", 700)
		put(t, d, notify.RetryWait, "HKD", 3)
		put(t, d, notify.Delivered, "CNY", 5)
		put(t, d, notify.Sending, "CNY", 2)
		before := everything(t, d)
		p, err := Propose(t.Context(), d, book, "li", "/notifications", console.DeliveryFilter{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Tally{Send: {{Currency: "CNY", Orders: 700, Minor: 70000}, {Currency: "HKD", Orders: 3, Minor: 300}}, Final: {{Currency: "CNY", Orders: 5, Minor: 500}}, Blocked: {{Currency: "CNY", Orders: 2, Minor: 200}}}
		if !reflect.DeepEqual(p.Shown, want) {
			t.Errorf("shown is %v, want %v", p.Shown, want)
		}
		if everything(t, d) != before || count(t, d, "SELECT count(*) FROM plans") != 1 {
			t.Error("a dry run wrote more than its plan")
		}
		put(t, d, notify.Exhausted, "CNY", 4) // after the plan
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		if n := runAll(t, d, book, p.ID); n != 703 {
			t.Errorf("%d were nudged", n)
		}
		done, err := Find(t.Context(), d.Read, p.ID)
		if err != nil || done.State != Done || !reflect.DeepEqual(done.Result[Send], p.Shown[Send]) || done.FinishedAt == nil {
			t.Errorf("the run ended %s with %v, %v; the plan was %v", done.State, done.Result, err, p.Shown)
		}
		if n := count(t, d, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'"); n != 4 {
			t.Errorf("%d of those that came later are left alone, want 4", n)
		}
		if n := count(t, d, "SELECT count(*) FROM deliveries WHERE status IN ('delivered', 'sending')"); n != 7 {
			t.Errorf("%d of those that were not to be sent are as they were, want 7", n)
		}
	})
}

func TestRunnersAtOnceSendEachNotificationOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := console.New(d, nil, breaker.NewBook(d, nil))
		put(t, d, notify.Exhausted, "CNY", 1200)
		p, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		nudged := map[int64]int{}
		for range 3 {
			all.Go(func() {
				for more := true; more; {
					n, again, err := Step(context.Background(), d, book, p.ID)
					if err != nil && !errors.Is(err, db.ErrBusy) {
						t.Error(err)
						return
					}
					more = again
					mu.Lock()
					for _, x := range n {
						nudged[x.Delivery]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for id, n := range nudged {
			if n != 1 {
				t.Errorf("%d was sent %d times", id, n)
			}
		}
		if done, _ := Find(t.Context(), d.Read, p.ID); done.State != Done || done.Result.Count(Send) != 1200 || len(nudged) != 1200 {
			t.Errorf("%s, %d sent, %d nudged", done.State, done.Result.Count(Send), len(nudged))
		}
	})
}

func TestARunStopsWhereTheAmountIsAnotherOne(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := console.New(d, nil, breaker.NewBook(d, nil))
		put(t, d, notify.Exhausted, "CNY", 200)
		plan := func() *Plan {
			t.Helper()
			p, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{Status: "exhausted"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		deliver := func(n int) {
			t.Helper()
			if _, err := d.NewRaw("UPDATE deliveries SET status = 'delivered' WHERE id IN (SELECT id FROM deliveries WHERE status = 'exhausted' ORDER BY id LIMIT ?)", n).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := plan()
		deliver(3) // 1.5 %
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		if n := runAll(t, d, book, p.ID); n != 0 {
			t.Errorf("%d were sent although the amount was another one", n)
		}
		if p, _ := Find(t.Context(), d.Read, p.ID); p.State != Stopped {
			t.Errorf("it ended %s", p.State)
		}
		p = plan()
		deliver(1) // 0.5 %
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		if n := runAll(t, d, book, p.ID); n != 196 {
			t.Errorf("%d were sent, want all but the one that was delivered meanwhile", n)
		}
		if p, _ := Find(t.Context(), d.Read, p.ID); p.State != Done || p.Result.Count(Final) != 1 {
			t.Errorf("it ended %s with %v", p.State, p.Result)
		}
	})
}

func TestAPlanIsRunOnceByWhoMadeItAndSoon(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := console.New(d, nil, breaker.NewBook(d, nil))
		if _, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{}, nil); !errors.Is(err, ErrNothing) {
			t.Errorf("of nothing: %v", err)
		}
		put(t, d, notify.Exhausted, "CNY", 3)
		var ids []int64
		if err := d.NewRaw("SELECT id FROM deliveries ORDER BY id").Scan(t.Context(), &ids); err != nil {
			t.Fatal(err)
		}
		p, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{}, ids[:2])
		if err != nil || p.Shown.Count(Send) != 2 {
			t.Fatalf("of two that were picked: %+v, %v", p, err)
		}
		if err := start(t, d, p.ID, "wang"); !errors.Is(err, ErrExpired) {
			t.Errorf("by somebody else: %v", err)
		}
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Error(err)
		}
		runAll(t, d, book, p.ID)
		if err := start(t, d, p.ID, "li"); !errors.Is(err, ErrExpired) {
			t.Errorf("for the second time: %v", err)
		}
		old, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{}, ids[2:])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE plans SET expires_at = ? WHERE id = ?", d.Now()-1, old.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := start(t, d, old.ID, "li"); !errors.Is(err, ErrExpired) {
			t.Errorf("too late: %v", err)
		}
		if count(t, d, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") != 1 {
			t.Error("the third one was sent")
		}
	})
}

// A ping that failed stands among the notifications that were given up. It is sent
// while somebody waits, or not at all, and must not keep a plan from its end.
func TestAPlanLeavesPingsAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := console.New(d, nil, breaker.NewBook(d, nil))
		put(t, d, notify.Exhausted, "CNY", 3)
		id, now := d.NewID(), d.Now()
		ping := notify.Delivery{ID: id, EventID: id, MerchantID: 1, SubjectID: id, EventType: notify.Ping, Channel: notify.Webhook, Status: notify.Exhausted, Attempts: 1, CreatedAt: now, FinishedAt: &now}
		if _, err := d.NewInsert().Model(&ping).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, d, notify.Exhausted, "CNY", 2)
		p, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{Status: "exhausted"}, nil)
		if err != nil || p.Shown.Count(Send) != 5 || p.Shown.Count(Final) != 1 {
			t.Fatalf("planned: %+v, %v", p.Shown, err)
		}
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		if n := runAll(t, d, book, p.ID); n != 5 {
			t.Errorf("%d were nudged, want 5", n)
		}
		if p, _ := Find(t.Context(), d.Read, p.ID); p.State != Done {
			t.Errorf("it ended %s", p.State)
		}
	})
}

func TestMoreThanAPlanHoldsIsRefused(t *testing.T) {
	d := dbtest.SQLite(t)
	for range 11 {
		put(t, d, notify.Exhausted, "CNY", 460)
	}
	_, err := Propose(t.Context(), d, console.New(d, nil, breaker.NewBook(d, nil)), "li", "", console.DeliveryFilter{}, nil)
	if !errors.Is(err, console.ErrTooMany) || count(t, d, "SELECT count(*) FROM plans") != 0 {
		t.Errorf("5,060 notifications: %v", err)
	}
}

// What a breaker holds back is an outcome of its own: neither about to be sent nor on
// its way. A run makes it due, and says by what is stored what came of it.
func TestWhatWaitsForABreakerIsPlannedAndCountedAsSuch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		breakers := breaker.NewBook(d, nil)
		book := console.New(d, settings.NewStore(d, nil, nil, nil), breakers)
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		put(t, d, notify.Exhausted, "CNY", 4)
		put(t, d, notify.RetryWait, "HKD", 3)
		put(t, d, notify.Queued, "CNY", 2)
		put(t, d, notify.Sending, "CNY", 1)
		put(t, d, notify.Delivered, "CNY", 5)
		exec("UPDATE deliveries SET merchant_id = 2 WHERE id = (SELECT max(id) FROM deliveries WHERE status = 'exhausted')")
		exec("INSERT INTO breakers (merchant_id, state, by_hand, updated_at) VALUES (1, 'open', TRUE, ?)", d.Now())
		if err := breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, err := Propose(t.Context(), d, book, "li", "", console.DeliveryFilter{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Tally{
			Send:    {{Currency: "CNY", Orders: 1, Minor: 100}},
			Waits:   {{Currency: "CNY", Orders: 5, Minor: 500}, {Currency: "HKD", Orders: 3, Minor: 300}},
			Blocked: {{Currency: "CNY", Orders: 1, Minor: 100}},
			Final:   {{Currency: "CNY", Orders: 5, Minor: 500}},
		}
		if !reflect.DeepEqual(p.Shown, want) || len(p.IDs) != 9 {
			t.Errorf("shown is %v of %d, want %v of 9", p.Shown, len(p.IDs), want)
		}
		if sums := p.Shown.Sums(Send, Waits); !reflect.DeepEqual(sums, []report.Sum{{Currency: "CNY", Orders: 6, Minor: 600}, {Currency: "HKD", Orders: 3, Minor: 300}}) {
			t.Errorf("together they are %v", sums)
		}
		if err := start(t, d, p.ID, "li"); err != nil {
			t.Fatal(err)
		}
		exec("UPDATE breakers SET state = 'closed', by_hand = FALSE, generation = 1, updated_at = ?", d.Now()) // which is no drift
		if err := breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		runAll(t, d, book, p.ID)
		now := func(notified, refused, waiting int64) {
			t.Helper()
			p, err := Find(t.Context(), d.Read, p.ID)
			if err != nil || p.State != Done {
				t.Fatalf("%+v, %v", p, err)
			}
			got, err := p.Now(t.Context(), d, book)
			if err != nil || got.Count(Notified) != notified || got.Count(Refused) != refused || got.Count(Waiting) != waiting {
				t.Errorf("by now %v, %v; want %d notified, %d refused, %d waiting", got, err, notified, refused, waiting)
			}
		}
		now(0, 0, 9)
		exec("UPDATE deliveries SET status = 'delivered', next_at = NULL WHERE status = 'retry_wait' AND currency = 'HKD'")
		exec("UPDATE deliveries SET status = 'exhausted', next_at = NULL WHERE merchant_id = 2")
		exec("UPDATE deliveries SET next_at = ? WHERE id = (SELECT min(id) FROM deliveries WHERE status = 'retry_wait')", d.Now()+time.Hour.Microseconds())
		now(3, 2, 4)
	})
}
