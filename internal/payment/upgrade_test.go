package payment_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// signed is a real callback of the fixture's supplier, as it is read and stored.
func signed(t *testing.T, f *paymenttest.Fixture, orderNo, tradeNo, status string, amount int64) *payment.Message {
	t.Helper()
	params := fmt.Sprintf("amount=%d&order=%s&status=%s&trade=%s", amount, orderNo, status, tradeNo)
	sum := md5.Sum([]byte(params + "&key=fixture-key"))
	body := []byte(params + "&sign=" + hex.EncodeToString(sum[:]))
	r := &supplier.Request{
		Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: body,
		ReceivedAt: f.DB.NowTime(),
	}
	content, err := readStored(f.Supplier, r)
	if err != nil {
		t.Fatal(err)
	}
	return &payment.Message{Supplier: f.Supplier, Content: content, Source: payment.ByCallback(f.Supplier, payment.Record{
		ReceivedAt: r.ReceivedAt.UnixMicro(), Method: r.Method, Header: "Content-Type: application/x-www-form-urlencoded\n", Body: body,
	})}
}

func readStored(s supplier.Entry, r *supplier.Request) (supplier.Callback, error) {
	return s.Adapter.Parse(r, supplier.NewTrace())
}

// asBefore leaves exceptions and ledger as a program before this one has written them.
func asBefore(t *testing.T, f *paymenttest.Fixture) {
	t.Helper()
	for _, query := range []string{
		"UPDATE exceptions SET payload = '', callback_id = 0, held_ref = ''",
		"DELETE FROM transfers WHERE ref LIKE 'held:%'",
		"DELETE FROM journals WHERE NOT EXISTS (SELECT 1 FROM transfers AS t WHERE t.journal_id = journals.id)",
		"INSERT INTO settings (name, value) SELECT '" + payment.ToHold + "', max(id) FROM exceptions",
	} {
		if _, err := f.DB.NewRaw(query).Exec(t.Context()); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// What an earlier version of the program left open is filled and booked once, whichever node
// starts first, and however often.
func TestOpenExceptionsOfBeforeAreHeld(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		outcome(t, f, signed(t, f, "no-such-order", "T1", "OK", 1999), exception.UnknownOrder)
		outcome(t, f, signed(t, f, "no-such-order", "T2", "NO", 1999), exception.UnknownOrder)
		outcome(t, f, signed(t, f, "gone", "T3", "OK", 1999), exception.UnknownOrder)
		outcome(t, f, signed(t, f, o.OrderNo, "T4", "OK", 500), exception.AmountMismatch)
		late := cancelled(t, f, create(t, f, nil))
		outcome(t, f, answer(f, late.OrderNo, "T5", 1999), exception.LatePayment) // no callback said so
		settled := cancelled(t, f, create(t, f, nil))
		outcome(t, f, signed(t, f, settled.OrderNo, "T6", "OK", 1999), exception.LatePayment)
		outcome(t, f, signed(t, f, "paid-since", "T7", "OK", 1999), exception.UnknownOrder)
		filler := make([]*payment.Message, 120) // more than one step takes
		for i := range filler {
			filler[i] = f.Callback(fmt.Sprint("filler-", i), fmt.Sprint("F", i), 1)
			filler[i].Content.Currency = "JPY"
			outcome(t, f, filler[i], exception.UnknownOrder)
		}
		asBefore(t, f)
		for _, query := range []string{
			"DELETE FROM callbacks WHERE order_no = 'gone'",
			"UPDATE exceptions SET state = 'resolved' WHERE subject = 'T6'",
		} {
			if _, err := f.DB.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// Its order came by an import, and the payment again.
		paid := create(t, f, nil)
		outcome(t, f, answer(f, paid.OrderNo, "T7", 1999), payment.Paid)

		read := func(s supplier.Entry, r *supplier.Request) (supplier.Callback, error) {
			c, err := readStored(s, r)
			c.EventKey = "read again " + c.EventKey
			return c, err
		}
		other := paymenttest.New(t, f.DB, paymenttest.Options{Shared: true}).Processor
		type result struct {
			payment.OpenHeld
			err error
		}
		results := make(chan result, 2)
		for _, p := range []*payment.Processor{f.Processor, other} {
			go func() {
				did, err := p.HoldOpen(context.Background(), read)
				results <- result{did, err}
			}()
		}
		var all payment.OpenHeld
		for range 2 {
			r := <-results
			if r.err != nil {
				t.Fatal(r.err)
			}
			all.Entries, all.Unknown = all.Entries+r.Entries, all.Unknown+r.Unknown
			all.Sums.Merge(r.Sums)
		}
		// T1, T4 and T5; of T3, and of what cannot be read, nothing says that money came.
		if all.Entries != 3 || all.Unknown != 1+120 || fmt.Sprint(all.Sums.List()) != "[CNY 44.98]" {
			t.Errorf("held: %+v", all)
		}
		wantBalances(t, f, -1999-500-1999-1999, 1999+500+1999, 1999)
		for subject, want := range map[string]struct{ held, filled bool }{
			"T1": {true, true}, "T2": {false, true}, "T3": {false, false}, "T4": {true, true}, "T5": {true, false}, "T6": {false, false},
			"T7": {false, false}, // paid since: it has ended
		} {
			x := new(exception.Item)
			if err := f.DB.NewSelect().Model(x).Where("x.subject = ?", subject).Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if (x.HeldRef != "") != want.held || (x.Payload != "") != want.filled || (x.CallbackID != 0) != want.filled {
				t.Errorf("%s: %+v", subject, x)
			}
		}
		f.Want(t, 0, "SELECT count(*) FROM settings WHERE name = ?", payment.ToHold)
		if did, err := f.Processor.HoldOpen(t.Context(), read); err != nil || did.Entries+did.Unknown != 0 {
			t.Errorf("a second time: %+v, %v", did, err)
		}
		m, err := f.Processor.Stored(item(t, f, exception.AmountMismatch))
		if err != nil {
			t.Fatal(err)
		}
		m.Source = payment.ByDecision("operator:li", 77, payment.Waiver{Amount: true})
		outcome(t, f, m, payment.Paid)
		wantBalances(t, f, -1999-500-1999-1999, 1999+1999, 1999+500)
	})
}
