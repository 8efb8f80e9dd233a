package jobs

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/db"
	"backstop/internal/db/dbtest"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/queue"
	"backstop/internal/queue/queuetest"
	"backstop/internal/verify"
)

func TestCleanupRemovesOnlyWhatIsPastItsRetention(t *testing.T) {
	redis := queuetest.Start(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
		pay := func() {
			for range 3 {
				o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
					OutTradeNo: f.Out(), Amount: 5, Currency: "CNY", Supplier: "sp-main",
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Processor.Take(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 5)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// More than one step.
		_, err := d.NewRaw("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)" +
			" INSERT INTO report_minutes (merchant_id, start, ok, retried, failed, took_us, took, lag) SELECT i, 0, 1, 0, 0, 0, '', '' FROM n").Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pay()
		first := time.Now()
		time.Sleep(1200 * time.Millisecond) // ids know milliseconds: let the first three age
		pay()
		j := &Jobs{o: Options{
			DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
			Retention: Retention{Attempts: time.Hour, Reports: time.Hour},
		}}
		for _, id := range []int64{db.IDAt(d.Now() - 2*time.Minute.Microseconds()), d.NewID()} { // who asked the first one died
			if _, err := d.NewRaw("INSERT INTO pings (id, merchant_id, endpoint, body, until) VALUES (?, 1, '', '', 0)", id).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		old := db.IDAt(d.Now() - 2*time.Hour.Microseconds())
		for i, state := range []string{"resolved", "event", "firing"} {
			for _, id := range []int64{old + int64(i), d.NewID()} {
				message := map[bool]string{true: alert.Waiting, false: alert.Sent}[state == "firing"]
				if _, err := d.NewRaw("INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (?, 'r', ?, ?, 0, 1, 0, 0)", id, strconv.FormatInt(id, 10), state).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := d.NewRaw("INSERT INTO alert_messages (id, target, title, body, status, created_at) VALUES (?, '', '', '', ?, 0)", id, message).Exec(t.Context()); err != nil {
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
		f.Want(t, 1, "SELECT count(*) FROM pings")
		f.Want(t, 4, "SELECT count(*) FROM alerts")
		f.Want(t, 4, "SELECT count(*) FROM alert_messages")
		f.Want(t, 3, "SELECT count(*) FROM callbacks")
		f.Want(t, 6, "SELECT count(*) FROM callback_keys")
		f.Want(t, 6, "SELECT count(*) FROM order_history")
		report, err := verify.Run(t.Context(), d, nil)
		if err != nil || !report.OK() {
			var text strings.Builder
			_ = report.WriteText(&text)
			t.Errorf("a cleaned history is taken for a damaged one: %v\n%s", err, text.String())
		}
	})
}
