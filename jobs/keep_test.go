package jobs

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"

	"github.com/uptrace/bun"
)

// The callbacks that an operator needs to decide about money outlive their retention, within
// bounds, but outlive the decision by no more than that retention.
func TestCallbacksOfOpenExceptionsAreKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		redis := queuetest.Start(t)
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pay := func(amount int64) *order.Order {
			t.Helper()
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 5, Currency: "CNY",
				Supplier: "sp-main",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, amount)); err != nil {
				t.Fatal(err)
			}
			return o
		}
		open, settled, other := pay(7), pay(7), pay(7)
		pay(5)
		exec("UPDATE exceptions SET state = 'resolved' WHERE order_no = ?", settled.OrderNo)
		// Another fact of the same kind and order names another trade number.
		exec("UPDATE exceptions SET subject = 'T-other' WHERE order_no = ?", other.OrderNo)
		exec("UPDATE callbacks SET body = ? WHERE order_no = ?", []byte(strings.Repeat("b", exception.KeptBytes+1)), open.OrderNo)
		for i := range 6 {
			exec("INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" SELECT id + ?, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps"+
				" FROM callbacks WHERE order_no = ? AND id = (SELECT min(id) FROM callbacks WHERE order_no = ?)", i+1, open.OrderNo,
				open.OrderNo)
		}
		first := time.Now()
		age(t, 1200*time.Millisecond)
		young := pay(7)
		kept := func(want int64, where string) {
			t.Helper()
			f.Want(t, want, "SELECT count(*) FROM exception_callbacks AS k JOIN exceptions AS e ON e.id = k.exception_id WHERE "+where)
		}
		clean := func() {
			t.Helper()
			j := &Jobs{o: Options{
				DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
				Retention: Retention{
					Callbacks: time.Since(first) - 100*time.Millisecond,
					Attempts:  time.Hour, Notifications: time.Hour, History: time.Hour, Reports: time.Hour,
				},
			}}
			if err := j.cleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		clean()
		f.Want(t, 1, "SELECT count(*) FROM callbacks")
		f.Want(t, 1, "SELECT count(*) FROM callbacks WHERE order_no = ?", young.OrderNo)
		kept(exception.KeptCallbacks, "TRUE")
		kept(exception.KeptCallbacks, "e.order_no = '"+open.OrderNo+"' AND length(k.body) = 16384 AND k.size = 16385")
		clean()
		kept(exception.KeptCallbacks, "TRUE")
		exec("UPDATE exceptions SET state = 'resolved' WHERE order_no = ?", open.OrderNo)
		first = time.Now() // it ended before that
		age(t, 200*time.Millisecond)
		exec("UPDATE exceptions SET updated_at = ? WHERE order_no = ?", d.Now()-time.Hour.Microseconds(), open.OrderNo)
		clean()
		kept(0, "e.order_no = '"+open.OrderNo+"'")
		kept(1, "e.order_no = '"+young.OrderNo+"'") // it has become old meanwhile
	})
}

// A step reads its range of callbacks, and reads exceptions by an index.
func TestTheLookForCallbacksGoesThroughNoTable(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	query := d.DB.QueryGen().FormatQuery(named, int64(1), int64(9), bun.List(exception.Kinds))
	for _, line := range dbtest.Plan(t, d, query) {
		if strings.HasPrefix(line, "SCAN") || strings.Contains(line, "AUTOMATIC") {
			t.Error(line)
		}
	}
}

// The progress is stored, so that a long backlog is processed over many runs.
func TestTheLookForCallbacksGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		from := db.IDAt(d.Now() - 2*time.Hour.Microseconds())
		_, err := d.NewRaw("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"+
			" INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
			" SELECT ? + i, 1, 0, '', '', '', '', '', 0, '', '', '', '', '', '' FROM n", lookStep+1, from).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := db.IDAt(d.Now() - time.Hour.Microseconds())
		j := &Jobs{o: Options{DB: d, Log: slog.New(slog.DiscardHandler)}}
		for i, want := range []int64{from + lookStep, from + lookStep + 1} {
			gone := j.archivePublicIDs(t.Context(), before,
				&old{step: func(int) (int64, bool, error) { t.Error("removed before all were checked"); return 0, false, nil }})
			if _, more, err := gone.step(cleanupStep); err != nil || !more {
				t.Fatal(i, more, err)
			}
			var at int64
			if err := d.NewRaw("SELECT value FROM settings WHERE name = ?", lookedAt).Scan(t.Context(), &at); err != nil || at != want {
				t.Errorf("run %d: checked %d ids, %v; want %d", i, at-from, err, want-from)
			}
		}
	})
}
