package console

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// byKeyboard counts the steps of a task. A step that leads to another page ends when that page
// is complete.
type byKeyboard struct {
	do    func(...chromedp.Action)
	steps int
}

func (k *byKeyboard) step(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	k.steps++
	k.do(actions...)
}

// writes puts the cursor into the query bar by its key, and types.
func writes(text string) chromedp.Action {
	return chromedp.Tasks{press("f"), becomes(`document.activeElement.matches('.querybar input[name="q"]')`), chromedp.KeyEvent(text)}
}

// takes takes the only proposal for the text typed so far. Its last character must be what
// leaves only one, or an answer on its way would replace the proposals.
func takes(text string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.WaitReady(fmt.Sprintf(`#proposals [data-text=%q]:only-child`, text)), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.WaitReady(`#proposals [aria-selected="true"]`), chromedp.KeyEvent(kb.Tab),
		becomes(fmt.Sprintf(`document.activeElement.value === %q`, text)),
	}
}

// finds sends the query bar's text: the list then has as many rows, at an address that has all
// parts.
func finds(rows int, parts ...string) chromedp.Action {
	all := []string{whole, fmt.Sprintf(`document.querySelectorAll("tr[data-row]").length === %d`, rows)}
	for _, part := range parts {
		all = append(all, fmt.Sprintf(`location.search.includes(%q)`, part))
	}
	return chromedp.Tasks{chromedp.KeyEvent(kb.Enter), becomes(strings.Join(all, " && "))}
}

// putPaid writes a paid order of a moment, and the notification that its merchant is due.
func (h *harness) putPaid(t *testing.T, at time.Time, merchant int64, status notify.Status, cause notify.Class) (orderNo string) {
	t.Helper()
	us := at.UnixMicro()
	n := number(t, h.DB, "SELECT count(*) FROM orders")
	id := db.IDAt(us) + 2*n
	o := order.Order{
		ID: id, OrderNo: fmt.Sprintf("2026%012d", n), OutTradeNo: fmt.Sprint("T", n), MerchantID: merchant, SupplierID: 1,
		Amount: 1000, Currency: "CNY", Exponent: 2, Status: order.Paid, Version: 2, PaidAmount: 1000, FeeAmount: 37, CreatedAt: us,
		PaidAt: &us,
	}
	event := notify.Event{ID: id + 1, MerchantID: merchant, SubjectID: id, Type: "order.paid", Version: 2, Body: "{}", CreatedAt: us}
	d := notify.Delivery{
		ID: id + 1, EventID: id + 1, RecipientID: merchant, SubjectID: id, EventType: "order.paid",
		Channel: notify.Webhook, Status: status, Attempts: 4, LastClass: cause, CreatedAt: us, Currency: "CNY", Amount: 1000,
	}
	if status == notify.RetryWait {
		next := h.DB.Now() + time.Hour.Microseconds()
		d.NextAt = &next
	} else {
		d.FinishedAt = &us
	}
	for _, row := range []any{&o, &event, &d} {
		if _, err := h.DB.NewInsert().Model(row).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return o.OrderNo
}

// TestWhatAnOutageLeftIsWorkedOffByKeyboardAlone: an endpoint was down from 14:05 to 15:10. In
// seven steps from the overview, the notifications that this exhausted are found by merchant,
// time, cause and state, and sent again as a batch; no others are.
func TestWhatAnOutageLeftIsWorkedOffByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	day := h.DB.NowTime().In(h.Config.Timezone).AddDate(0, 0, -1)
	at := func(hour, minute int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, h.Config.Timezone)
	}
	h.putPaid(t, at(14, 4), 2, notify.Exhausted, notify.Timeout)
	h.putPaid(t, at(15, 10), 2, notify.Exhausted, notify.Timeout)
	h.putPaid(t, at(14, 30), 2, notify.Exhausted, notify.DNS)
	h.putPaid(t, at(14, 31), 1, notify.Exhausted, notify.Timeout)
	h.putPaid(t, at(14, 32), 2, notify.Delivered, notify.Timeout)
	const lost = 22 // as many as need their amount typed
	for i := range lost {
		h.putPaid(t, at(14, 5).Add(time.Duration(i)*3*time.Minute), 2, notify.Exhausted, notify.Timeout)
	}
	do, looks, fine, end := h.onBrowser(t, 1440)
	looks("en", "light", "/")
	k := &byKeyboard{do: do}
	k.step(t, chromedp.KeyEvent("gn"), becomes(`location.pathname === "/notifications" && `+whole))
	date := day.Format(time.DateOnly)
	k.step(t, writes("merchant:o"), takes("merchant:m2 "), chromedp.KeyEvent("cause:timeout state:exhausted from:"+date+"T14:05 to:"+date+
		"T15:10"))
	k.step(t, finds(lost, "merchant=m2", "cause=timeout", "status=exhausted", "from="+date+"T14%3A05", "to="+date+"T15%3A10"))
	fine("outage-found")
	k.step(t, tabTo(`button[name="pick"][value="all"]`), chromedp.KeyEvent(kb.Enter),
		becomes(`location.pathname.startsWith("/batches/bat_") && `+whole))
	k.step(t, tabTo("#run-reason"), chromedp.KeyEvent("their endpoint is back"))
	k.step(t, tabTo("#amount_CNY"), chromedp.KeyEvent("220.00"))
	var path string
	k.step(t, tabTo(`form[action$="/start"] button`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#result"),
		chromedp.Evaluate("location.pathname", &path))
	h.over(t, path)
	if k.steps > 7 {
		t.Errorf("it takes %d steps", k.steps)
	}
	if n := number(t, h.DB, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait'"); n != lost {
		t.Errorf("%d notifications are sent again", n)
	}
	if n := number(t, h.DB, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'"); n != 4 {
		t.Errorf("%d of the 4 others are as they were", n)
	}
	fine("outage-worked-off")
	end()
}

// TestTheMonthOfAMerchantIsExportedByKeyboardAlone takes five steps from the overview to an
// Excel file of a merchant's paid orders of last month, with their fees.
func TestTheMonthOfAMerchantIsExportedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	change(t, h.DB, "UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'")
	now := h.DB.NowTime().In(h.Config.Timezone)
	first := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, h.Config.Timezone)
	next := first.AddDate(0, 1, 0)
	in := []string{
		h.putPaid(t, first, 1, notify.Delivered, notify.OK),
		h.putPaid(t, next.Add(-time.Second), 1, notify.Delivered, notify.OK),
	}
	out := []string{
		h.putPaid(t, first.Add(-time.Second), 1, notify.Delivered, notify.OK),
		h.putPaid(t, next, 1, notify.Delivered, notify.OK),
		h.putPaid(t, first.Add(time.Hour), 2, notify.Delivered, notify.OK),
		h.putPaid(t, first.Add(time.Hour), 1, notify.Delivered, notify.OK),
	}
	change(t, h.DB, "UPDATE orders SET status = 'closed', paid_amount = 0, fee_amount = 0, paid_at = NULL WHERE order_no = ?", out[3])
	do, looks, fine, end := h.onBrowserAs(t, access.Finance, 1440)
	folder := t.TempDir()
	do(chromedp.ActionFunc(func(ctx context.Context) error {
		info, err := target.GetTargetInfo().Do(ctx)
		if err != nil {
			return err
		}
		return browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(folder).
			WithBrowserContextID(info.BrowserContextID).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
	}))
	looks("zh", "dark", "/")
	k := &byKeyboard{do: do}
	k.step(t, chromedp.KeyEvent("go"), becomes(`location.pathname === "/orders" && `+whole))
	from, to := first.Format(time.DateOnly), next.AddDate(0, 0, -1).Format(time.DateOnly)
	k.step(t, writes("merchant:g"), takes("merchant:m1 "), chromedp.KeyEvent("state:paid from:"+from+" to:"+to))
	k.step(t, finds(2, "merchant=m1", "status=paid", "from="+from, "to="+to))
	fine("month-found")
	k.step(t, tabTo("#export summary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#export form"))
	k.step(t, tabTo("#export button[value=xlsx]"), chromedp.KeyEvent(kb.Enter))
	if k.steps > 5 {
		t.Errorf("it takes %d steps", k.steps)
	}
	sheet := downloaded(t, folder)
	if n := strings.Count(sheet, "<row "); n != 1+len(in) {
		t.Errorf("the sheet has %d rows", n)
	}
	if n := strings.Count(sheet, "<v>0.37</v>"); n != len(in) {
		t.Errorf("%d rows have their fee", n)
	}
	for _, no := range in {
		if !strings.Contains(sheet, no) {
			t.Errorf("the file lacks order %s", no)
		}
	}
	for _, no := range out {
		if strings.Contains(sheet, no) {
			t.Errorf("the file has order %s", no)
		}
	}
	end()
}

// downloaded waits for an Excel file in a folder, and returns its first sheet.
func downloaded(t *testing.T, folder string) string {
	t.Helper()
	var z *zip.ReadCloser
	var wrong error
	waittest.Within(time.Minute, func() bool {
		files, err := filepath.Glob(filepath.Join(folder, "*.xlsx"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			z, wrong = zip.OpenReader(files[0]) // an error while not all of it is there
		}
		return z != nil
	})
	if z == nil {
		t.Fatalf("no complete Excel file was downloaded: %v", wrong)
	}
	defer z.Close()
	f, err := z.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(sheet)
}
