package jobs

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/seal"
	"backstop/internal/base/waittest"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/verify"
)

func TestCleanupRemovesOnlyWhatIsPastItsRetention(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		redis := queuetest.Start(t)
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
		pay := func() {
			for range 3 {
				o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
					OutTradeNo: f.Out(), Amount: 5, Currency: "CNY", Supplier: "sp-main",
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 5)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// More than one step.
		_, err := d.NewRaw("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)" +
			" INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) SELECT i, 0, 1, 0, 0, 0, '', '' FROM n").Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pay()
		first := time.Now()
		age(t, 1200*time.Millisecond)
		pay()
		j := &Jobs{o: Options{
			DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
			Retention: Retention{Attempts: time.Hour, Notifications: time.Hour, Reports: time.Hour},
		}}
		version := int64(1)
		for _, id := range []int64{db.IDAt(d.Now() - 2*time.Minute.Microseconds()), d.NewID()} { // the requester of the first one died
			for _, row := range []any{
				&notify.Delivery{
					ID: id, EventID: id, RecipientID: 1, SubjectID: id, EventType: notify.Ping, Status: notify.Sending,
					EventVersion: &version, Body: "{}",
				},
				&notify.Attempt{ID: id, DeliveryID: id, RecipientID: 1, RequestHeader: "", ResponseBody: []byte{}},
			} {
				if _, err := d.NewInsert().Model(row).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := d.NewRaw("INSERT INTO open_pings (delivery_id, recipient_id, until) VALUES (?, 1, 0)",
				id).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		old := db.IDAt(d.Now() - 2*time.Hour.Microseconds())
		for i, state := range []string{"resolved", "event", "firing"} {
			for _, id := range []int64{old + int64(i), d.NewID()} {
				message := map[bool]string{true: alert.Waiting, false: alert.Sent}[state == "firing"]
				if _, err := d.NewRaw(
					"INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (?, 'r', ?, ?, 0, 1, 0, 0)",
					id, strconv.FormatInt(id, 10), state).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := d.NewRaw(
					"INSERT INTO alert_messages (id, target, title, body, status, created_at) VALUES (?, '', '', '', ?, 0)", id,
					message).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		// However long all this took, the first three are older and the others younger.
		j.o.Retention.Callbacks = time.Since(first) - 100*time.Millisecond
		j.o.Retention.History = j.o.Retention.Callbacks
		if err := j.cleanup(context.Background()); err != nil {
			t.Fatal(err)
		}
		f.Want(t, 0, "SELECT count(*) FROM report_minutes WHERE start = 0")
		for _, table := range []string{"open_pings", "deliveries WHERE event_type = 'ping'", "notify_attempts WHERE class = ''"} {
			f.Want(t, 1, "SELECT count(*) FROM "+table)
		}
		f.Want(t, 4, "SELECT count(*) FROM alerts")
		f.Want(t, 4, "SELECT count(*) FROM alert_messages")
		f.Want(t, 3, "SELECT count(*) FROM callbacks")
		f.Want(t, 3, "SELECT count(*) FROM order_history") // their creation; the payment is stored in the order itself
		f.Want(t, 9, "SELECT count(*) FROM "+order.AllHistory+" AS oh")
		report, err := verify.Run(t.Context(), d, new(seal.Keyring), nil)
		if err != nil || !report.OK() {
			var text strings.Builder
			_ = report.WriteText(&text)
			t.Errorf("a cleaned history is reported as damaged: %v\n%s", err, text.String())
		}
	})
}

// Notifications are removed when they are old and over, and their events with the last of them,
// in whichever table they are stored. Notifications that wait or need a person stay however old
// they are.
func TestCleanupRemovesNotificationsThatAreOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, cleanNotifications)
}

// age waits until ids are older than the next ones by d: they contain milliseconds.
func age(t *testing.T, d time.Duration) {
	t.Helper()
	from := time.Now()
	waittest.Until(t, "the rows are older", func() bool { return time.Since(from) > d })
}

func cleanNotifications(t *testing.T, d *db.DB) {
	f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pay := func() *order.Order {
		t.Helper()
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 5, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 5)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	end := func(o *order.Order, status notify.Status, class notify.Class) {
		exec("UPDATE deliveries SET status = 'sending' WHERE subject_id = ?", o.ID)
		exec("UPDATE deliveries SET status = ?, attempts = 1, last_class = ?, next_at = NULL, lease_until = NULL, finished_at = created_at WHERE subject_id = ?", status, class, o.ID)
	}
	gaveUp := func(o *order.Order, state exception.State) {
		end(o, notify.Exhausted, notify.Timeout)
		exec("INSERT INTO exceptions (id, kind, state, order_no, order_id, detail, opened_at, updated_at) VALUES (?, ?, ?, ?, ?, '{}', 0, 0)",
			d.NewID(), exception.NotifyExhausted, state, o.OrderNo, o.ID)
	}
	delivered, skipped, settled, open, waiting := pay(), pay(), pay(), pay(), pay()
	end(delivered, notify.Delivered, notify.OK)
	end(skipped, notify.Skipped, notify.SwitchedOff)
	gaveUp(settled, exception.Resolved)
	gaveUp(open, exception.Opened)
	// A subscriber still waits for the event of another order: the event stays.
	half := pay()
	end(half, notify.Delivered, notify.OK)
	exec("INSERT INTO notify_attempts (id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error)"+
		" SELECT ?, id, recipient_id, 1, '', 'ok', 200, 0, 0, '', '', '', '', '' FROM deliveries WHERE subject_id = ?", d.NewID(),
		delivered.ID)
	first := time.Now()
	age(t, 1200*time.Millisecond)
	young := pay()
	end(young, notify.Delivered, notify.OK)
	if f.Count(t, "SELECT count(*) FROM events") > 0 {
		exec("INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (1, 's', 's', '[]', '[]', '{}', 0, 0)")
		exec("INSERT INTO deliveries (id, event_id, recipient_id, to_subscriber, subject_id, event_type, channel, url, status, next_at, created_at)"+
			" SELECT id + 1, event_id, 1, TRUE, subject_id, event_type, channel, url, 'queued', 1, created_at FROM deliveries WHERE subject_id = ?", half.ID)
	}
	events := f.Count(t, "SELECT count(*) FROM events")
	redis := queuetest.Start(t)
	j := &Jobs{o: Options{
		DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
		Retention: Retention{
			Callbacks: time.Hour, Attempts: time.Hour, History: time.Hour, Reports: time.Hour,
			Notifications: time.Since(first) - 100*time.Millisecond,
		},
	}}
	if err := j.cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*order.Order{delivered, skipped, settled} {
		f.Want(t, 0, "SELECT count(*) FROM deliveries WHERE subject_id = ?", o.ID)
		f.Want(t, 0, "SELECT count(*) FROM events WHERE subject_id = ?", o.ID)
	}
	for _, o := range []*order.Order{open, waiting, young} {
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ?", o.ID)
	}
	f.Want(t, 7, "SELECT count(*) FROM orders")
	f.Want(t, 7, "SELECT count(*) FROM transfers WHERE ref LIKE 'paid:%'")
	if events > 0 {
		f.Want(t, 4, "SELECT count(*) FROM events")
		f.Want(t, 1, "SELECT count(*) FROM events WHERE subject_id = ?", half.ID)
	}
	for _, noted := range []bool{true, false} {
		if !noted {
			exec("DELETE FROM settings WHERE name = ?", notify.Since)
		}
		report, err := verify.Run(t.Context(), d, new(seal.Keyring), nil)
		if err != nil || report.OK() != noted {
			var text strings.Builder
			_ = report.WriteText(&text)
			t.Errorf("noted: %t; %v\n%s", noted, err, text.String())
		}
	}
}

// The backlog of one table must not delay the others until it is removed, which may take days
// after a retention was shortened.
func TestALongBacklogOfOneTableLeavesTheOthersTheirTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		redis := queuetest.Start(t)
		old := db.IDAt(d.Now() - 2*time.Hour.Microseconds())
		for _, insert := range []string{
			// The rests between their steps alone take longer than the run.
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)" +
				" INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
				" SELECT ? + i, 1, 0, '', '', '', '', '', 0, '', '', '', '', '', '' FROM n",
			"INSERT INTO settings (name, value) VALUES ('" + lookedAt + "', ? + 200000)", // by earlier runs
			"INSERT INTO open_pings (delivery_id, recipient_id, until) VALUES (?, 1, 0)",
			"INSERT INTO endpoint_waits (recipient_id, origin, until) VALUES (?, 'http://a.test', 1)",
			"INSERT INTO order_history (id, order_id, version, from_status, to_status, cause, actor, created_at) VALUES (1, ?, 1, '', 'pending', '', '', 0)",
			"INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (?, 0, 1, 0, 0, 0, '', '')",
		} {
			if _, err := d.NewRaw(insert, old).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		j := &Jobs{o: Options{
			DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
			Retention: Retention{
				Callbacks: time.Hour, Attempts: time.Hour, Notifications: time.Hour, History: time.Hour,
				Reports: time.Hour,
			},
		}}
		if err := j.cleanFor(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		for table, want := range map[string]bool{
			"callbacks": true, "open_pings": false, "endpoint_waits": false, "order_history": false, "report_minutes": false,
		} {
			var n int
			if err := d.NewRaw("SELECT count(*) FROM "+table).Scan(t.Context(), &n); err != nil {
				t.Fatal(err)
			}
			if (n > 0) != want || n == 200_000 {
				t.Errorf("%d rows of %s are left", n, table)
			}
		}
	})
}

func TestAStepHasTheRowsThatItsTimeAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows int
		took time.Duration
		want int
	}{
		{100, 2 * time.Millisecond, 100},
		{100, 4 * time.Millisecond, 50},
		{400, time.Second, 200}, // one stall is no measure
		{60, time.Second, minCleanupStep},
		{100, time.Microsecond, 200},
		{400, 0, cleanupStep},
	} {
		if got := nextStep(c.rows, c.took); got != c.want {
			t.Errorf("%d rows in %s: then %d, want %d", c.rows, c.took, got, c.want)
		}
	}
}
