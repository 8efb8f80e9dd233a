package payment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// A genuine message can be sent as often as the connection allows: 300 of them wrote
// 300 rows once, with all that they were padded with.
func TestRepeatsWriteNoRowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		first := take(t, f, f.Callback(o.OrderNo, "T1", 1999))
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				r := f.Callback(o.OrderNo, "T1", 1999)
				r.Source.Record.RemoteAddr = fmt.Sprintf("203.0.113.%d", i%200)
				out, err := paymenttest.Send(context.Background(), f.Processor, r)
				if err != nil || out.Name != payment.Repeat || out.CallbackID != first.CallbackID || out.Result != supplier.Taken {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		wg.Wait()
		f.Eventually(t, 300, "SELECT coalesce(sum(seen), 0) FROM callback_repeats WHERE callback_id = ?", first.CallbackID)
		f.Want(t, 5, "SELECT kept FROM callback_repeats")
		f.Want(t, 5, "SELECT count(*) FROM callbacks WHERE outcome = 'repeat'")
		f.Want(t, 6, "SELECT count(*) FROM callbacks")
		f.Want(t, 1, "SELECT count(*) FROM callback_repeats WHERE last_addr <> '' AND last_seen_at > 0")
		f.Want(t, 1, "SELECT count(*) FROM transfers")

		take(t, f, f.Callback(o.OrderNo, "T1", 1999)) // after the first writes, none is kept beyond the five
		f.Eventually(t, 301, "SELECT sum(seen) FROM callback_repeats")
		f.Want(t, 6, "SELECT count(*) FROM callbacks")
	})
}

func TestRepeatsOfAnExceptionWriteNoRowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		take(t, f, f.Callback(o.OrderNo, "T1", 5))
		for range 20 {
			if out := take(t, f, f.Callback(o.OrderNo, "T1", 5)); out.Name != payment.Repeat {
				t.Errorf("%+v", out)
			}
		}
		f.Eventually(t, 20, "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
		f.Want(t, 6, "SELECT count(*) FROM callbacks")
		f.Want(t, 1, "SELECT count(*) FROM exceptions")
	})
}

// A message that cannot be read is answered as such each time, and needs attention again.
func TestRepeatsOfWhatCannotBeReadKeepOneRecord(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		message := func(body string) *payment.Message {
			r := f.Callback("", "", 0)
			r.Content.EventKey, r.Source.Record.Body = "", []byte(body)
			r.Unreadable = &supplier.Unreadable{
				Kind: exception.DecryptFailed, Result: supplier.InternalFailed,
				Reason: new(text.Codes).New("test.key", text.Text{ZH: "密钥错误", EN: "wrong key"}).Say(),
			}
			return r
		}
		for range 10 {
			if out := take(t, f, message("a")); out.Name != exception.DecryptFailed || out.Result != supplier.InternalFailed {
				t.Errorf("%+v", out)
			}
		}
		take(t, f, message("b"))
		f.Eventually(t, 9, "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
		f.Want(t, 10, "SELECT seen FROM exceptions ORDER BY id LIMIT 1")
		f.Want(t, 2, "SELECT count(*) FROM exceptions")
		f.Want(t, 2+5, "SELECT count(*) FROM callbacks")
	})
}

// Whoever holds one genuine message may pad it where no signature looks: that makes no
// other message of it.
func TestPaddingMakesNoOtherMessageOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for i := range 20 {
			r := f.Callback("", "", 0)
			r.Content, r.Source.Record.Body = supplier.Callback{}, []byte("amount=1e2&sign=5"+strings.Repeat("&", i))
			r.Unreadable = &supplier.Unreadable{
				Kind: exception.Malformed, Result: supplier.Malformed, Signed: "amount=1e2",
				Reason: new(text.Codes).New("test.odd", text.Text{ZH: "异常", EN: "odd"}).Say(),
			}
			take(t, f, r)
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE seen = 20")
		f.Eventually(t, 19, "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
		f.Want(t, 1+5, "SELECT count(*) FROM callbacks")
	})
}

// Two nodes may count the same messages at the same time.
func TestRepeatsOnTwoNodesAddUp(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		other := paymenttest.New(t, f.DB, paymenttest.Options{Shared: true}).Processor
		var orders []string
		for i := range 40 {
			o := create(t, f, nil)
			orders = append(orders, o.OrderNo)
			take(t, f, f.Callback(o.OrderNo, fmt.Sprint("T", i), 1999))
		}
		var wg sync.WaitGroup
		for write := range int64(2) {
			for _, p := range []*payment.Processor{f.Processor, other} {
				wg.Go(func() {
					for range 5 {
						for i, no := range orders {
							if _, err := paymenttest.Send(context.Background(), p, f.Callback(no, fmt.Sprint("T", i), 1999)); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			f.Eventually(t, 400*(write+1), "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
		}
		f.Want(t, 40, "SELECT count(*) FROM callback_repeats WHERE seen = 20 AND kept = 5")
		f.Want(t, 40*6, "SELECT count(*) FROM callbacks")
	})
}
