package callback

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// queried queries about orders as the program does.
type queried struct{ *orderquery.Worker }

func (a queried) Query(ctx context.Context, orderID int64) compensation.Result {
	if _, err := a.QueryOpen(ctx, orderID); err != nil {
		return compensation.Failed(err)
	}
	return compensation.Succeeded("")
}

func (a queried) QueryClosed(ctx context.Context, orderID int64) compensation.Result {
	return a.Query(ctx, orderID)
}

// twoReadings verifies a form by its last parameter, and refuses signed values with two readings.
func twoReadings(r *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	fields, err := supplier.ParseForm(string(r.Body))
	if err != nil || fields["sign"] != "good" {
		return supplier.Callback{}, supplier.RefuseSignature(spokenWords, "does not hold")
	}
	c := supplier.Callback{EventKey: fields["id"], OrderRef: fields["order"], TradeNo: fields["id"], Status: supplier.Paid, Amount: 1999, Currency: "CNY"}
	if err := supplier.CheckCut(fields["attach"], []string{"cents"}); err != nil {
		return t.FailContent(c, err, "")
	}
	return c, nil
}

// A signed callback with two readings pays nothing, and the supplier is queried at once, so that the
// order is paid before it would expire. Where it cannot be queried, or if the signature does not
// hold, nothing is.
func TestASignedCallbackWithTwoReadingsIsQueriedAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fakes := paymenttest.NewFakes("f1")
		fakes["f1"].OnParse = twoReadings
		schedule := compensation.Schedule{time.Hour}
		f := paymenttest.New(t, d, paymenttest.Options{Fakes: fakes, Requery: func(w *db.Writes, o *order.Order, supplierID int64) {
			rerun.Doubtful(w, d, schedule, o, supplierID)
		}})
		refusals := NewRefusals(RefusalOptions{DB: d, Rate: 10, Rows: 10, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(refusals.Close)
		r := New(Options{DB: d, Settings: f.Settings, Payments: f.Processor, Refusals: refusals, Wait: 10 * time.Second})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{OutTradeNo: "1", Amount: 1999, Currency: "CNY", Supplier: "f1"})
		if err != nil {
			t.Fatal(err)
		}
		const open = "SELECT count(*) FROM compensations WHERE kind = 'rerun' AND subject_id = ? AND state = 'waiting'"
		receive := func(body, outcome string, status int) {
			t.Helper()
			if got := r.Receive(t.Context(), "f1", request("order="+o.OrderNo+"&id=T1&attach=x%26cents%3D1"+body), nil); got.Outcome != outcome || got.Reply.Status != status {
				t.Fatalf("%s is answered %+v", body, got)
			}
		}
		receive("&sign=bad", BadSignature, 200)
		f.Want(t, 0, open, o.ID)

		receive("&sign=good", "malformed", 200)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'malformed' AND order_id = ?", o.ID)
		f.Want(t, 0, "SELECT count(*) FROM transfers")
		f.Want(t, 1, open+" AND next_at <= ?", o.ID, d.Now())

		var x compensation.Item
		if err := d.NewRaw("SELECT * FROM compensations WHERE subject_id = ?", o.ID).Scan(t.Context(), &x); err != nil {
			t.Fatal(err)
		}
		fakes["f1"].Says(supplier.AnswerPaid)
		w := orderquery.New(orderquery.Options{
			DB: d, Settings: f.Settings, Payments: f.Processor, Calls: f.Calls, Log: slog.New(slog.DiscardHandler), QueryOnly: true,
		})
		if got := rerun.Kind(queried{w}).Run(t.Context(), x); !got.IsDone() {
			t.Errorf("the query: %+v", got)
		}
		f.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND status = 'paid'", o.ID)

		// A repeat, and a message about an order that is over, query nothing more.
		if _, err := d.NewRaw("UPDATE compensations SET state = 'done', next_at = NULL WHERE id = ?", x.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		receive("&sign=good", "malformed", 200)
		receive("&more=1&sign=good", "malformed", 200)
		f.Want(t, 0, open, o.ID)
	})
}

// One that waits for its next query is queried now.
func TestAnOrderThatWaitsForItsQueryIsQueriedAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{Fakes: paymenttest.NewFakes("f1")})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{OutTradeNo: "1", Amount: 1999, Currency: "CNY", Supplier: "f1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			compensation.Schedule{time.Hour}.Open(w, d, rerun.Stuck(o, o.SupplierID))
			rerun.Doubtful(w, d, compensation.Schedule{time.Hour}, o, o.SupplierID)
			return w.Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		f.Want(t, 1, "SELECT count(*) FROM compensations WHERE subject_id = ? AND next_at <= ?", o.ID, d.Now())
	})
}
