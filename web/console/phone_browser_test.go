package console

import (
	"context"
	"strconv"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/device"
)

// An operator on call closes a breaker from a phone, by touch alone: from the overview to the
// merchant, the dialog with its reason, and the result.
func TestABreakerIsClosedFromAPhone(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.InTrouble(t)
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	phone := device.Info{Name: "phone", UserAgent: "phone", Width: 390, Height: 844, Scale: 1, Mobile: true, Touch: true}
	// touch taps the middle of what is shown, where nothing else lies over it.
	touch := func(selector string) chromedp.Action {
		return chromedp.Tasks{
			chromedp.WaitVisible(selector, chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector(`+strconv.Quote(selector)+`).scrollIntoView({block: "center"})`, nil),
			becomes(`(() => { const e = document.querySelector(` + strconv.Quote(selector) + `), b = e.getBoundingClientRect();
				return b.height >= 43.5 && b.width >= 43.5 && e.contains(document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2)); })()`),
			tap(selector),
		}
	}
	run(t, ctx, signsIn(base, "li.hang", webtest.GoodPassword, "/"), chromedp.Emulate(phone), emulation.SetTouchEmulationEnabled(true),
		chromedp.Navigate(base+"/"), chromedp.WaitReady("main"), becomes(whole))
	run(t, ctx, touch(`#attention a[href="/merchants/m1"]`), at("/merchants/m1"))
	run(t, ctx, touch(`button[data-open="#close"]`), chromedp.WaitVisible("#close-reason"),
		chromedp.SendKeys("#close-reason", "the merchant says it is up again"))
	run(t, ctx, touch(`#close .btn.primary`), chromedp.WaitVisible(".notice.ok"), becomes(whole))
	h.closes(t)
	// The bar at the bottom leads on, and a row is a card that leads to its order.
	run(t, ctx, touch(`.side a.nav[href="/orders"]`), at("/orders"),
		becomes(`document.querySelector("table.cards td[data-head]") !== null`))
	run(t, ctx, chromedp.Evaluate(`document.querySelector("table.cards tbody tr").scrollIntoView({block: "center"})`, nil),
		tap("table.cards tbody tr"), becomes(`location.pathname.startsWith("/orders/") && `+whole))
	if complaints := said.take(); len(complaints) > 0 {
		t.Error(complaints)
	}
}

// closes waits until the breaker of merchant m1 is closed.
func (h *harness) closes(t *testing.T) {
	t.Helper()
	waittest.Until(t, "the breaker closes", func() bool { return h.Breakers.Of(recipient.OfMerchant(1)).State == breaker.Closed })
}

// tap touches the middle of an element.
func tap(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var at struct{ X, Y float64 }
		if err := chromedp.Evaluate(`(() => { const b = document.querySelector(`+strconv.Quote(selector)+
			`).getBoundingClientRect(); return {X: b.left + b.width / 2, Y: b.top + b.height / 2}; })()`, &at).Do(ctx); err != nil {
			return err
		}
		if err := input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at.X, Y: at.Y}}).Do(ctx); err != nil {
			return err
		}
		return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
	})
}
