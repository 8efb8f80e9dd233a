package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/web/webtest"
)

const agreed = "as agreed in the contract"

// fills sends the form of a page and returns the page that it leads to.
func (h *harness) fills(t *testing.T, cookie, page, action string, want int, fields ...string) webtest.Answer {
	t.Helper()
	got := h.sends(t, cookie, page, action, want, fields...)
	if got.Status == http.StatusSeeOther {
		return h.Page(t, cookie, got.Header.Get("Location"))
	}
	return got
}

// adds adds a merchant in the console, and returns its API key and the page that showed it.
func (h *harness) adds(t *testing.T, cookie, code string) (key, page string) {
	t.Helper()
	review := h.fills(t, cookie, "/merchants/new", "/merchants/new", http.StatusSeeOther, "code", code, "name", "Shop of "+code, "url",
		"https://"+code+".example/notify").Body
	path := "/merchants/" + code + "/settings/review"
	if !strings.Contains(review, path) || !strings.Contains(review, "https://"+code+".example/notify") || strings.Contains(review, "whsec_") {
		t.Fatalf("the review of %s: %s", code, review)
	}
	page = h.sends(t, cookie, path, path, http.StatusOK, "reason", agreed).Body
	return regexp.MustCompile(`sk_live_[0-9a-f]{48}`).FindString(page), page
}

func TestAMerchantIsAddedWithoutAShell(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin := h.SignIn(t, access.Admin)
		key, page := h.adds(t, admin, "shop")
		if key == "" || !strings.Contains(page, "whsec_") || !strings.Contains(page, `action="/merchants/shop/ping"`) {
			t.Fatalf("what is shown once: %s", page)
		}
		m := h.Settings.Merchants().ByCode("shop")
		if m == nil || m.Name != "Shop of shop" || len(m.Secrets) != 1 || h.Settings.Merchants().ByKeyHash(seal.HashToken(key)) != m {
			t.Fatalf("it is %+v", m)
		}
		if h.Settings.Merchants().ByCode("shop").Settings.URLs[0] != "https://shop.example/notify" {
			t.Errorf("its endpoints are %v", m.Settings.URLs)
		}
		settings := h.Page(t, admin, "/merchants/shop/settings?lang=en").Body
		for _, secret := range []string{key, regexp.MustCompile(`whsec_[A-Za-z0-9+/=]{40,}`).FindString(page)} {
			if secret == "" || strings.Contains(settings, secret) || strings.Contains(h.Logged(), secret) {
				t.Errorf("a secret is shown again, or in the log")
			}
		}
		if !strings.Contains(settings, "created") || strings.Contains(settings, "not applied yet") {
			t.Error("the history is missing, or the draft is still there")
		}
		for field, want := range map[string]string{"shop": "it exists already", "Shop": "a-z, 0-9"} {
			got := h.Post(t, admin, "/merchants/new?lang=en", "code", field, "url", "https://shop.example/n")
			if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, want) {
				t.Errorf("%s again: %d", field, got.Status)
			}
		}
		for path, fields := range map[string][]string{
			"/merchants/new": {"code", "other", "url", "ftp://x"}, "/suppliers/new": {"code", "other", "kind", "cash"},
		} {
			if got := h.Post(t, admin, path, fields...); got.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s with an invalid field: %d", path, got.Status)
			}
		}
	})
}

func TestASettingIsReviewedBeforeItIsApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin := h.SignIn(t, access.Admin)
		h.adds(t, admin, "shop")
		const form, review = "/merchants/shop/settings", "/merchants/shop/settings/review"
		got := h.sends(t, admin, form, form, http.StatusUnprocessableEntity, "notify.timeout", "1m", "notify.urls", "https://a.example\nhttp://10.0.0.1/")
		if !strings.Contains(got.Body, `aria-describedby="f-notify-timeout-problem"`) || !strings.Contains(got.Body, "f-notify-urls-problem") ||
			!strings.Contains(got.Body, "http://10.0.0.1/") {
			t.Errorf("the problems: %s", got.Body)
		}
		page := h.fills(t, admin, form, form, http.StatusSeeOther, "notify.timeout", "4s", "notify.urls", "https://a.example").Body
		for _, want := range []string{"notify.timeout", ">10s<", ">4s<", "[https://a.example]"} {
			if !strings.Contains(page, want) {
				t.Errorf("the review does not have %s: %s", want, page)
			}
		}
		if h.Settings.Merchants().ByCode("shop").Settings.TimeoutMS != 10_000 {
			t.Error("it was applied before its review")
		}
		// The draft is there on another day, in another session.
		again := h.Post(t, "", "/login", "name", "the."+access.Admin, "password", webtest.GoodPassword)
		if page := h.Page(t, webtest.CookieOf(again), form).Body; typed(page, "notify.timeout") != "4s" {
			t.Error("the draft is lost")
		}
		h.sends(t, admin, review, review, http.StatusUnprocessableEntity, "reason", "no")
		done := h.fills(t, admin, review, review, http.StatusSeeOther, "reason", agreed).Body
		if h.Settings.Merchants().ByCode("shop").Settings.TimeoutMS != 4000 || !strings.Contains(done, agreed) {
			t.Errorf("applied: %s", done)
		}
		if got := h.sends(t, admin, form, form, http.StatusOK); !strings.Contains(got.Body, "没有任何变更") {
			t.Error("a form without a change leads to a review")
		}
		if n := number(t, h.DB, "SELECT count(*) FROM setting_drafts"); n != 0 {
			t.Errorf("%d drafts are left", n)
		}
	})
}

func TestTwoPeopleEditOneObject(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin, other := h.SignIn(t, access.Admin), h.person(t, "ada", access.Admin)
	h.adds(t, admin, "shop")
	const form, review = "/merchants/shop/settings", "/merchants/shop/settings/review"
	opened := formOf(t, h.Page(t, other, form).Body, form)
	h.sends(t, admin, form, form, http.StatusSeeOther, "notify.timeout", "4s")
	h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed)

	got := h.Post(t, other, form, append(opened, "notify.timeout", "10s", "name", "Mall")...)
	if got.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	page := h.Page(t, other, review+"?lang=en").Body
	if !strings.Contains(page, "Others changed this") || !strings.Contains(page, ">4s<") || !strings.Contains(page, ">Mall<") {
		t.Errorf("the second sees %s", page)
	}
	reviewed := formOf(t, page, review)
	h.sends(t, admin, form, form, http.StatusSeeOther, "name", "Other")
	h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed)
	if got := h.Post(t, other, review, append(reviewed, "reason", agreed)...); got.Status != http.StatusConflict {
		t.Errorf("what was reviewed is not what is changed: %d", got.Status)
	}
	h.sends(t, other, review, review, http.StatusSeeOther, "reason", agreed)
	if m := h.Settings.Merchants().ByCode("shop"); m.Name != "Mall" || m.Settings.TimeoutMS != 4000 {
		t.Errorf("in the end: %s, %d ms", m.Name, m.Settings.TimeoutMS)
	}
}

func TestFeesAreChangedByTwoPeople(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin, lead := h.SignIn(t, access.Admin), h.SignIn(t, access.Lead)
		h.adds(t, admin, "shop")
		const rules = "/settings/approval"
		h.sends(t, admin, rules, rules, http.StatusSeeOther, "apply", "true")
		h.sends(t, admin, rules+"/review", rules+"/review", http.StatusSeeOther, "reason", agreed)
		h.Notify(t, "ord_1", 1)
		const form, review = "/merchants/shop/settings", "/merchants/shop/settings/review"
		page := h.fills(t, admin, form, form, http.StatusSeeOther, "fees", "- { rate: 1.2%, fixed: 10 }").Body
		if !strings.Contains(page, "经第二人复核后") {
			t.Errorf("the review does not say that it waits: %s", page)
		}
		got := h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed)
		proposal := got.Header.Get("Location")
		if !strings.HasPrefix(proposal, "/approvals/apr_") {
			t.Fatalf("it leads to %s", proposal)
		}
		h.sends(t, lead, proposal, proposal+"/approve", http.StatusSeeOther, "reason", agreed)
		if page := h.Page(t, admin, form).Body; !strings.Contains(page, "rate: 1.2%") || !strings.Contains(page, proposal[len("/approvals/"):]) {
			t.Errorf("approved: %s", page)
		}
	})
}

func TestASupplierIsAddedAndTried(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	const form, review = "/suppliers/quick/settings", "/suppliers/quick/settings/review"
	page := h.fills(t, admin, "/suppliers/new", "/suppliers/new", http.StatusSeeOther, "code", "quick", "name", "QuickPay", "kind", "sortedparams").Body
	if !strings.Contains(page, `name="config.order_field"`) || !strings.Contains(page, `name="config.reply.success"`) {
		t.Fatalf("the form of its kind: %s", page)
	}
	h.sends(t, admin, form, form, http.StatusUnprocessableEntity, "config.key", "key-of-quickpay")
	// The key that was typed before stays.
	h.sends(t, admin, form, form, http.StatusSeeOther, "config.algorithm", "md5", "config.order_field", "out_trade_no",
		"config.trade_field", "trade_no", "config.amount_field", "money", "config.currency", "CNY", "config.status_field", "status",
		"config.paid_values", "DONE\nPAID")
	if page := h.Page(t, admin, form).Body; strings.Contains(page, "key-of-quickpay") {
		t.Error("the key is on the page")
	}
	done := h.fills(t, admin, review, review, http.StatusSeeOther, "reason", agreed).Body
	if !strings.Contains(done, "/callback/quick") || !strings.Contains(done, "/suppliers/quick/playground") {
		t.Errorf("the next steps: %s", done)
	}
	e, ok := h.Settings.Current().Suppliers.Lookup("quick")
	if !ok || e.Enabled || e.Name != "QuickPay" || e.Adapter == nil {
		t.Fatalf("%+v", e)
	}
	h.sends(t, admin, form, form, http.StatusSeeOther, "enabled", "true")
	h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed)
	if e, _ := h.Settings.Current().Suppliers.Lookup("quick"); !e.Enabled {
		t.Error("it is not enabled")
	}
	if page := h.Page(t, admin, "/suppliers/quick?lang=en").Body; !strings.Contains(page, "enabled") || !strings.Contains(page, form) {
		t.Error("its page has no history, or no link to its settings")
	}
}

func TestSettingsAreDiscardedAndListed(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	h.adds(t, admin, "shop")
	for path, fields := range map[string][]string{
		"/settings/skus": {"code", "SKU/7"}, "/settings/payout_accounts": {"merchant", "shop", "code", "main"},
		"/settings/subscriptions": {"code", "warehouse", "name", "Warehouse"},
	} {
		page := h.fills(t, admin, path+"/new", path+"/new", http.StatusSeeOther, fields...)
		if page.Status != http.StatusOK {
			t.Errorf("%s: %d", path, page.Status)
		}
	}
	index := h.Page(t, admin, "/settings?lang=en").Body
	for _, want := range []string{`href="/merchants/shop/settings"`, "sku SKU/7", `href="/settings/payout_accounts/shop:main"`, `href="/settings/approval"`} {
		if !strings.Contains(index, want) {
			t.Errorf("the page of the settings does not have %s", want)
		}
	}
	const account = "/settings/payout_accounts/shop:main"
	h.sends(t, admin, account, account, http.StatusSeeOther, "kind", "alipay", "holder", "Galaxy", "number", "pay@galaxy.example")
	h.sends(t, admin, account+"/review", account+"/review", http.StatusSeeOther, "reason", agreed)
	if page := h.Page(t, admin, account).Body; !strings.Contains(page, "Galaxy") || strings.Contains(page, "pay@galaxy.example") {
		t.Errorf("the account: %s", page)
	}
	h.sends(t, admin, "/settings/skus/SKU%2F7", "/settings/skus/SKU%2F7/discard", http.StatusSeeOther)
	if got := h.Page(t, admin, "/settings/skus/SKU%2F7").Status; got != http.StatusNotFound {
		t.Errorf("what was discarded: %d", got)
	}
	if got := h.Page(t, h.SignIn(t, access.Lead), "/settings").Status; got != http.StatusForbidden {
		t.Errorf("for a lead: %d", got)
	}
}

func TestASigningSecretIsRotated(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	h.adds(t, admin, "shop")
	const form, review = "/merchants/shop/settings", "/merchants/shop/settings/review"
	secrets := func() (all []string) {
		for _, s := range h.Settings.Merchants().ByCode("shop").Secrets {
			all = append(all, string(s))
		}
		return all
	}
	first := secrets()
	h.sends(t, admin, form, form, http.StatusSeeOther, "make", "signing_secret", "signing_secret_overlap", "keep")
	page := h.sends(t, admin, review, review, http.StatusOK, "reason", agreed).Body
	both := secrets()
	if len(both) != 2 || both[1] != first[0] || both[0] == first[0] || !strings.Contains(page, "whsec_") {
		t.Fatalf("%d secrets during rotation, shown: %t", len(both), strings.Contains(page, "whsec_"))
	}
	if page := h.Page(t, admin, form+"?lang=en").Body; !strings.Contains(page, "end the rotation") {
		t.Error("the form does not offer to end the rotation")
	}
	h.sends(t, admin, form, form, http.StatusSeeOther, "signing_secret_overlap", "end")
	h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed)
	if last := secrets(); len(last) != 1 || last[0] != both[0] {
		t.Errorf("%d secrets in the end", len(last))
	}
}

// An edit asks for the second factor again, and names fields as forms do. Who approves one sees the history.
func TestAnEditAsksForTheSecondFactorAndItsApproverSeesTheHistory(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin := h.SignIn(t, access.Admin)
		h.adds(t, admin, "shop")
		const form, review, rules = "/merchants/shop/settings", "/merchants/shop/settings/review", "/settings/approval"
		h.sends(t, admin, rules, rules, http.StatusSeeOther, "apply", "true")
		h.sends(t, admin, rules+"/review", rules+"/review", http.StatusSeeOther, "reason", agreed)
		h.Notify(t, "ord_1", 1)
		lead, viewer := h.SignIn(t, access.Lead), h.SignIn(t, access.Viewer)
		_, recovery := h.setsUp(t, admin)
		change(t, d, "UPDATE sessions SET second_at = second_at - 660000000")
		page := h.fills(t, admin, form, form, http.StatusSeeOther, "notify.timeout", "4s", "fees", "- { rate: 1.2% }").Body
		if !strings.Contains(page, `name="code"`) || !strings.Contains(page, "（notify.timeout）") {
			t.Errorf("the review: %s", page)
		}
		got := h.sends(t, admin, review, review, http.StatusUnprocessableEntity, "reason", agreed)
		if !strings.Contains(got.Body, `name="code"`) || h.Settings.Merchants().ByCode("shop").Settings.TimeoutMS != 10_000 {
			t.Error("an edit without the code")
		}
		got = h.sends(t, admin, review, review, http.StatusSeeOther, "reason", agreed, "code", recovery[0])
		proposal := got.Header.Get("Location")
		if !strings.HasPrefix(proposal, "/approvals/apr_") || h.Settings.Merchants().ByCode("shop").Settings.TimeoutMS != 4000 {
			t.Fatalf("the edit leads to %q", proposal)
		}
		const history = "/settings/history/merchant%20shop"
		for cookie, want := range map[string]string{admin: form + "#changes-title", lead: history, viewer: ""} {
			page := h.Page(t, cookie, proposal+"?lang=en").Body
			if !strings.Contains(page, "Fees (fees)") || want != "" && !strings.Contains(page, `href="`+want+`"`) ||
				want == "" && strings.Contains(page, history) {
				t.Errorf("the proposal does not lead to %q: %s", want, page)
			}
		}
		if got := h.Page(t, lead, history+"?lang=en"); got.Status != http.StatusOK || !strings.Contains(got.Body, "(notify.timeout)") ||
			!strings.Contains(got.Body, ">4s<") {
			t.Errorf("the history for who approves: %d %s", got.Status, got.Body)
		}
		for path, want := range map[string]int{history: http.StatusForbidden, "/settings/history/shop": http.StatusForbidden} {
			if got := h.Page(t, viewer, path); got.Status != want {
				t.Errorf("%s for a viewer: %d", path, got.Status)
			}
		}
		if got := h.Page(t, lead, "/settings/history/shop"); got.Status != http.StatusNotFound {
			t.Errorf("of no object: %d", got.Status)
		}
	})
}
