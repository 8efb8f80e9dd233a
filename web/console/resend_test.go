package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/egress"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/notify/webhook"
	"backstop/internal/order"
	"backstop/internal/recipient"
	"backstop/internal/settings"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// waiting is a merchant that refuses everything, whose breaker another node than the
// one with the console has opened, and notifications that wait for it.
type waiting struct {
	*harness
	t        *testing.T
	merchant *fakemerchant.Merchant
	nos, ids []string // of orders, and of their notifications
}

// openFor is how long the breaker stays open before it goes on by itself.
const openFor = time.Hour

func newWaiting(t *testing.T, d *db.DB, n int) *waiting {
	t.Helper()
	w := &waiting{harness: openOn(t, d), t: t}
	var err error
	if w.merchant, err = fakemerchant.Open(fakemerchant.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.merchant.Close() })
	w.merchant.Behave(fakemerchant.Answer(http.StatusServiceUnavailable, "down"))
	secret := w.Keys.Seal(settings.SecretPlace("m1"), []byte("0123456789abcdef0123456789abcdef"))
	w.exec("UPDATE merchants SET signing_secrets = ?, notify = ? WHERE id = 1", fmt.Sprintf("[%q]", secret),
		`{"urls":["`+w.merchant.URL()+
			`"],"ack":"status","schedule":"list","waits_ms":[3600000,3600000,3600000],"timeout_ms":60000,"max_in_flight":10}`)
	w.exec("UPDATE settings SET value = value + 1 WHERE name = 'config_version'")
	w.ReadSettings(t)
	for i := range n {
		w.add(i)
	}
	w.node(t)
	w.within("the breaker opens", func() bool { return number(t, d, "SELECT count(*) FROM breakers WHERE state = 'open'") == 1 })
	w.within("nothing runs", func() bool { return number(t, d, "SELECT count(*) FROM deliveries WHERE status = 'sending'") == 0 })
	return w
}

func (w *waiting) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *waiting) within(what string, ok func() bool) {
	w.t.Helper()
	waittest.Until(w.t, what, ok)
}

// add writes a paid order of m1 whose notification is due.
func (w *waiting) add(i int) {
	w.t.Helper()
	now, o, event := w.DB.Now(), w.DB.NewID(), w.DB.NewID()
	no, id := fmt.Sprintf("20261122%08d", i), "ntf_"+strconv.FormatInt(o, 36)+"-order-paid-0"
	for _, row := range []any{
		&order.Order{
			ID: o, OrderNo: no, OutTradeNo: "T" + no, MerchantID: 1, SupplierID: 1, Amount: 1999, Currency: "CNY", Exponent: 2,
			Status: order.Paid, Version: 2, PaidAmount: 1999, PaidAt: &now, CreatedAt: now, ExpiresAt: now,
		},
		&notify.Event{
			ID: event, MerchantID: 1, SubjectID: o, Type: "order.paid", Version: 2,
			Body: fmt.Sprintf(`{"id":%q,"type":"order.paid","data":{"order_no":%q}}`, id, no), CreatedAt: now,
		},
		&notify.Delivery{
			ID: w.DB.NewID(), EventID: event, RecipientID: 1, SubjectID: o, EventType: "order.paid", Channel: notify.Webhook,
			Status: notify.Queued, NextAt: &now, CreatedAt: now, Currency: "CNY", Amount: 1999,
		},
	} {
		if _, err := w.DB.NewInsert().Model(row).Exec(context.Background()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.nos, w.ids = append(w.nos, no), append(w.ids, id)
}

// toLoopback sends webhooks to this machine.
func toLoopback() notify.Channel {
	return webhook.New(egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))
}

// node is another node that sends to all merchants. It learns of operators' acts only through its ticks.
func (h *harness) node(t *testing.T) {
	book := breaker.NewCache(h.DB, func(recipient.Recipient) breaker.Policy {
		return breaker.Policy{Failures: 3, Open: openFor, Window: time.Minute}
	})
	log := slog.New(slog.DiscardHandler)
	disp := notify.NewDispatcher(notify.Options{
		DB: h.DB, Directory: h.Settings.Merchants, Channels: map[string]notify.Channel{notify.Webhook: toLoopback()},
		Nudger: notify.NewNudger(noTasks{}, h.DB.Now, log), Breakers: book, Concurrency: 10, Timeout: time.Minute, Log: log,
	})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			for _, b := range []*breaker.Cache{book, h.Breakers} {
				if err := b.Refresh(context.Background()); err != nil {
					t.Error(err)
				}
			}
			for _, m := range h.Settings.Merchants().All() {
				disp.Pull([]int64{m.ID})
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		disp.Close(ctx)
	})
}

// noTasks takes no nudge: the ticks find what is due.
type noTasks struct{}

func (noTasks) Notify(context.Context, queue.Lane, []queue.Nudge) error { return nil }
func (noTasks) NotifyAt(context.Context, queue.Lane, time.Time, []queue.Nudge) error {
	return nil
}
func (noTasks) Expire(context.Context, time.Time) error { return nil }

// sentSince are the ids that the merchant got after its first n requests.
func (w *waiting) sentSince(n int) (ids []string) {
	for _, r := range w.merchant.Requests()[n:] {
		ids = append(ids, r.ID)
	}
	return ids
}

// send fills in the form on an order's page.
func (w *waiting) send(cookie string, i int, how string) webtest.Answer {
	w.t.Helper()
	path := "/orders/" + w.nos[i]
	form := append(formOf(w.t, w.Page(w.t, cookie, path).Body, path+"/resend"), "reason", "the merchant asked by phone")
	if how != "" {
		form = append(form, "how", how)
	}
	return w.Post(w.t, cookie, path+"/resend", form...)
}

// says waits until an order's page contains a text.
func (w *waiting) says(cookie string, i int, text string) {
	w.t.Helper()
	w.within("the page says "+text, func() bool {
		return strings.Contains(w.Page(w.t, cookie, "/orders/"+w.nos[i]+"?lang=en").Body, text)
	})
}

func TestWhatABreakerHoldsBackIsSentAsThePersonChooses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWaiting(t, d, 12)
		support, ops := w.SignIn(t, access.Support), w.SignIn(t, access.Ops)
		sent := w.merchant.Count()

		page := w.Page(t, support, "/orders/"+w.nos[8]+"?lang=en").Body
		inOrder(t, page, "The breaker of m1 is open: this notification waits for the probe at", "Queue it",
			"Send this one as the probe now")
		if strings.Contains(page, `value="close"`) || !strings.Contains(w.Page(t, ops, "/orders/"+w.nos[8]).Body, `value="close"`) {
			t.Error("the breaker is offered to be closed to who may not, or not to who may")
		}
		if got := w.send(support, 8, "close"); got.Status != http.StatusForbidden {
			t.Errorf("closing without the permission: %d", got.Status)
		}
		if got := w.send(support, 8, "elsewhere"); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("another choice: %d", got.Status)
		}
		if strings.Contains(page, "Resent at") {
			t.Error("nothing was sent again yet, but the page says so")
		}

		// Queued, it waits, however often the page is opened; no URL makes the page promise
		// more.
		if got := w.send(support, 8, "queue"); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/orders/"+w.nos[8] {
			t.Fatalf("queued: %d %s", got.Status, got.Header.Get("Location"))
		}
		w.says(support, 8, "queued, waiting for the breaker; the next probe is at")
		for _, path := range []string{"?lang=en&done=resend", "?lang=en&form=xyz"} {
			if page := w.Page(t, support, "/orders/"+w.nos[8]+path).Body; strings.Contains(page, "within seconds") ||
				strings.Contains(page, "notice ok") {
				t.Errorf("the address %s makes the page promise something", path)
			}
		}
		waittest.Stays(t, "nothing is sent", 200*time.Millisecond, func() bool { return len(w.sentSince(sent)) == 0 })

		// As the probe, it is sent alone; it fails, and waits for the next probe.
		if got := w.send(support, 9, "probe"); got.Status != http.StatusSeeOther {
			t.Fatalf("as the probe: %d %s", got.Status, got.Body)
		}
		w.within("it is tried", func() bool { return w.merchant.Count() == sent+1 })
		w.says(support, 9, "queued, waiting for the breaker; the next probe is at")
		if ids := w.sentSince(sent); len(ids) != 1 || ids[0] != w.ids[9] {
			t.Errorf("%v were sent, want %s", ids, w.ids[9])
		}

		// A second one meanwhile is refused, and changes nothing.
		seen := make(chan struct{}) // that it runs
		hangUp := sync.OnceFunc(func() { close(seen) })
		t.Cleanup(hangUp)
		w.merchant.Behave(func(*fakemerchant.Exchange) {
			<-seen
			panic(http.ErrAbortHandler)
		})
		if got := w.send(support, 9, "probe"); got.Status != http.StatusSeeOther {
			t.Fatalf("as the probe again: %d", got.Status)
		}
		w.says(ops, 10, "a probe is under way")
		form := append(formOf(t, w.Page(t, ops, "/orders/"+w.nos[10]).Body, "/orders/"+w.nos[10]+"/resend"), "reason", "asked for by phone",
			"how", "probe")
		if got := w.Post(t, ops, "/orders/"+w.nos[10]+"/resend", form...); got.Status != http.StatusConflict ||
			!strings.Contains(got.Body, "正在用另一条通知探测") || !strings.Contains(w.Logged(), `"code":"probe_running"`) {
			t.Errorf("while another probe runs: %d", got.Status)
		}
		if n := number(t, d, "SELECT count(*) FROM audit WHERE action = 'notification.resend' AND object_id = '"+w.nos[10]+"'"); n != 0 {
			t.Error("what was refused is in the audit")
		}

		// Taken, it closes the breaker; the page shows when it was delivered.
		hangUp()
		w.within("it has failed", func() bool { return number(t, d, "SELECT count(*) FROM breakers WHERE state = 'open'") == 1 })
		w.merchant.Behave(fakemerchant.Answer(http.StatusOK, "success"))
		if got := w.send(support, 9, "probe"); got.Status != http.StatusSeeOther {
			t.Fatalf("as the probe at last: %d", got.Status)
		}
		w.says(support, 9, "delivered at")
		w.says(support, 8, "delivered at") // it was queued
		var params struct{ How, Delivery, Notification string }
		var raw string
		if err := d.NewRaw("SELECT params FROM audit WHERE action = 'notification.resend' ORDER BY number DESC LIMIT 1").Scan(t.Context(),
			&raw); err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal([]byte(raw), &params) != nil || params.How != "probe" || params.Notification != w.ids[9] {
			t.Errorf("the audit keeps %s", raw)
		}
	})
}

// An operator who may do so closes the breaker with the same form: all that waits follows.
func TestABreakerIsClosedWithWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWaiting(t, d, 8)
		ops := w.SignIn(t, access.Ops)
		w.exec("UPDATE breakers SET by_hand = TRUE, open_until = 0, generation = generation + 1")
		support := w.SignIn(t, access.Support)
		inOrder(t, w.Page(t, support, "/orders/"+w.nos[7]+"?lang=en").Body,
			"An operator opened the breaker of m1: this notification waits until an operator closes it", "Queue it")
		if strings.Contains(w.Page(t, support, "/orders/"+w.nos[7]).Body, `value="probe"`) {
			t.Error("a probe is offered to who may not take the breaker out of another's hand")
		}
		if got := w.send(support, 7, "probe"); got.Status != http.StatusForbidden {
			t.Errorf("a probe past another's hand: %d", got.Status)
		}
		w.send(support, 7, "queue")
		w.says(support, 7, "queued, waiting until the manually opened breaker is closed")
		w.merchant.Behave(fakemerchant.Answer(http.StatusOK, "success"))
		sent := w.merchant.Count()
		w.exec("UPDATE deliveries SET next_at = ? WHERE next_at IS NOT NULL", d.Now())
		if got := w.send(ops, 6, "close"); got.Status != http.StatusSeeOther {
			t.Fatalf("close: %d %s", got.Status, got.Body)
		}
		w.within("all are delivered",
			func() bool { return number(t, d, "SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 8 })
		w.says(support, 7, "delivered at")
		if ids := w.sentSince(sent); len(ids) != 8 {
			t.Errorf("%d were sent", len(ids))
		}
		if n := number(t, d,
			"SELECT count(*) FROM audit WHERE action IN ('breaker.close', 'notification.resend') AND actor = 'operator:the.ops'"); n != 2 {
			t.Errorf("%d acts are in the audit, want the closing and the sending", n)
		}
	})
}

// TestAPersonResendsAtAnOpenBreakerInABrowser makes each of the choices with a
// pointer, reads what the page says of it, and asks the merchant what came.
func TestAPersonResendsAtAnOpenBreakerInABrowser(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, dbtest.Default(t), 10)
	if _, err := w.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, w.Addr)
	base := "http://" + w.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "li.hang", webtest.GoodPassword, "/"))
	if *screenshots != "" {
		for _, theme := range []string{"light", "dark"} {
			for _, lang := range []string{"zh", "en"} {
				run(t, ctx, reads(base, lang, theme), chromedp.Navigate(base+"/orders/"+w.nos[9]), becomes(whole),
					chromedp.Click(`[data-open="#resend"]`), chromedp.WaitVisible("#resend-reason"))
				takeScreenshot(t, ctx, "resend-"+lang+"-"+theme)
				run(t, ctx, chromedp.Navigate(base+"/notifications"), becomes(whole), chromedp.Click("[data-all]"),
					chromedp.Click("button[value=rows]"), chromedp.WaitVisible("#run-reason"))
				takeScreenshot(t, ctx, "plan-"+lang+"-"+theme)
			}
		}
	}
	run(t, ctx, reads(base, "en", "light"))
	sends := func(i int, how string) {
		t.Helper()
		page := "/orders/" + w.nos[i]
		run(t, ctx, chromedp.Navigate(base+page), becomes(whole), chromedp.Click(`[data-open="#resend"]`),
			chromedp.WaitVisible("#resend-reason"))
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the dialog: %s", strings.Join(found, "; "))
		}
		run(t, ctx, chromedp.Click(`#resend input[value=`+how+`]`), chromedp.SendKeys("#resend-reason", "asked for by phone"),
			chromedp.Click("#resend button.primary"), at(page), chromedp.WaitVisible("#resent"))
	}
	reads := func(i int, text string) {
		t.Helper()
		var page string
		w.within(fmt.Sprintf("the page of order %d says %s", i, text), func() bool {
			run(t, ctx, chromedp.Reload(), chromedp.WaitVisible("#resent"), chromedp.Text("#resent", &page))
			return strings.Contains(page, text)
		})
	}
	sent := w.merchant.Count()
	sends(7, "queue")
	reads(7, "queued, waiting for the breaker; the next probe is at")
	if *screenshots != "" {
		takeScreenshot(t, ctx, "resent-en-light")
	}
	if ids := w.sentSince(sent); len(ids) != 0 {
		t.Errorf("the merchant got %v of what was queued", ids)
	}
	sends(8, "probe")
	w.within("it is tried", func() bool { return w.merchant.Count() > sent })
	reads(8, "queued, waiting for the breaker; the next probe is at")
	if ids := w.sentSince(sent); len(ids) != 1 || ids[0] != w.ids[8] {
		t.Errorf("the merchant received %v as the probe, want %s", ids, w.ids[8])
	}
	w.merchant.Behave(fakemerchant.Answer(http.StatusOK, "success"))
	sent = w.merchant.Count()
	w.exec("UPDATE deliveries SET next_at = ? WHERE status = 'retry_wait'", w.DB.Now())
	sends(9, "close")
	reads(9, "delivered at")
	w.within("the others follow", func() bool { return w.merchant.Count() >= sent+len(w.ids) })
	got := strings.Join(w.sentSince(sent), " ")
	for i, id := range w.ids {
		if strings.Count(got, id) != 1 {
			t.Errorf("the merchant got notification %d %d times: %s", i, strings.Count(got, id), got)
		}
	}
	run(t, ctx, chromedp.Navigate(base+"/orders/"+w.nos[7]), chromedp.WaitVisible("#resent"))
	reads(7, "delivered at")
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// A plan for a merchant whose breaker is open says what waits for it, asks for the
// amount of each currency, and then counts what is stored.
func TestAPlanSaysWhatWaitsForABreaker(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWaiting(t, d, 25)
		hkd := "(SELECT d.id FROM deliveries AS d ORDER BY d.id DESC LIMIT 2)"
		w.exec("UPDATE deliveries SET currency = 'HKD', amount = 350 WHERE id IN " + hkd)
		ops := w.SignIn(t, access.Ops)
		plan := w.Post(t, ops, "/batches/plan/notifications/resend?merchant=m1", "pick", "all").Header.Get("Location")
		page := w.Page(t, ops, plan+"?lang=en").Body
		inOrder(t, page, "Waits for the breaker", ">25<", "459.77", "7.00", "25 of them wait for a breaker", "Type the amount 459.77 (CNY)",
			"Type the amount 7.00 (HKD)")
		if strings.Contains(page, "still waiting") {
			t.Error("it shows results of a plan that was not run")
		}
		form := append(formOf(t, page, plan+"/start"), "reason", "their server is back")
		for _, fields := range [][]string{{}, {"amount_CNY", "459.77"}, {"amount_CNY", "459.77", "amount_HKD", "7"}} {
			if got := w.Post(t, ops, plan+"/start",
				append(form[:len(form):len(form)], fields...)...); got.Status != http.StatusUnprocessableEntity {
				t.Errorf("with %v typed: %d", fields, got.Status)
			}
		}
		sent := w.merchant.Count()
		if got := w.Post(t, ops, plan+"/start", append(form, "amount_CNY", "459.77", "amount_HKD",
			"7.00")...); got.Status != http.StatusSeeOther {
			t.Fatalf("the run: %d %s", got.Status, got.Body)
		}
		w.over(t, plan)
		if page := w.Page(t, ops, plan+"?lang=en").Body; !strings.Contains(page, "0 notified, 0 refused, 25 still waiting") {
			t.Error("the plan does not say that all of it still waits")
		}
		waittest.Stays(t, "none is sent past the breaker", 200*time.Millisecond, func() bool { return w.merchant.Count() == sent })
		w.merchant.Behave(fakemerchant.Answer(http.StatusOK, "success"))
		w.exec("UPDATE breakers SET open_until = 1")
		w.within("the plan says that all were notified", func() bool {
			return strings.Contains(w.Page(t, ops, plan+"?lang=en").Body, "25 notified, 0 refused, 0 still waiting")
		})
	})
}
