package payment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// disputes makes messages of one dispute about a payment, one after another.
type disputes struct {
	f       *paymenttest.Fixture
	no      string
	tradeNo string
	n       int
}

// at is a message of a second, in the supplier's words.
func (d *disputes) at(second int64, status string, amount int64) *payment.Message {
	d.n++
	r := d.f.Callback("", d.tradeNo, amount)
	r.Content.EventKey = fmt.Sprintf("evt_%s_%d", d.no, d.n)
	r.Content.Status, r.Content.RawStatus = supplier.Disputed, "charge.dispute.updated"
	r.Content.OccurredAt = time.Unix(second, 0)
	r.Content.Dispute = &supplier.Dispute{
		No: d.no, Reason: "fraudulent", Status: status, DueBy: time.Unix(1_792_828_800, 0), Over: status == "won" || status == "lost",
	}
	return r
}

// theDispute is the only row of a dispute.
func theDispute(t *testing.T, f *paymenttest.Fixture, no string) (x exception.Item, detail map[string]any) {
	t.Helper()
	f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'dispute_opened' AND subject = ?", no)
	if err := f.DB.NewSelect().Model(&x).Where("x.subject = ?", no).Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(x.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	return x, detail
}

func TestADisputeIsOneRowWithItsNewestDetail(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		take(t, f, f.Callback(o.OrderNo, "pi_1", o.Amount))
		d := &disputes{f: f, no: "du_1", tradeNo: "pi_1"}
		if out := take(t, f, d.at(1000, "needs_response", 1999)); out.Name != exception.DisputeOpened || out.Result != supplier.Taken ||
			out.OrderNo != o.OrderNo {
			t.Fatalf("outcome %+v", out)
		}
		x, detail := theDispute(t, f, "du_1")
		if x.OrderNo != o.OrderNo || x.OrderID != o.ID || x.MerchantID != o.MerchantID || x.Amount != 1999 || x.Currency != "CNY" ||
			x.State != exception.Opened {
			t.Errorf("%+v", x)
		}
		if detail["reason"] != "fraudulent" || detail["status"] != "needs_response" || detail["due_by"] != "2026-10-24T08:00:00Z" ||
			detail["supplier"] != "sp-main" || detail["trade_no"] != "pi_1" {
			t.Errorf("detail %v", detail)
		}
		last := d.at(3000, "lost", 1500)
		for _, r := range []*payment.Message{
			d.at(2000, "under_review", 1999), last, d.at(1500, "needs_response", 1999),
			d.at(3000, "under_review", 1999),
		} {
			take(t, f, r)
		}
		if x, detail = theDispute(t, f, "du_1"); x.Seen != 5 || detail["status"] != "lost" || x.Amount != 1500 {
			t.Errorf("%+v: %s", x, x.Detail)
		}
		if out := take(t, f, last); out.Name != payment.Repeat {
			t.Errorf("the same message again: %+v", out)
		}
		if got := reload(t, f, o); got.Status != order.Paid || got.Version != 2 {
			t.Errorf("the order moved: %+v", got)
		}
		f.Want(t, 5, "SELECT count(*) FROM callbacks WHERE outcome = 'dispute_opened' AND order_no = ?", o.OrderNo)
		f.Want(t, 1, "SELECT count(*) FROM transfers")
	})
}

// Messages of one dispute arrive at once, on several connections and in any order.
func TestManyMessagesOfADisputeAreOneRow(t *testing.T) {
	t.Parallel()
	const each1 = 24
	each(t, paymenttest.Options{Batch: 4}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		d := &disputes{f: f, no: "du_1", tradeNo: "pi_1"}
		var all []*payment.Message
		for i := range each1 {
			all = append(all, d.at(1000+int64(i), fmt.Sprint("status ", i), 1))
		}
		var sent sync.WaitGroup
		sent.Go(func() {
			if _, err := paymenttest.Send(t.Context(), f.Processor, f.Callback(o.OrderNo, "pi_1", o.Amount)); err != nil {
				t.Error(err)
			}
		})
		for _, r := range all {
			sent.Go(func() {
				if _, err := paymenttest.Send(t.Context(), f.Processor, r); err != nil {
					t.Error(err)
				}
			})
		}
		sent.Wait()
		take(t, f, d.at(500, "old", 1)) // the order is known by now
		x, detail := theDispute(t, f, "du_1")
		if x.Seen != each1+1 || detail["status"] != fmt.Sprint("status ", each1-1) || x.OrderNo != o.OrderNo {
			t.Errorf("%+v: %s", x, x.Detail)
		}
	})
}

// Money that no order took is disputed like any other: the supplier's trade number is in
// the exception that it opened.
func TestADisputeOfHeldMoneyIsOfItsOrder(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		if out := take(t, f, f.Callback(o.OrderNo, "pi_3", o.Amount-1)); out.Name != exception.AmountMismatch {
			t.Fatalf("outcome %+v", out)
		}
		take(t, f, f.Callback("unknown", "pi_4", 1))
		if out := take(t, f, (&disputes{f: f, no: "du_3", tradeNo: "pi_3"}).at(1000, "needs_response",
			o.Amount-1)); out.OrderNo != o.OrderNo {
			t.Errorf("outcome %+v", out)
		}
		if x, _ := theDispute(t, f, "du_3"); x.OrderNo != o.OrderNo || x.OrderID != o.ID || x.MerchantID != o.MerchantID {
			t.Errorf("%+v", x)
		}
		take(t, f, (&disputes{f: f, no: "du_4", tradeNo: "pi_4"}).at(1000, "needs_response", 1))
		if x, _ := theDispute(t, f, "du_4"); x.OrderID != 0 {
			t.Errorf("of no order: %+v", x)
		}
	})
}

// A dispute may share the transaction of the payment that it is about, and come before it.
func TestADisputeBesideItsPaymentIsOfItsOrder(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		n := 0
		confirm := func(paid func(o *order.Order, tradeNo string) *payment.Message, disputeFirst bool) {
			t.Helper()
			n++
			o, no, tradeNo := create(t, f, nil), fmt.Sprint("du_", n), fmt.Sprint("pi_", n)
			items := []*payment.Message{paid(o, tradeNo), (&disputes{f: f, no: no, tradeNo: tradeNo}).at(1000, "needs_response", 1)}
			if disputeFirst {
				slices.Reverse(items)
			}
			err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				outs, err := f.Processor.Confirm(ctx, tx, items)
				for i, out := range outs {
					if out.OrderNo != o.OrderNo || (out.Name == exception.DisputeOpened) != (items[i].Content.Dispute != nil) {
						t.Errorf("outcome %d: %+v", i, out)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if x, _ := theDispute(t, f, no); x.OrderNo != o.OrderNo || x.OrderID != o.ID || x.MerchantID != o.MerchantID {
				t.Errorf("%+v", x)
			}
			f.Want(t, 1, "SELECT count(*) FROM callbacks WHERE outcome = 'dispute_opened' AND order_id = ?", o.ID)
		}
		for _, first := range []bool{false, true} {
			confirm(func(o *order.Order, tradeNo string) *payment.Message { return f.Callback(o.OrderNo, tradeNo, o.Amount) }, first)
			confirm(func(o *order.Order, tradeNo string) *payment.Message {
				return f.Callback(o.OrderNo, tradeNo, o.Amount-1)
			}, first) // held
		}
	})
}

func TestADisputeWithoutAnOrderStandsAloneUntilItIsFound(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		d := &disputes{f: f, no: "du_2", tradeNo: "pi_2"}
		early := d.at(1000, "needs_response", 1999)
		take(t, f, early)
		x, _ := theDispute(t, f, "du_2")
		if x.OrderNo != "" || x.OrderID != 0 || x.SupplierID != f.Supplier.ID || x.Amount != 1999 {
			t.Fatalf("%+v", x)
		}
		o := create(t, f, nil)
		take(t, f, f.Callback(o.OrderNo, "pi_2", o.Amount))
		if out := take(t, f, early); out.Name != exception.DisputeOpened || out.OrderNo != o.OrderNo {
			t.Errorf("sent again once the order is paid: %+v", out)
		}
		if x, _ = theDispute(t, f, "du_2"); x.OrderNo != o.OrderNo || x.OrderID != o.ID || x.MerchantID != o.MerchantID || x.Seen != 2 {
			t.Errorf("%+v", x)
		}
		// The same trade number at another supplier's account is another payment.
		stranger := d.at(2000, "needs_response", 5)
		stranger.Supplier.AccountID, stranger.Supplier.ID = stranger.Supplier.AccountID+1, stranger.Supplier.ID+1
		if out := take(t, f, stranger); out.OrderNo != "" {
			t.Errorf("another account's dispute found %+v", out)
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'dispute_opened' AND order_no = ''")
	})
}

func TestAResolvedDisputeIsOpenedByNewsOnly(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		d := &disputes{f: f, no: "du_3", tradeNo: "pi_3"}
		state := func(now string) {
			t.Helper()
			if _, err := f.DB.NewRaw("UPDATE exceptions SET state = ?, alerted_at = 1", now).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		take(t, f, d.at(1000, "needs_response", 1))
		state("resolved")
		take(t, f, d.at(900, "needs_response", 1))
		if x, _ := theDispute(t, f, "du_3"); x.State != "resolved" || x.Seen != 2 {
			t.Errorf("after an old message: %+v", x)
		}
		take(t, f, d.at(1100, "lost", 1))
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE state = 'open' AND alerted_at IS NULL")
		state("ignored")
		take(t, f, d.at(1200, "lost", 1))
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE state = 'ignored' AND alerted_at = 1 AND seen = 4")
	})
}

// A supplier's clock that runs ahead must not keep later messages out.
func TestADisputeOfTheFutureIsOfNow(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		d := &disputes{f: f, no: "du_4", tradeNo: "pi_4"}
		take(t, f, d.at(9_000_000_000, "needs_response", 1))
		now := f.DB.Now()
		if x, _ := theDispute(t, f, "du_4"); x.OccurredAt > now {
			t.Errorf("%d, and now is %d", x.OccurredAt, now)
		}
		take(t, f, d.at(now/1_000_000+1, "won", 1))
		if _, detail := theDispute(t, f, "du_4"); detail["status"] != "won" {
			t.Errorf("%v", detail)
		}
	})
}

// One that names an order of ours is an exception about that order.
func TestAnUnknownWordIsOneExceptionPerSupplierAndType(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		n := 0
		say := func(word, ref string) payment.Outcome {
			t.Helper()
			n++
			r := f.Callback(ref, fmt.Sprint("T", n), 5)
			r.Content.Status, r.Content.RawStatus = supplier.Unknown, word
			return take(t, f, r)
		}
		o := create(t, f, nil)
		for _, ref := range []string{"", o.OrderNo, "no-such-order"} {
			if out := say("payout.failed", ref); out.Name != exception.UnknownEvent || out.Result != supplier.Taken {
				t.Fatalf("%q: %+v", ref, out)
			}
		}
		say("transfer.reversed", "")
		say("", "")
		f.Want(t, 3,
			"SELECT count(*) FROM exceptions WHERE kind = 'unknown_event' AND order_no = '' AND order_id = 0 AND amount = 0 AND state = 'open'")
		f.Want(t, 2, "SELECT seen FROM exceptions WHERE subject = 'payout.failed'")
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_event' AND order_no = ? AND state = 'open'", o.OrderNo)
		f.Want(t, 1, "SELECT seen FROM exceptions WHERE subject = '(none)'")
		if got := reload(t, f, o); got.Status != order.Pending {
			t.Errorf("the order moved: %+v", got)
		}
		f.Want(t, 1, "SELECT count(*) FROM callbacks WHERE order_no = ? AND outcome = 'unknown_event'", o.OrderNo)
		for _, c := range [][2]string{{"resolved", "open"}, {"ignored", "ignored"}} {
			if _, err := f.DB.NewRaw("UPDATE exceptions SET state = ?, alerted_at = 1 WHERE subject = 'payout.failed'",
				c[0]).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			say("payout.failed", "")
			f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'payout.failed' AND state = ?", c[1])
		}
		f.Want(t, 4, "SELECT seen FROM exceptions WHERE subject = 'payout.failed'")
	})
}

// Many messages of several types come at once: they share rows, and must neither
// wait for each other in a circle nor be lost from the count.
func TestUnknownWordsAreCountedUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{Batch: 8}, func(t *testing.T, f *paymenttest.Fixture) {
		const messages, types = 96, 4
		var sent sync.WaitGroup
		for i := range messages {
			r := f.Callback("", fmt.Sprint("T", i), 1)
			r.Content.Status, r.Content.RawStatus = supplier.Unknown, strings.Repeat("x", 1+i*7%types)
			sent.Go(func() {
				if _, err := paymenttest.Send(t.Context(), f.Processor, r); err != nil {
					t.Error(err)
				}
			})
		}
		sent.Wait()
		f.Want(t, types, "SELECT count(*) FROM exceptions")
		f.Want(t, messages, "SELECT CAST(sum(seen) AS BIGINT) FROM exceptions")
	})
}
