package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestWhoDidWhatYesterdayIsSeenByKeyboardAlone: a lead reads the acts of yesterday, those of one
// kind, those of one person among them, and all of that person, in five steps from the overview.
func TestWhoDidWhatYesterdayIsSeenByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	midnight := h.DB.NowTime().In(h.Config.Timezone)
	midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, 0, 0, h.Config.Timezone)
	for _, a := range []struct {
		at                        time.Time
		actor, act, id, explained string
	}{
		{midnight.AddDate(0, 0, -1).Add(-time.Second), "operator:wang.min", "order.note", "2026112000000001", "it is too early"},
		{midnight.AddDate(0, 0, -1), "operator:wang.min", "order.note", "2026112000000002", "the merchant phoned"},
		{midnight.Add(-3 * time.Hour), "operator:chen.yu", "order.note", "2026112000000003", "the supplier phoned"},
		{midnight.Add(-2 * time.Hour), "operator:chen.yu", "order.query", "2026112000000003", "is it paid by now"},
		{midnight.Add(-time.Second), "operator:wang.min", "order.query", "2026112000000004", "is that one paid"},
		{midnight, "operator:wang.min", "order.note", "2026112000000005", "it is too late"},
	} {
		change(t, h.DB,
			"INSERT INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) SELECT COALESCE(max(number), 0) + 1, ?, ?, ?, 'order', ?, ?, '', ? FROM audit",
			a.at.UnixMicro(), a.actor, a.act, a.id, fmt.Sprintf(`{"reason":%q}`, a.explained), strings.Repeat("0", 64))
	}
	do, looks, fine, end := h.onBrowserAs(t, access.Lead, 1440)
	looks("en", "dark", "/")
	k := &byKeyboard{do: do}
	reads := func(want ...string) {
		t.Helper()
		var text string
		do(chromedp.Text("tbody", &text, chromedp.ByQuery))
		for _, a := range []string{"the merchant phoned", "the supplier phoned", "is it paid by now", "is that one paid"} {
			if expected := slices.Contains(want, a); strings.Contains(text, a) != expected {
				t.Errorf("after %d steps, %q is there %t: %q", k.steps, a, !expected, text)
			}
		}
	}
	date := midnight.AddDate(0, 0, -1).Format(time.DateOnly)
	k.step(t, tabTo(`nav a[href="/audit"]`), chromedp.KeyEvent(kb.Enter), becomes(`location.pathname === "/audit" && `+whole))
	k.step(t, writes("from:"+date+" to:"+date), finds(4, "from="+date, "to="+date))
	reads("the merchant phoned", "the supplier phoned", "is it paid by now", "is that one paid")
	fine("yesterday")
	k.step(t, writes(" action:order.n"), takes("from:"+date+" to:"+date+" action:order.note "), finds(2, "action=order.note"))
	reads("the merchant phoned", "the supplier phoned")
	fine("yesterday-act")
	k.step(t, writes(" actor:w"), takes("action:order.note from:"+date+" to:"+date+" actor:wang.min "),
		finds(1, "action=order.note", "actor=wang.min"))
	reads("the merchant phoned")
	k.step(t, tabTo(`.chips a[href*="actor=wang.min"]:not([href*="action="])`), finds(2, "actor=wang.min"))
	reads("the merchant phoned", "is that one paid")
	fine("yesterday-person")
	if k.steps > 5 {
		t.Errorf("it takes %d steps", k.steps)
	}
	end()
}
