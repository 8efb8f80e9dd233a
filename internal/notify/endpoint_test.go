package notify_test

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
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/report"
	"backstop/internal/settings"
)

// routed changes the notification settings of m1 and informs the fixture's node.
func routed(t *testing.T, f *paymenttest.Fixture, change func(*merchant.Settings)) {
	t.Helper()
	s := f.Settings.Merchants().ByCode("m1").Settings
	change(&s)
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	reconfigure(t, f, "UPDATE merchants SET notify = ? WHERE code = 'm1'", string(raw))
}

// reconfigure changes a settings row and lets the fixture's node know.
func reconfigure(t *testing.T, f *paymenttest.Fixture, query string, args ...any) {
	t.Helper()
	err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewRaw(query, args...).Exec(ctx); err != nil {
			return err
		}
		return settings.IncrementVersion(ctx, tx)
	})
	if err == nil {
		err = f.Settings.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// subscribe makes a subscriber that follows all merchants.
func subscribe(t *testing.T, f *paymenttest.Fixture, code string, events ...string) {
	t.Helper()
	raw, err := json.Marshal(merchant.Settings{
		URLs: []string{"http://" + code + ".test/e"}, Ack: "status", WaitsMS: []int64{10}, TimeoutMS: 2000, MaxInFlight: 5, Events: events,
	})
	if err != nil {
		t.Fatal(err)
	}
	reconfigure(t, f, "INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at)"+
		" VALUES (?, ?, ?, 'null', '[]', ?, 0, 0)", f.DB.NewID(), code, code, string(raw))
}

// hosts is a fake channel of several addresses: what each answers and got.
type hosts struct {
	fakeChannel
	mu     sync.Mutex
	status map[string]int
}

func newHosts() *hosts {
	h := &hosts{status: map[string]int{}}
	h.answer = func(_ int, m notify.Message) notify.Result {
		h.mu.Lock()
		defer h.mu.Unlock()
		for part, status := range h.status {
			if strings.Contains(m.URL, part) && status >= 300 {
				class := notify.BadStatus
				if status == 410 {
					class = notify.Gone
				}
				return notify.Result{Class: class, Status: status, Error: "no"}
			}
		}
		return notify.Result{Class: notify.OK, Status: 200}
	}
	return h
}

func (h *hosts) set(part string, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status[part] = status
}

// got counts what addresses that contain the part were sent.
func (h *hosts) got(part string) (n int) {
	h.fakeChannel.mu.Lock()
	defer h.fakeChannel.mu.Unlock()
	for _, m := range h.sent {
		if strings.Contains(m.URL, part) {
			n++
		}
	}
	return n
}

// drain delivers until nothing is due any more.
func drain(t *testing.T, f *paymenttest.Fixture, disp *notify.Dispatcher) {
	t.Helper()
	var pulled []int64
	waittest.Until(t, "all over", func() bool {
		var owners []int64
		if err := f.DB.NewRaw("SELECT DISTINCT recipient_id FROM deliveries WHERE next_at IS NOT NULL").Scan(t.Context(),
			&owners); err != nil {
			t.Fatal(err)
		}
		disp.Pull(owners)
		if wrong, err := report.Recount(t.Context(), f.DB); err != nil || len(wrong) > 0 {
			t.Fatalf("unnotified money: %+v, %v", wrong, err)
		}
		if wrong, err := report.RecountOrders(t.Context(), f.DB, 100*time.Hour); err != nil || len(wrong) > 0 {
			t.Fatalf("orders notified: %+v, %v", wrong, err)
		}
		// What still reads due rows would take those that the test makes next.
		pulled = append(pulled, owners...)
		return len(owners) == 0 && !slices.ContainsFunc(pulled, func(id int64) bool { return notify.Reading(disp, id) })
	})
}

// ordersNotified fails where other orders than these were raised and notified of in
// the last minutes; each is of 10.
func ordersNotified(t *testing.T, f *paymenttest.Fixture, raised, notified int64) {
	t.Helper()
	waittest.Until(t, "folded", func() bool {
		n, err := report.Fold(t.Context(), f.DB, time.UTC)
		return err == nil && n == 0
	})
	var want []report.Notified
	if raised > 0 {
		want = append(want, report.Notified{
			Currency: "CNY", Raised: raised, RaisedAmount: 10 * raised, Notified: notified,
			NotifiedAmount: 10 * notified,
		})
	}
	now := f.DB.Now()
	if got, err := report.Orders(t.Context(), f.DB, now-10*time.Minute.Microseconds(), now, time.Minute); err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("orders notified: %+v, %v, want %+v", got, err, want)
	}
}

var twoAddresses = []string{"http://a.test/n", "http://b.test/n"}

func TestAFailingEndpointIsPassedOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10, 10}})
		routed(t, f, func(s *merchant.Settings) { s.URLs = twoAddresses })
		ch := newHosts()
		ch.set("a.test", 500)
		disp := dispatcher(t, f, ch, 1)
		for range 6 { // one after the other: each sees what became of the one before
			paid(t, f, 1)
			drain(t, f, disp)
		}
		f.Want(t, 6, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
		if a, b := ch.got("a.test"), ch.got("b.test"); a != 3 || b != 6 {
			t.Errorf("%d attempts at the failing address and %d at the other one, want 3 and 6", a, b)
		}
		f.Want(t, 3, "SELECT failures FROM endpoint_health WHERE endpoint = ? AND last_error = 'no'", twoAddresses[0])
		wentWell(t, f, twoAddresses[1])

		ch.set("a.test", 200)
		other := dispatcher(t, f, ch, 1) // a node that starts later knows it too
		paid(t, f, 1)
		drain(t, f, other)
		if a := ch.got("a.test"); a != 3 {
			t.Error("a fresh node tries the failing address first")
		}
		// Half a minute later it is tried again, and the first success is written down.
		if _, err := d.NewRaw("UPDATE endpoint_health SET last_failed_at = last_failed_at - 60000000").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A plain result may lose its endpoint's success to another transaction: the next one is written.
		third := dispatcher(t, f, ch, 1)
		wentWellBy(t, f, twoAddresses[0], func() {
			paid(t, f, 1)
			drain(t, f, third)
		})
	})
}

// A transaction that is repeated writes the success again; once it is committed, no further one is written
// for a while.
func TestARepeatedTransactionWritesTheSuccessOfAnEndpoint(t *testing.T) {
	t.Parallel()
	if first, repeat, after := notify.HealthWrites(time.Now().UnixMicro()); first != 1 || repeat != 1 || after != 0 {
		t.Errorf("it is written %d times, in the repeat %d, and after the commit %d, want 1, 1 and 0", first, repeat, after)
	}
}

// wentWell waits for the success of an endpoint: it is written after the delivery has ended.
func wentWell(t *testing.T, f *paymenttest.Fixture, endpoint string) {
	t.Helper()
	wentWellBy(t, f, endpoint, func() {})
}

// wentWellBy is wentWell that does something before each look.
func wentWellBy(t *testing.T, f *paymenttest.Fixture, endpoint string, do func()) {
	t.Helper()
	waittest.Until(t, "the success at "+endpoint, func() bool {
		do()
		var n int
		err := f.DB.NewRaw("SELECT count(*) FROM endpoint_health WHERE endpoint = ? AND failures = 0 AND last_ok_at > 0", endpoint).Scan(t.Context(), &n)
		return err == nil && n == 1
	})
}

func TestAnEndpointThatIsGoneIsDisabled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10, 10}})
		routed(t, f, func(s *merchant.Settings) { s.URLs = twoAddresses })
		ch := newHosts()
		ch.set("a.test", 410)
		disp := dispatcher(t, f, ch, 20)
		paid(t, f, 5)
		drain(t, f, disp)
		f.Want(t, 5, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
		f.Want(t, 1, "SELECT count(*) FROM endpoint_health WHERE endpoint = ? AND disabled_at > 0 AND reason = 'answered 410'",
			twoAddresses[0])
		f.Want(t, 1, "SELECT count FROM alerts WHERE rule = 'target_disabled' AND subject = 'm1 – a.test'")
		refresh(t, f)
		asked := ch.got("a.test")
		paid(t, f, 3)
		drain(t, f, disp)
		if n := ch.got("a.test"); n != asked {
			t.Errorf("a disabled endpoint got %d more", n-asked)
		}

		// The last one gone as well, what comes goes to the desk at once.
		ch.set("b.test", 410)
		paid(t, f, 1)
		drain(t, f, disp)
		f.Want(t, 1, "SELECT attempts FROM deliveries WHERE status = 'exhausted'")
		refresh(t, f)
		paid(t, f, 1)
		drain(t, f, disp)
		f.Want(t, 1, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'bad_address' AND url = ''")
		f.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open'")

		// Enabled again, what is sent again arrives.
		ch.set("b.test", 200)
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return notify.EnableEndpoint(ctx, tx, f.M1.ID, twoAddresses[1])
		})
		if err != nil {
			t.Fatal(err)
		}
		refresh(t, f)
		again(t, f, notify.Exhausted, 2)
		drain(t, f, disp)
		f.Want(t, 0, "SELECT count(*) FROM deliveries WHERE status <> 'delivered'")
	})
}

func TestAnOrdersOwnURLThatIsGoneEndsItsDelivery(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10, 10}})
		ch := newHosts()
		ch.set("shop", 410)
		b := newBreakers(f, breaker.Policy{Failures: 1, Open: time.Hour, Window: time.Minute})
		disp := dispatcherWith(t, f, ch, 10, b)
		send := func(own string) {
			t.Helper()
			n := paid(t, f, 1)
			if _, err := d.NewRaw("UPDATE deliveries SET url = ? WHERE id = ?", own, n[0].Delivery).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			drain(t, f, disp)
		}
		for _, own := range []string{"http://shop.test/n?o=1", "http://shop.test/n?o=2", "http://shop.test:80/", "http://shop2.test/n"} {
			send(own)
		}
		f.Want(t, 4, "SELECT count(*) FROM deliveries WHERE status = 'exhausted' AND attempts = 1 AND last_class = 'gone'")
		f.Want(t, 4, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'gone' AND http_status = 410")
		f.Want(t, 4, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open'")
		f.Want(t, 1, "SELECT count FROM alerts WHERE rule = 'target_disabled' AND subject = 'm1 – shop.test'")
		f.Want(t, 1, "SELECT count FROM alerts WHERE rule = 'target_disabled' AND subject = 'm1 – shop2.test'")
		f.Want(t, 0, "SELECT count(*) FROM endpoint_health WHERE disabled_at IS NOT NULL")
		if _, err := d.NewRaw("UPDATE alerts SET opened_at = 0, incident_id = 0").Exec(t.Context()); err != nil { // long ago, and closed
			t.Fatal(err)
		}
		send("http://shop.test/n?o=3")
		f.Want(t, 2, "SELECT count(*) FROM alerts")
		if b.Of(f.M1.Recipient()).Tripped() {
			t.Error("it opened the breaker")
		}
		send("") // the merchant's endpoint
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
		ch.set("shop", 200)
		again(t, f, notify.Exhausted, 5)
		drain(t, f, disp)
		f.Want(t, 6, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
	})
}

func TestGoneAtTheLastEndpointEndsTheDelivery(t *testing.T) {
	t.Parallel()
	for name, urls := range map[string][]string{"one": {"http://a.test/n"}, "both": twoAddresses} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10, 10, 10}})
				routed(t, f, func(s *merchant.Settings) { s.URLs = urls })
				ch := newHosts()
				ch.set(".test", 410)
				disp := dispatcher(t, f, ch, 1)
				paid(t, f, 1)
				waittest.Until(t, "it is exhausted", func() bool {
					// This node may send before it has read that an endpoint is disabled.
					if f.Count(t, "SELECT count(*) FROM endpoint_health WHERE disabled_at IS NOT NULL") == int64(len(urls)) {
						if err := f.Settings.Refresh(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					disp.Pull([]int64{f.M1.ID})
					return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted' AND last_class = 'gone'") == 1
				})
				f.Want(t, int64(len(urls)), "SELECT count(*) FROM endpoint_health WHERE disabled_at > 0")
				f.Want(t, 0, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class <> 'gone'")
			})
		})
	}
}

func refresh(t *testing.T, f *paymenttest.Fixture) {
	t.Helper()
	was := f.Settings.Current().Version
	if err := f.Settings.Refresh(t.Context()); err != nil || f.Settings.Current().Version == was {
		t.Fatalf("the settings did not move: %v", err)
	}
}

// TestAllEndpointsAreNotifiedAndTheMoneyCountsOnce has one address that never answers well: the
// order is notified when both are.
func TestAllEndpointsAreNotifiedAndTheMoneyCountsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10}})
		routed(t, f, func(s *merchant.Settings) { s.URLs, s.Balance = twoAddresses, merchant.All })
		ch := newHosts()
		ch.set("b.test", 500)
		one, two := dispatcher(t, f, ch, 20), dispatcher(t, f, ch, 20)
		nudges := paid(t, f, 20)
		f.Want(t, 40, "SELECT count(*) FROM deliveries WHERE shared AND currency = 'CNY' AND amount = 10")
		one.Offer(nudges)
		two.Offer(nudges)
		drain(t, f, one)
		f.Want(t, 20, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND endpoint = ?", twoAddresses[0])
		f.Want(t, 20, "SELECT count(*) FROM deliveries WHERE status = 'exhausted' AND endpoint = ?", twoAddresses[1])
		f.Want(t, 20, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted'")
		told := func() string {
			var rows []notify.Delivery
			if err := d.NewSelect().Model(&rows).Where("d.subject_id = (SELECT max(o.id) FROM orders AS o)").OrderExpr("d.id DESC").Scan(
				t.Context()); err != nil {
				t.Fatal(err)
			}
			return notify.OrderStatus(rows, false)
		}
		if s := told(); s != "exhausted" {
			t.Errorf("one of two notified: %s", s)
		}
		ordersNotified(t, f, 20, 0)
		ch.set("b.test", 200)
		again(t, f, notify.Exhausted, 20)
		if s := told(); s != "retrying" {
			t.Errorf("sent again: %s", s)
		}
		drain(t, f, one)
		f.Want(t, 20, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'resolved'")
		if s := told(); s != "delivered" {
			t.Errorf("both notified: %s", s)
		}
		if a, b := ch.got("a.test"), ch.got("b.test"); a != 20 || b != 60 {
			t.Errorf("%d and %d attempts, want 20 and 60", a, b)
		}
		ordersNotified(t, f, 20, 20)
		again(t, f, notify.Delivered, 40)
		drain(t, f, one)
		ordersNotified(t, f, 20, 20)
	})
}

func TestAnExceptionStaysUntilItsLastEndpointIsSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		routed(t, f, func(s *merchant.Settings) { s.URLs, s.Balance, s.WaitsMS = twoAddresses, merchant.All, nil })
		ch := newHosts()
		ch.set(".test", 500)
		disp := dispatcher(t, f, ch, 20)
		nudges := paid(t, f, 1)
		drain(t, f, disp)
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'")
		ch.set(".test", 200)
		for i, open := range []int64{1, 0} {
			if _, err := resend(t, d, nudges[i].Delivery); err != nil {
				t.Fatal(err)
			}
			f.Want(t, open, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open'")
		}
		drain(t, f, disp)
	})
}

func TestWhatIsSwitchedOffIsSkippedAndVisible(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10}})
		routed(t, f, func(s *merchant.Settings) { s.URLs, s.Events = twoAddresses, []string{"order.closed"} })
		ch := newHosts()
		disp := dispatcher(t, f, ch, 20)
		paid(t, f, 1)
		drain(t, f, disp)
		f.Want(t, 1,
			"SELECT count(*) FROM deliveries WHERE status = 'skipped' AND last_class = 'switched_off' AND finished_at > 0 AND next_at IS NULL")
		f.Want(t, 0, "SELECT count(*) FROM exceptions")
		if n := ch.count(); n != 0 {
			t.Fatalf("%d attempts of what is switched off", n)
		}
		ordersNotified(t, f, 0, 0)
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: "closed", Amount: 10, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
			t.Fatal(err)
		}
		drain(t, f, disp)
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND event_type = 'order.closed'")
	})
}

// TestSubscribersAreNotifiedByTheSameRows has a warehouse that subscribes to paid orders and is
// down at first, and a data lake that subscribes to everything.
func TestSubscribersAreNotifiedByTheSameRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		subscribe(t, f, "warehouse", "order.paid")
		subscribe(t, f, "lake")
		if f.Settings.Merchants().ByCode("lake") != nil {
			t.Fatal("a subscriber is found as a merchant")
		}
		ch := newHosts()
		ch.set("warehouse", 500)
		disp := dispatcher(t, f, ch, 20)
		paid(t, f, 3)
		f.Want(t, 6,
			"SELECT count(*) FROM deliveries WHERE to_subscriber AND currency = '' AND recipient_id IN (SELECT s.id FROM subscriptions AS s)")
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE NOT to_subscriber AND NOT shared AND currency = 'CNY'")
		drain(t, f, disp)
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE to_subscriber AND status = 'exhausted'")
		f.Want(t, 3,
			fmt.Sprintf(
				"SELECT count(*) FROM exceptions WHERE kind = 'subscription_exhausted' AND merchant_id = %d AND CAST(detail AS TEXT) LIKE '%%\"warehouse\"%%'", f.M1.ID))
		f.Want(t, 1,
			"SELECT count(*) FROM breakers WHERE owner_kind = 'subscriber' AND owner_id = (SELECT s.id FROM subscriptions AS s WHERE s.code = 'warehouse')")
		f.Want(t, 1,
			"SELECT count(*) FROM endpoint_health WHERE to_subscriber AND failures > 0 AND recipient_id = (SELECT s.id FROM subscriptions AS s WHERE s.code = 'warehouse')")
		risk, err := report.AtRisk(t.Context(), d)
		if err != nil || risk.Total.Orders() != 0 {
			t.Errorf("money at risk: %+v, %v", risk.Total, err)
		}
		ch.set("warehouse", 200)
		again(t, f, notify.Exhausted, 3)
		f.Want(t, 3, "SELECT count(*) FROM exceptions WHERE kind = 'subscription_exhausted' AND state = 'resolved'")
		drain(t, f, disp)
		if w, l, m := ch.got("warehouse"), ch.got("lake"), ch.got("m1.test"); w != 9 || l != 3 || m != 3 {
			t.Errorf("warehouse %d, lake %d, merchant %d attempts", w, l, m)
		}
	})
}

func TestWeightsShareTheLoad(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10}})
	routed(t, f, func(s *merchant.Settings) {
		s.Balance = merchant.Weighted
		for name, weight := range map[string]int{"light": 1, "heavy": 3} {
			s.Endpoints = append(s.Endpoints, merchant.Endpoint{
				Name: name, Channel: notify.Webhook, URL: "http://" + name + ".test",
				Weight: weight,
			})
		}
	})
	ch := newHosts()
	disp := dispatcher(t, f, ch, 50)
	paid(t, f, 400)
	drain(t, f, disp)
	// 300 on average; the chance of being 40 off (more than four deviations) is one
	// in ten thousand, and the ids are not the same in two runs.
	if n := ch.got("heavy"); n < 260 || n > 340 || n+ch.got("light") != 400 {
		t.Errorf("%d of 400 went to the endpoint with three quarters of the weight", n)
	}
}
