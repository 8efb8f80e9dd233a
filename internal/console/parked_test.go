package console

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// A breaker holds nothing back for a merchant that cannot be notified at all, unless an
// operator opened it: every page agrees with the dispatcher.
func TestPagesAgreeOnWhoIsParked(t *testing.T) {
	t.Parallel()
	const address = "https://a.example/notify"
	for name, c := range map[string]struct {
		change, told string
		byHand       bool
		plan         PlanKind
	}{
		"well":             {"UPDATE merchants SET name = 'M'", "parked", false, PlanProbe},
		"disabled":         {"UPDATE merchants SET disabled_at = 1", "queued", false, PlanAttempt},
		"no address left":  {"INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, disabled_at, reason) SELECT id, '" + address + "', 0, '', 1, '' FROM merchants", "queued", false, PlanAttempt},
		"unknown":          {"DELETE FROM merchants", "queued", false, PlanAttempt},
		"disabled by hand": {"UPDATE merchants SET disabled_at = 1", "parked", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: address, WaitsMS: []int64{1000}})
				o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
					OutTradeNo: f.Out(), Amount: 100,
					Currency: paymenttest.Currency, Supplier: "sp-main", Subject: "x",
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T1", o.Amount)); err != nil {
					t.Fatal(err)
				}
				now := d.Now()
				row := breaker.Row{
					OwnerID: f.M1.ID, OwnerKind: recipient.Merchant, State: breaker.Open, Generation: 1, ByHand: c.byHand,
					Cause: breaker.InARow, ChangedAt: now, OpenUntil: now + time.Minute.Microseconds(), UpdatedAt: now,
				}
				if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, q := range []string{c.change, "UPDATE settings SET value = value + 1 WHERE name = 'config_version'"} {
					if _, err := d.NewRaw(q).Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				breakers := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} })
				if err := breakers.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := f.Settings.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				saysOfParked(t, New(d, f.Settings, breakers), o.OrderNo, c.told, c.plan)
			})
		})
	}
}

// saysOfParked compares what each page says about the order and its notification.
func saysOfParked(t *testing.T, b *Reader, orderNo, told string, plan PlanKind) {
	t.Helper()
	parked := told == "parked"
	page, err := b.Orders(t.Context(), ask(OrderList, "no", orderNo), list.Slice{})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].NotifyStatus != told {
		t.Errorf("the list of orders: %+v, %v", page.Rows, err)
	}
	sent, err := b.Deliveries(t.Context(), ask(DeliveryList, "no", orderNo), list.Slice{})
	if err != nil || len(sent.Rows) != 1 || sent.Rows[0].Parked != parked {
		t.Errorf("the list of notifications: %+v, %v", sent.Rows, err)
	}
	n, err := b.Notification(t.Context(), sent.Rows[0].PublicID, Which{})
	if err != nil || n.Parked != parked {
		t.Errorf("the notification's page: %+v, %v", n, err)
	}
	s, err := b.Story(t.Context(), orderNo)
	if err != nil {
		t.Fatal(err)
	}
	var planned PlanKind
	for _, i := range s.Items {
		if i.Queued != nil && s.Parked[i.Queued.ID] != parked {
			t.Errorf("the story's notification: %+v", i)
		}
		if i.Plan != nil {
			planned = i.Plan.Kind
			break
		}
	}
	if s.NotifyStatus != told || (s.Why.Breaker != nil) != parked || planned != plan {
		t.Errorf("the story: %s, %+v, %s is planned", s.NotifyStatus, s.Why, planned)
	}
	q, err := b.Queues(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range q.Lanes {
		if l.Name == "notify_delayed" && ((l.Rows == 1) != parked || (l.Age > 0) != parked || l.Overdue > 0) || l.Name == "notify" &&
			(l.Rows == 1) == parked {
			t.Errorf("the queues: %+v", l)
		}
	}
	m, err := b.Merchant(t.Context(), "m1", "")
	if err == nil && (m.Parked.Count == 1) != parked {
		t.Errorf("the merchant's page: %d parked", m.Parked.Count)
	}
}
