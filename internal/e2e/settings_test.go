package e2e

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sendFilled sends a form of a page with more fields.
func (v *visitor) sendFilled(page, action string, fields url.Values) {
	v.t.Helper()
	v.open(page)
	form := hiddenOf(v.t, v.page, action)
	maps.Copy(form, fields)
	v.send(action, form)
}

// A merchant and a supplier are added by forms alone; a real callback of that supplier becomes a
// delivered notification of that merchant, and what was set is exported as it is.
func TestSettingsMadeInTheConsoleCarryAPayment(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		w.start("")
		v := &visitor{browser: w.signIn("ada", "admin")}
		agreed := url.Values{"reason": {"agreed in the contract"}}

		const merchant, supplier = "/merchants/shop/settings", "/suppliers/quick/settings"
		v.sendFilled("/merchants/new", "/merchants/new", url.Values{"code": {"shop"}, "name": {"Shop"}, "url": {w.merchant.URL()}})
		form := hiddenOf(t, v.page, merchant+"/review")
		maps.Copy(form, agreed)
		v.show(merchant+"/review", form)
		key := regexp.MustCompile(`sk_live_[0-9a-f]{48}`).FindString(v.page)
		signing := regexp.MustCompile(`whsec_[A-Za-z0-9+/]+=*`).FindString(v.page)
		form = hiddenOf(t, v.page, "/merchants/shop/ping")
		maps.Copy(form, agreed)
		if v.send("/merchants/shop/ping", form); !strings.Contains(v.page, "The answer to the ping") {
			t.Error("the ping's answer is not shown")
		}

		v.sendFilled("/suppliers/new", "/suppliers/new", url.Values{"code": {"quick"}, "name": {"Quick"}, "kind": {"sortedparams"}})
		v.sendFilled(supplier, supplier, url.Values{
			"config.algorithm": {"md5"}, "config.key": {supplierKey("quick")}, "config.key_append": {"&key={key}"}, "config.order_field": {"order"},
			"config.trade_field": {"trade"}, "config.amount_field": {"amount"}, "config.amount_unit": {"minor"}, "config.currency": {"CNY"},
			"config.status_field": {"status"}, "config.paid_values": {"OK"}, "config.account_field": {"account"}, "config.account": {"quick"},
		})
		v.sendFilled(supplier+"/review", supplier+"/review", agreed)
		if !strings.Contains(v.page, "/callback/quick") {
			t.Error("the callback URL is not shown")
		}
		v.sendFilled(supplier, supplier, url.Values{"enabled": {"true"}})
		v.sendFilled(supplier+"/review", supplier+"/review", agreed)

		a := w.request(http.MethodPost, "/api/v1/orders", key, newOrder("shop-1", requestBody{"supplier": "quick"}).text())
		if a.status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.status, a.body)
		}
		no := a.json("order_no")
		if a := w.mustPostCallback("quick", callbackForm("quick", no, "T-1", 1999)); !a.accepted() {
			t.Fatalf("callback: %d %s", a.status, a.body)
		}
		w.within(20*time.Second, "the merchant is notified", func() bool {
			return w.request(http.MethodGet, "/api/v1/orders/"+no, key, "").json("notify_status") == "delivered"
		})
		w.appliesItsExport(map[string]string{
			"merchant-shop.api_key": key, "merchant-shop.signing_secret": signing, "supplier-quick.config.key": supplierKey("quick"),
		})
	})
}

// appliesItsExport applies what export writes, with these secrets beside those that every installation
// has: nothing changes.
func (w *world) appliesItsExport(secrets map[string]string) {
	w.t.Helper()
	folder := w.t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "secrets"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	maps.Copy(secrets, map[string]string{
		"merchant-m1.api_key": apiKey, "merchant-m1.signing_secret": signingSecret(), "supplier-sp-main.config.key": supplierKey("sp-main"),
		"supplier-sp-listed.config.key": supplierKey("sp-listed"),
	})
	for name, text := range secrets {
		if err := os.WriteFile(filepath.Join(folder, "secrets", name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "export.yaml")
	if err := os.WriteFile(file, []byte(w.run("export")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(w.run("apply", "--wait", "0s", file)) {
		if !strings.HasSuffix(line, " unchanged\n") && !strings.HasPrefix(line, "note: ") {
			w.t.Errorf("the export changes something: %s", line)
		}
	}
}

// A supplier that was added is queried about a payment that does not exist before it is enabled.
func TestASuppliersQueryIsTried(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		v := &visitor{browser: w.signIn("ada", "admin")}
		const page, try = "/suppliers/sim-wx/settings", "/suppliers/sim-wx/try"
		v.open(page)
		v.press(try)
		if !strings.Contains(v.page, "The supplier's answer: no such payment") {
			t.Errorf("%s: %s", v.at, regexp.MustCompile(`The supplier's answer.*`).FindString(v.page))
		}
	})
}
