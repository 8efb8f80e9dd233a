package console

import (
	"testing"

	"backstop/internal/access"

	"github.com/chromedp/chromedp"
)

// into types into a field of a form, by its name.
func into(name, text string) chromedp.Action {
	return chromedp.SendKeys(`[name="`+name+`"]`, text, chromedp.ByQuery)
}

// picks chooses an option of a select by the keyboard: focus alone moves nothing.
func picks(name, value string) chromedp.Action {
	return chromedp.SetValue(`select[name="`+name+`"]`, value, chromedp.ByQuery)
}

const (
	continues = `main form[method="post"] button.primary`
	applies   = `form[action$="/review"] button.primary`
)

// An admin adds a merchant on a phone and a supplier at a desk, each in at most seven
// steps.
func TestAMerchantAndASupplierAreAddedInABrowser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language, theme string
		width           int64
	}{{"zh", "light", 390}, {"en", "dark", 1440}} {
		h := open(t)
		do, looks, fine, end := h.onBrowserAs(t, access.Admin, c.width)
		name := func(page string) string { return "settings-" + page + "-" + c.language }
		looks(c.language, c.theme, "/merchants/new")
		fine(name("merchant-new"))
		do(into("code", "shop"), into("name", "Galaxy Shop"), into("url", "https://shop.example/notify"))
		do(onward(continues, "/merchants/shop/settings/review"))
		fine(name("merchant-review"))
		do(into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), chromedp.WaitVisible("#made-title", chromedp.ByQuery))
		fine(name("merchant-made"))
		looks(c.language, c.theme, "/merchants/shop/settings")
		fine(name("merchant-form"))
		do(chromedp.Click(continues, chromedp.ByQuery), chromedp.WaitVisible(".notice.info", chromedp.ByQuery))

		looks(c.language, c.theme, "/suppliers/new")
		do(into("code", "quick"), into("name", "QuickPay"), picks("kind", "sortedparams"), onward(continues, "/suppliers/quick/settings"))
		fine(name("supplier-form"))
		do(picks("config.algorithm", "md5"), into("config.key", "key-of-quickpay-1"), into("config.order_field", "out_trade_no"),
			into("config.trade_field", "trade_no"), into("config.amount_field", "money"), into("config.currency", "CNY"),
			into("config.status_field", "status"), into("config.paid_values", "DONE"), onward(continues, "/suppliers/quick/settings/review"))
		do(into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), chromedp.WaitVisible("#next-title", chromedp.ByQuery))
		fine(name("supplier-done"))
		looks(c.language, c.theme, "/settings")
		fine(name("index"))
		end()
		if n := number(t, h.DB, "SELECT count(*) FROM setting_drafts"); n != 0 {
			t.Errorf("a form that was sent as it is left %d drafts", n)
		}
		if e, ok := h.Settings.Current().Suppliers.Lookup("quick"); !ok || e.Enabled {
			t.Errorf("the supplier is %+v", e)
		}
	}
}
