package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/exception"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAWrongAmountIsDecidedByTwoPeopleAtTheKeyboard has finance find a payment of a wrong amount on
// the overview and propose to accept it, and a lead find the proposal there and approve it.
func TestAWrongAmountIsDecidedByTwoPeopleAtTheKeyboard(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	change(t, h.DB, `UPDATE exceptions SET detail = '{"got":12300,"want":12345,"difference":-45}' WHERE kind = 'amount_mismatch'`)
	h.decideWith(twoPeople)
	for name, role := range map[string]string{"xu": access.Finance, "bo": access.Lead} {
		if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
	}
	wrong := h.on(t, exception.AmountMismatch).path
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	steps := 0
	step := func(actions ...chromedp.Action) { t.Helper(); steps++; run(t, ctx, actions...) }
	comes := func(name string) {
		t.Helper()
		run(t, ctx, network.ClearBrowserCookies(), signsIn(base, name, webtest.GoodPassword, "/"))
	}
	reads := func(texts ...string) {
		t.Helper()
		var page string
		run(t, ctx, chromedp.Text("main", &page, chromedp.ByQuery))
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("the page reads %q, without %q", page, text)
			}
		}
	}
	const proposal = `location.pathname.startsWith("/approvals/apr_") && ` + whole
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1200, 1, false))
	comes("xu")
	step(tabTo(`#attention a[href="/exceptions?kind=amount_mismatch&state=needs"]`), chromedp.KeyEvent(kb.Enter), at("/exceptions"))
	step(tabTo(`tr[data-row] a[href="`+wrong+`"]`), chromedp.KeyEvent(kb.Enter), at(wrong))
	reads("12.300", "12.345")
	step(tabTo("#decide-accept_amount > summary"), chromedp.KeyEvent(kb.Enter), tabTo("#accept_amount-amount"), chromedp.KeyEvent("12.300"))
	step(tabTo("#accept_amount-reason"), chromedp.KeyEvent("the merchant agrees to it"))
	step(tabTo("#decide-accept_amount button"), chromedp.KeyEvent(kb.Enter), becomes(proposal))
	reads("This is your own proposal", "12.300")
	if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND state = 'resolved'"); n != 0 || steps > 5 {
		t.Errorf("one person proposed it in %d steps, and it ended: %t", steps, n != 0)
	}
	steps = 0
	comes("bo")
	step(becomes(`document.querySelector('#attention a[href="/approvals#yours"]') !== null`),
		tabTo(`#attention a[href="/approvals#yours"]`), chromedp.KeyEvent(kb.Enter), at("/approvals"))
	step(tabTo(`tr[data-row] a[href^="/approvals/apr_"]`), chromedp.KeyEvent(kb.Enter), becomes(proposal))
	reads("12.300", "the merchant agrees to it")
	step(tabTo("#approve-reason"), chromedp.KeyEvent("compared with their console"))
	step(tabTo(`form[action$="/approve"] button`), chromedp.KeyEvent(kb.Enter), becomes(proposal+` && location.search.includes("form=")`))
	reads("It took effect")
	if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND state = 'resolved'"); n != 1 || steps > 4 {
		t.Errorf("another approved it in %d steps, and it ended: %t", steps, n == 1)
	}
	run(t, ctx, chromedp.Navigate(base+wrong), at(wrong))
	reads("xu → bo")
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// TestEachSumAtRiskLeadsToItsRowsByKeyboard takes one step from each sum of the overview to a list
// whose totals, and whose rows together, are that sum, in each currency.
func TestEachSumAtRiskLeadsToItsRowsByKeyboard(t *testing.T) {
	t.Parallel()
	h := open(t)
	seedRisk(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "bo", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	var tiles []struct {
		Href string
		Sums []string
	}
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1200, 1, false), signsIn("http://"+h.Addr, "bo", webtest.GoodPassword, "/"),
		chromedp.Evaluate(`[...document.querySelectorAll(".hero .parts a, .hero .beside li")].map(e => ({
			Href: (e.matches("a") ? e : e.querySelector("a")).getAttribute("href"),
			Sums: [...e.querySelectorAll("data.money")].map(d => d.value).filter(sum => !sum.startsWith("0 ")).sort(),
		})).filter(tile => tile.Sums.length)`, &tiles))
	lists := map[string]bool{}
	for _, tile := range tiles {
		path, _, _ := strings.Cut(tile.Href, "?")
		lists[path] = true
		var list struct {
			Totals []string
			Rows   map[string]int64
		}
		run(t, ctx, tabTo(`.hero :is(.parts, .beside) a[href=`+strconv.Quote(tile.Href)+`]`), chromedp.KeyEvent(kb.Enter),
			becomes(`location.pathname + location.search === `+strconv.Quote(tile.Href)+` && `+whole),
			chromedp.Evaluate(`(() => {
				const rows = {};
				for (const sum of document.querySelectorAll("tr[data-row] td.num > data.money, tr[data-row] td.num > a > data.money")) {
					const [minor, currency] = sum.value.split(" ");
					rows[currency] = (rows[currency] || 0) + Number(minor);
				}
				const totals = document.querySelector(".totals") || document.querySelector("main p.body");
				return {Totals: [...totals.querySelectorAll("data.money")].map(d => d.value).sort(), Rows: rows};
			})()`, &list))
		var rows []string
		for currency, minor := range list.Rows {
			rows = append(rows, plainMoney(minor, currency))
		}
		slices.Sort(rows)
		if !slices.Equal(list.Totals, tile.Sums) || !slices.Equal(rows, tile.Sums) {
			t.Errorf("the sum %v leads to %s with the totals %v and the rows %v", tile.Sums, tile.Href, list.Totals, rows)
		}
		run(t, ctx, chromedp.KeyEvent("gd"), at("/"))
	}
	for _, path := range []string{"/notifications", "/exceptions", "/orders", "/accounts"} {
		if !lists[path] {
			t.Errorf("no sum leads to %s: %v", path, tiles)
		}
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// TestABreakerIsSeenUnderstoodAndClosedByKeyboard goes from the overview to the merchant whose
// breaker is open, reads why, and closes it with a reason; then nothing on the overview leads there.
func TestABreakerIsSeenUnderstoodAndClosedByKeyboard(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.InTrouble(t)
	do, looks, fine, end := h.onBrowser(t, 1440)
	looks("en", "dark", "/")
	steps := 0
	step := func(actions ...chromedp.Action) { t.Helper(); steps++; do(actions...) }
	const link, panel = `#attention a[href="/merchants/m1"]`, `section[aria-labelledby="breaker-title"]`
	var why, told string
	step(tabTo(link), chromedp.KeyEvent(kb.Enter), at("/merchants/m1"), chromedp.Text(panel, &why))
	if !strings.Contains(why, "failures in a row: 5") {
		t.Errorf("the breaker is explained as %q", why)
	}
	fine("breaker-open")
	step(tabTo(`[data-open="#close"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#close-reason"))
	step(tabTo("#close-reason"), chromedp.KeyEvent("their new server answers"))
	step(tabTo("#close .btn.primary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".notice.ok"), becomes(whole))
	h.closes(t)
	do(chromedp.Evaluate(`location.href = "/merchants/m1"`, nil),
		becomes(fmt.Sprintf(`location.search === "" && !document.querySelector(%q) && %s`, `[data-open="#close"]`, whole)),
		chromedp.Text("main", &told))
	for _, text := range []string{"their new server answers", "li.hang"} {
		if !strings.Contains(told, text) {
			t.Errorf("the history of the breaker lacks %q", text)
		}
	}
	fine("breaker-closed")
	if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action = 'breaker.close' AND actor = 'operator:li.hang'"); n != 1 ||
		steps > 4 {
		t.Errorf("closed %d times, in %d steps", n, steps)
	}
	do(chromedp.KeyEvent("gd"), at("/"), becomes(`document.querySelector('`+link+`') === null`))
	end()
}
