package console

import (
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/chromedp"
)

// says waits until a part of the page has a text.
func says(selector, text string) chromedp.Action {
	return becomes("document.querySelector(" + strconv.Quote(selector) + ")?.textContent.includes(" + strconv.Quote(text) + ") ?? false")
}

// The pages of an order and of a refund follow them, without what is typed or open being touched.
func TestPagesFollowTheirObjects(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	const pending, note = "/orders/2026112000000002", "the buyer calls again at five"
	typed := becomes(`document.querySelector("#note textarea").value === ` + strconv.Quote(note))
	run(t, ctx, signsIn(base, "wang.min", webtest.GoodPassword, pending), reads(base, "en", "light"),
		chromedp.Navigate(base+pending), inState("live"), says("h1", "Pending"), becomes(`!/Paid|Delivered/.test(document.querySelector("h1").textContent)`))
	var left string
	run(t, ctx, chromedp.Text("[data-away]", &left, chromedp.ByQuery),
		becomes(`document.querySelector("[data-away]").textContent.trim() !== `+strconv.Quote(strings.TrimSpace(left))))
	run(t, ctx, chromedp.Click(`[data-open="#note"]`, chromedp.ByQuery), chromedp.WaitVisible("#note textarea", chromedp.ByQuery),
		chromedp.SendKeys("#note textarea", note, chromedp.ByQuery))

	// It is paid while a dialog is open, and notified after that was closed with its text.
	change(t, h.DB, "UPDATE orders SET status = 'paid', version = 2, paid_amount = amount, paid_at = ?, next_at = NULL"+
		" WHERE order_no = '2026112000000002'", h.DB.Now())
	run(t, ctx, says("h1", "Paid"), typed, becomes(`document.querySelector("#note").open && document.activeElement.matches("#note textarea")`))
	change(t, h.DB, "INSERT INTO deliveries"+
		" (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, next_at, created_at)"+
		" SELECT id + 50, id + 51, 1, id, 'order.paid', 'webhook', '', 'sending', 1, ?, ? FROM orders WHERE order_no = '2026112000000002'",
		h.DB.Now()+30_000_000, h.DB.Now())
	run(t, ctx, says("h1", "Sending"), chromedp.Click("#note [data-close]", chromedp.ByQuery))
	change(t, h.DB, "UPDATE deliveries SET status = 'delivered', finished_at = ?, next_at = NULL"+
		" WHERE subject_id = (SELECT id FROM orders WHERE order_no = '2026112000000002')", h.DB.Now())
	run(t, ctx, says("h1", "Delivered"), typed)

	run(t, ctx, chromedp.Navigate(base+"/refunds/"+refundThree), inState("live"), says("h1", "Unknown"))
	change(t, h.DB, "UPDATE refunds SET status = 'succeeded', version = version + 1, finished_at = ? WHERE refund_no = ?",
		h.DB.Now(), refundThree)
	run(t, ctx, says("h1", "Refunded"))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// Without its stream the page says as of when it is, and reads itself again.
func TestThePageOfAnObjectPollsWithoutItsStream(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBrowser(t, "127.0.0.1")
	cable := newRelay(t, h.Addr)
	id := number(t, h.DB, "SELECT min(id) FROM exceptions WHERE state = 'open'")
	base, path := "http://"+cable.addr, exceptionPath(id)
	run(t, ctx, signsIn(base, "wang.min", webtest.GoodPassword, path), reads(base, "en", "light"),
		chromedp.Navigate(base+path), inState("live"))
	cable.cut()
	run(t, ctx, inState("delayed"))
	run(t, ctx, inState("offline"), becomes(`/figures as of\s+\d\d:\d\d:\d\d/.test(document.querySelector(".follows").textContent)`))
	change(t, h.DB, "UPDATE exceptions SET state = 'assigned', assignee = 'wang.min', version = version + 1 WHERE id = ?", id)
	cable.mend(t)
	run(t, ctx, says("h1", "Assigned"), inState("delayed"))
}
