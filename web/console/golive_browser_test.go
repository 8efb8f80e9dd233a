package console

import (
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/callback"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/payment"
	"backstop/internal/report"
	"backstop/internal/sandbox"

	"github.com/chromedp/chromedp"
)

// takesPayments makes the server take callbacks and orders as the program does, and notify merchants
// on this machine.
func (h *harness) takesPayments(t *testing.T) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	nudger := notify.NewNudger(noTasks{}, h.DB.Now, log)
	t.Cleanup(nudger.Close)
	processor := payment.New(payment.Options{
		DB: h.DB, Settings: h.Settings, Ledger: ledger.New(h.DB), Nudger: nudger, CheckURL: func(string) error { return nil },
		Batch: 8, Writers: 1, Queue: 64, Wait: 30 * time.Second, Expiry: time.Hour, ExpiryMax: time.Hour, ClosingGrace: time.Minute, Log: log,
	})
	t.Cleanup(processor.Close)
	refusals := callback.NewRefusals(callback.RefusalOptions{DB: h.DB, Rate: 10, Rows: 1000, Log: log})
	t.Cleanup(refusals.Close)
	h.Server.Payments, h.Lines.Real = processor, toLoopback()
	h.Callbacks = callback.New(callback.Options{DB: h.DB, Settings: h.Settings, Payments: processor, Refusals: refusals, Wait: 30 * time.Second})
	h.node(t)
}

// An admin adds a merchant and a supplier, tries both, and takes the first payment to a notification that the
// merchant acknowledges: without a shell, in thirteen steps. Both pages say what is left, until nothing is.
func TestAMerchantAndASupplierGoLiveInABrowser(t *testing.T) {
	t.Parallel()
	h := openOn(t, dbtest.Default(t), "BACKSTOP_NOTIFY_ALLOW_CIDRS=127.0.0.0/8")
	h.takesPayments(t)
	merchant, err := fakemerchant.Open(fakemerchant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { merchant.Close() })
	do, looks, fine, end := h.onBrowserAs(t, access.Admin, 1440)
	k := &byKeyboard{do: do}
	var page, key string
	stepsDone := func(path string, want int) chromedp.Action {
		return chromedp.Tasks{at(path), becomes(fmt.Sprintf(`%s && document.querySelectorAll(".first ol .pill.ok").length === %d`, whole, want))}
	}
	looks("en", "light", "/merchants/new")
	k.step(t, into("code", "shop"), into("name", "Galaxy Shop"), into("url", merchant.URL()), onward(continues, "/merchants/shop/settings/review"))
	k.step(t, into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), chromedp.WaitVisible("#made-title", chromedp.ByQuery),
		chromedp.Text(".copied pre", &key, chromedp.ByQuery))
	k.step(t, chromedp.SendKeys("#ping-reason", agreed, chromedp.ByQuery), chromedp.Click(`form[action$="/ping"] button`, chromedp.ByQuery),
		stepsDone("/merchants/shop", 3), chromedp.Text("main", &page, chromedp.ByQuery))
	if !strings.Contains(page, "HTTP 200") || !strings.HasPrefix(key, "sk_live_") {
		t.Fatalf("the ping's answer: %s", page)
	}
	fine("golive-merchant")

	const settings, review = "/suppliers/quick/settings", "/suppliers/quick/settings/review"
	k.step(t, chromedp.Navigate("http://"+h.Addr+"/suppliers/new"), into("code", "quick"), picks("kind", "sortedparams"), onward(continues, settings))
	const supplierKey = "key-of-quickpay-0123456789"
	k.step(t, picks("config.algorithm", "hmac-sha256"), picks("config.sign_case", "lower"), into("config.key", supplierKey), into("config.order_field", "order_no"),
		into("config.trade_field", "trade_no"), into("config.amount_field", "amount"), picks("config.amount_unit", "minor"),
		into("config.currency", "CNY"), into("config.status_field", "status"), into("config.paid_values", "PAID"), onward(continues, review))
	k.step(t, into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), stepsDone(settings, 0), chromedp.Text("main", &page, chromedp.ByQuery))
	if !strings.Contains(page, "/callback/quick") {
		t.Errorf("the callback URL is not shown: %s", page)
	}
	fine("golive-supplier")
	k.step(t, onward(`main a[href="/suppliers/quick/playground"]`, "/suppliers/quick/playground"))
	k.step(t, chromedp.SetValue(`[name="request"]`, "POST /callback/quick HTTP/1.1\nContent-Type: application/x-www-form-urlencoded\n\n"+
		string(sandbox.Callback(supplierKey, "20261130000000000001", 1999).Body), chromedp.ByQuery),
		chromedp.Click(`form[action$="/playground"] button.primary`, chromedp.ByQuery), says("main", "What would happen"),
		chromedp.Text("main", &page, chromedp.ByQuery))
	for _, check := range []string{"signature", "HTTP 200"} {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(check)) {
			t.Errorf("the playground does not show %s: %s", check, page)
		}
	}
	k.step(t, chromedp.Navigate("http://"+h.Addr+settings), picks("enabled", "true"), onward(continues, review))
	k.step(t, into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), stepsDone(settings, 1))

	// The merchant's system creates an order, and the supplier says that it is paid.
	got := h.Api(t, key, http.MethodPost, "/api/v1/orders", `{"out_trade_no":"shop-1","amount":1999,"currency":"CNY","supplier":"quick","subject":"Telescope"}`)
	if got.Status != http.StatusCreated {
		t.Fatalf("create: %d %s", got.Status, got.Body)
	}
	no, _ := got.Object(t)["order_no"].(string)
	paid := h.Call(t, http.MethodPost, "/callback/quick", string(sandbox.Callback(supplierKey, no, 1999).Body), "Content-Type", "application/x-www-form-urlencoded")
	if paid.Status != http.StatusOK {
		t.Fatalf("callback: %d %s", paid.Status, paid.Body)
	}
	waittest.Until(t, "the merchant is notified", func() bool {
		return number(t, h.DB, "SELECT count(*) FROM deliveries WHERE event_type = 'order.paid' AND status = 'delivered'") == 1
	})
	if _, err := report.Fold(t.Context(), h.DB, h.Config.Timezone); err != nil {
		t.Fatal(err)
	}
	k.step(t, chromedp.Navigate("http://"+h.Addr+"/orders/"+no), says("h1", "Delivered"))
	fine("golive-order")
	for _, path := range []string{"/merchants/shop", "/suppliers/quick"} {
		k.step(t, chromedp.Navigate("http://"+h.Addr+path), becomes(whole+` && !document.querySelector("#next-title")`))
	}
	if k.steps > 15 || merchant.Count() != 2 {
		t.Errorf("%d steps, %d requests to the merchant", k.steps, merchant.Count())
	}
	end()
	if logged := h.Logged(); strings.Contains(logged, key) || strings.Contains(html.UnescapeString(logged), supplierKey) {
		t.Error("the log has a key")
	}
}
