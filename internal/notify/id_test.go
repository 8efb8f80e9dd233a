package notify_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/egress"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/notify/webhook"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// tablesOf are the tables that a restore takes back: all that a payment may write to.
func tablesOf(t *testing.T, d *db.DB) (names []string) {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
	if d.IsPostgres() {
		query = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace"
	}
	var all []string
	if err := d.NewRaw(query).Scan(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		apart := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !slices.ContainsFunc([]string{"bun_", "kept_", "audit", "nodes", "supplier"}, apart) {
			names = append(names, name)
		}
	}
	return names
}

// backUp copies the database as it is, and returns a function that takes it back there: the
// state that a lagging standby, or a backup, has.
func backUp(t *testing.T, d *db.DB) (restore func()) {
	t.Helper()
	run := func(query string) {
		t.Helper()
		if _, err := d.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	names := tablesOf(t, d)
	for _, name := range names {
		run("CREATE TABLE kept_" + name + " AS SELECT * FROM " + name)
	}
	return func() {
		t.Helper()
		for _, name := range names {
			run("DELETE FROM " + name)
		}
		for _, name := range names {
			run("INSERT INTO " + name + " SELECT * FROM kept_" + name)
		}
	}
}

// sentBy is what a merchant gets when the order is paid by a node that has just
// started: the id of the only notification, and the row behind it.
func sentBy(t *testing.T, d *db.DB, m *fakemerchant.Merchant, o *order.Order, started bool) (id string, row int64) {
	t.Helper()
	f := paymenttest.New(t, d, paymenttest.Options{Shared: true})
	channel := webhook.New(egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))
	disp := dispatcher(t, f, channel, 10)
	if started {
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T1", 10)); err != nil {
		t.Fatal(err)
	}
	before := m.Count()
	disp.Pull([]int64{f.M1.ID})
	waittest.Until(t, "the merchant has it", func() bool { return delivered(f, t) == 1 })
	stop(disp, 5*time.Second)
	requests := m.Requests()
	if len(requests) != before+1 {
		t.Fatalf("the merchant got %d more, want 1", len(requests)-before)
	}
	if err := fakemerchant.Verify(requests[before], f.M1.Secrets...); err != nil {
		t.Error(err)
	}
	return requests[before].ID, f.Count(t, "SELECT id FROM "+notify.AllEvents+" AS e")
}

// A payment that a failover or a restore has lost is repeated by its supplier. The merchant
// must recognise the notification, whatever else was lost with it: the version of the order
// differs where a pay call was lost too.
func TestALostPaymentIsNotifiedUnderTheSameID(t *testing.T) {
	t.Parallel()
	for name, started := range map[string][2]bool{
		"nothing else": {false, false}, "a started payment was lost too": {true, false}, "a payment is started afterwards": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				m, err := fakemerchant.Open(fakemerchant.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { m.Close() })
				f := paymenttest.New(t, d, paymenttest.Options{URL: m.URL(), WaitsMS: []int64{10}})
				o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
					OutTradeNo: "GX-1", Amount: 10, Currency: "CNY",
					Supplier: "sp-main",
				})
				if err != nil {
					t.Fatal(err)
				}
				restore := backUp(t, d)
				first, lost := sentBy(t, d, m, o, started[0])
				restore()
				f.Want(t, 0, "SELECT count(*) FROM "+notify.AllEvents+" AS e")
				again, row := sentBy(t, d, m, o, started[1])
				if first != again {
					t.Errorf("the lost notification was %s, its repeat is %s", first, again)
				}
				if lost == row {
					t.Error("both have one row's id: this test tests nothing")
				}
				if len(again) > 64 || strings.Trim(again, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
					t.Errorf("%q is no id for a header, a path or a file's name", again)
				}
			})
		})
	}
}

// A notification has one id: in the header, on the desk and in every look-up.
func TestANotificationHasOneID(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{}})
		first := paid(t, f, 1)[0]
		var event notify.Event
		if err := d.NewSelect().Model(&event).ModelTableExpr(notify.AllEvents + " AS e").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		id, row := notify.PublicID(event.SubjectID, event.Type), "ntf_"+strconv.FormatInt(event.ID, 36)
		if !strings.HasPrefix(event.Body, `{"id":"`+id+`"`) {
			t.Fatalf("the body of %s is %s", id, event.Body)
		}
		find := func(id string, want int64) {
			t.Helper()
			got, err := notify.FindEvent(t.Context(), d, id)
			if want == 0 && !errors.Is(err, notify.ErrNoDelivery) || want != 0 && (err != nil || got.ID != want) {
				t.Errorf("%q finds %+v, %v", id, got, err)
			}
		}
		find(id, event.ID)
		for _, none := range []string{
			row, row + "-order-paid-0", "ntf_0" + id[4:], "", "ntf_", "ntf_zz", "ntf_0", "x", id + "-", id[:len(id)-1] + "1", id + "0000",
			"ntf_zzzzzzzzzzzzzzzzzzzz", "ntf_1-order-paid-0\x00", "ntf_ZZ",
		} {
			find(none, 0)
		}
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result { return notify.Result{Class: notify.BadStatus, Status: 500} }}
		disp := dispatcher(t, f, ch, 10)
		exhausted := func(n int64) {
			t.Helper()
			waittest.Until(t, "it is on the desk", func() bool {
				return f.Count(t,
					"SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open' AND subject = ? AND seen = ?", id,
					n) == 1 && disp.InFlight() == 0
			})
		}
		disp.Offer([]queue.Nudge{first})
		exhausted(1)
		again, err := resend(t, d, first.Delivery)
		if err != nil {
			t.Fatal(err)
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE state = 'resolved'")
		disp.Offer([]queue.Nudge{again})
		exhausted(2)
		ch.mu.Lock()
		defer ch.mu.Unlock()
		if len(ch.sent) != 2 || ch.sent[0].ID != id || ch.sent[1].ID != id {
			t.Errorf("sent under %v, want %s twice", ch.sent, id)
		}
	})
}

// A look-up of a notification by its id uses an index.
func TestAnIDLeadsToItsEventByAnIndex(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	query := "SELECT * FROM " + notify.AllEvents + " AS e WHERE e.subject_id = 1 AND e.type = 'order.paid' ORDER BY e.version LIMIT 1"
	if plan := fmt.Sprint(dbtest.Plan(t, d, query)); strings.Contains(plan, "SCAN events") || strings.Contains(plan, "SCAN deliveries") {
		t.Errorf("%s: %s", query, plan)
	}
}

// Pings belong to no order, and each is a notification of its own.
func TestEachPingHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		ch := &fakeChannel{}
		p := notify.Pinger{DB: d, Channels: map[string]notify.Channel{notify.Webhook: ch}}
		seen := map[string]bool{}
		for i := range 3 {
			a, err := p.Ping(t.Context(), f.M1, &f.M1.Endpoints[0], d.NewID())
			if err != nil {
				t.Fatal(err)
			}
			if event, err := notify.FindEvent(t.Context(), d, a.Notification); err != nil || event.Type != notify.Ping ||
				ch.sent[i].ID != a.Notification || seen[a.Notification] {
				t.Errorf("%s was sent as %s and is kept as %+v, %v", a.Notification, ch.sent[i].ID, event, err)
			}
			seen[a.Notification] = true
		}
	})
}
