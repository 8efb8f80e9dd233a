package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"

	"github.com/chromedp/chromedp"
)

// The bar below a list adds up the money of the rows that are picked, in each currency and exactly,
// also beyond what a floating-point number holds.
func TestTheMoneyOfPickedRowsIsAddedUpInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	exhaust(t, h.DB, 4)
	for table, where := range map[string]string{
		"deliveries": "id IN (SELECT id FROM deliveries ORDER BY id DESC LIMIT 2)",
		"exceptions": "id IN (SELECT id FROM exceptions ORDER BY id DESC LIMIT 2)",
	} {
		change(t, h.DB, "UPDATE "+table+" SET currency = 'JPY', amount = 1234567 WHERE "+where)
		change(t, h.DB, "UPDATE "+table+" SET amount = 9007199254740993 WHERE currency = 'CNY' AND id = (SELECT min(id) FROM "+table+")")
	}
	do, looks, fine, end := h.onBrowserAs(t, access.Lead, 1440)
	h.adjusts(t, h.SignIn(t, access.Finance), 3, 100)
	for path, want := range map[string][2]string{ // of all rows, and without the first
		"/notifications": {"Selected 4 ¥90,071,992,547,419.93CNY ¥2,469,134JPY", "Selected 3 ¥90,071,992,547,419.93CNY ¥1,234,567JPY"},
		"/exceptions":    {"Selected 4 ¥90,071,992,547,419.93CNY ¥2,469,134JPY", "Selected 3 ¥90,071,992,547,419.93CNY ¥1,234,567JPY"},
		"/approvals":     {"Selected 3 ¥303.00CNY", "Selected 2 ¥203.00CNY"},
	} {
		looks("en", "light", path)
		bar := func() (text string) {
			t.Helper()
			do(chromedp.Evaluate(`document.querySelector("[data-picked]").innerText`, &text))
			return strings.Join(strings.Fields(text), " ")
		}
		do(chromedp.Click("[data-all]", chromedp.ByQuery))
		all := bar()
		do(chromedp.Click("input[name=row]", chromedp.ByQuery))
		if rest := bar(); all != want[0] || rest != want[1] {
			t.Errorf("%s: the bar says %q and %q, want %q", path, all, rest, want)
		}
		fine(fmt.Sprint("picked", strings.ReplaceAll(path, "/", "-")))
	}
	end()
}
