package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
)

// answering is a channel that answers 500 to the first attempt of every second notification.
type answering struct {
	mu   sync.Mutex
	seen []string
}

func (c *answering) Send(_ context.Context, m notify.Message) notify.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := slices.Contains(c.seen, m.ID)
	c.seen = append(c.seen, m.ID)
	if !known && len(c.seen)%2 == 0 {
		return notify.Result{
			Class: notify.BadStatus, Status: 500, Took: time.Millisecond, Error: "HTTP 500", ResponseBody: []byte("no"),
			RequestHeader: "A: b",
		}
	}
	return notify.Result{
		Class: notify.OK, Status: 200, Took: 2 * time.Millisecond, ResponseBody: []byte("ok"), RequestHeader: "A: b",
		ResponseHeader: "C: d",
	}
}

// Everything read about an order is the same, whether this version wrote its rows or one with a
// row for each fact; and a message taken by such a version is recognised.
func TestRowsOfEarlierVersionsAnswerTheSame(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		breakers := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy {
			return breaker.Policy{Failures: 1000, Open: time.Minute, Window: time.Minute}
		})
		f := paymenttest.New(t, d, paymenttest.Options{
			URL: "http://m1.test/n", WaitsMS: []int64{10, 10},
			Here: func(f *paymenttest.Fixture) *notify.Dispatcher {
				here := notify.NewDispatcher(notify.Options{
					DB: d, Directory: f.Settings.Merchants, Channels: map[string]notify.Channel{notify.Webhook: new(answering)},
					Nudger:   f.Nudger,
					Breakers: breakers, Concurrency: 10, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
				})
				t.Cleanup(func() { here.Close(context.Background()) })
				go func() { // the tick
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-t.Context().Done():
							return
						case <-tick.C:
							here.Pull([]int64{f.M1.ID})
						}
					}
				}()
				return here
			},
		})
		b := New(d, f.Settings, breakers)
		create := func(m *merchant.Merchant) *order.Order {
			o, _, err := f.Processor.Create(t.Context(), m, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 10,
				Currency: paymenttest.Currency, Supplier: "sp-main",
			})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		take := func(m *payment.Message, want string) payment.Outcome {
			t.Helper()
			out, err := f.Processor.Take(t.Context(), m)
			if err != nil || out.Name != want {
				t.Fatalf("%s, %v, want %s", out.Name, err, want)
			}
			return out
		}
		var orders []*order.Order
		var paid []*payment.Message
		var records []payment.Outcome
		for range 4 {
			o := create(f.M1)
			m := f.Callback(o.OrderNo, "T"+o.OrderNo, 10)
			orders, paid, records = append(orders, o), append(paid, m), append(records, take(m, payment.Paid))
			take(f.Callback(o.OrderNo, "T"+o.OrderNo, 10), payment.Repeat)
		}
		failed := create(f.M2) // which has no address
		no := f.Callback(failed.OrderNo, "T-no", 10)
		no.Content.Status, no.Content.Final = supplier.Failed, true
		take(no, payment.OrderFailed)
		orders = append(orders, failed, create(f.M1))
		f.Eventually(t, 4, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
		f.Eventually(t, 4, "SELECT count(*) FROM callback_repeats")

		ask := func() (answers []string) {
			say := func(x any, err error) {
				t.Helper()
				text, bad := json.Marshal(x)
				if err != nil || bad != nil {
					t.Fatal(err, bad)
				}
				answers = append(answers, string(text))
			}
			now := d.Now()
			s := list.Slice{From: now - time.Hour.Microseconds(), To: now}
			for _, o := range orders {
				story, err := b.WholeStory(t.Context(), o.OrderNo)
				if err != nil {
					t.Fatal(err)
				}
				say(story.Evidence(time.UTC, nil), nil)
				for _, x := range story.Deliveries {
					n, err := b.Notification(t.Context(), notify.IDOf(x.EventID, story.Bodies[x.EventID]), 0)
					if err != nil {
						t.Fatal(err)
					}
					say([]any{n.Body, n.Attempts, n.PublicID, n.HTTPStatus, n.Status}, nil)
				}
			}
			attempts, err := b.Attempts(t.Context(), list.Query{Spec: AttemptList, Scope: list.All()}, s)
			slices.SortFunc(attempts.Rows, func(x, y Attempt) int { return int(x.ID - y.ID) })
			say(attempts.Rows, err)
			deliveries, err := b.Deliveries(t.Context(), list.Query{Spec: DeliveryList, Scope: list.All()}, s)
			for i := range deliveries.Rows { // only where they are stored differs
				x := &deliveries.Rows[i]
				x.LeaseUntil, x.EventVersion, x.Body = nil, nil, ""
			}
			say(deliveries.Rows, err)
			return answers
		}
		today := ask()
		paymenttest.AsBefore(t, d)
		for i, before := range ask() {
			if before != today[i] {
				t.Errorf("of older rows:\n%s\nof new rows:\n%s", before, today[i])
			}
		}
		before := f.Count(t, "SELECT count(*) FROM callbacks")
		for i, m := range paid {
			if out := take(m, payment.Repeat); out.CallbackID != records[i].CallbackID {
				t.Errorf("the repeat is one of callback %d, not of %d", out.CallbackID, records[i].CallbackID)
			}
		}
		f.Eventually(t, 4, "SELECT count(*) FROM callback_repeats WHERE seen = 2")
		f.Want(t, before+4, "SELECT count(*) FROM callbacks") // kept raw, as the first few are
	})
}
