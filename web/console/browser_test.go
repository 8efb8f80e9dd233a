package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/base/waittest"
	"backstop/internal/exception"
	"backstop/internal/settings"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var screenshots = flag.String("screenshots", "", "a folder for pictures of all pages")

// TestPagesInABrowser walks all pages.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	all := append(h.details(t), allPages...)
	seedMore(t, h.DB)
	h.lengthen(t)
	h.walk(t, access.Lead, "main", all...)
	ctx, said := newBrowser(t, h.Addr)
	w := &window{ctx, said}
	w.visit(t, "http://"+h.Addr+"/login?lang=en", "#password", "login", "en", "light", 1440)
}

// TestNothingLiesOverTheTargetsOfALongList looks at a list that is longer than the screen at
// several heights: an element over its rows would leave slices of boxes and links that cannot
// be clicked.
func TestNothingLiesOverTheTargetsOfALongList(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	exhaust(t, h.DB, 60)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, signsIn(base, "wang.min", webtest.GoodPassword, "/"), emulation.SetDeviceMetricsOverride(1440, 900, 1, false),
		chromedp.Navigate(base+"/notifications"), chromedp.WaitReady("main"))
	for height := int64(900); height < 936; height += 7 { // a row is 36 px high
		run(t, ctx, emulation.SetDeviceMetricsOverride(1440, height, 1, false))
		if found := breaches(t, ctx, `{type: "rule", values: ["target-size"]}`); len(found) > 0 {
			t.Errorf("at a height of %d: %s", height, strings.Join(found, "; "))
		}
	}
}

// lengthen gives merchants and suppliers long names, has answers take long, and writes a refund and a dispute
// whose numbers are as long as they are outside of tests.
func (h *harness) lengthen(t *testing.T) {
	t.Helper()
	now := h.DB.Now()
	change(t, h.DB, "UPDATE merchants SET name = 'Wuyi Mountain Rock Tea Trading'")
	change(t, h.DB, "UPDATE suppliers SET name = 'Payments of the Eastern Region'")
	change(t, h.DB, "UPDATE notify_attempts SET took_us = 30001000")
	change(t, h.DB, "INSERT INTO refunds (id, refund_no, order_no, supplier_id, account_id, supplier_ref, trade_no, trade_amount, merchant_id, amount,"+
		" currency, status, reason, created_at, finished_at) VALUES (7498, '385586301803429887', '385586301803429886', 2, 2, '', '', 1234567, 1,"+
		" 1234567, 'CNY', 'returned', 'the buyer sent all of it back unopened', ?0, ?0)", now)
	change(t, h.DB, "INSERT INTO disputes (id, dispute_no, order_no, supplier_id, account_id, supplier_dispute_no, trade_no, merchant_id, amount, currency,"+
		" reason, status, due_by, opened_at, closed_at) VALUES (7499, '385586301803429888', '385586301803429886', 2, 2, 'dp_7499', '', 1, 1234567, 'USD',"+
		" 'product_not_received', 'won', ?0, ?0, ?0)", now)
	if err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.IncrementVersion(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	h.ReadSettings(t)
}

// seedMore writes a busy day, so that pages are examined with realistic content.
func seedMore(t *testing.T, d *db.DB) {
	t.Helper()
	exhaust(t, d, 30) // more than a screen holds
	proposeRefund(t, d)
	change(t, d,
		"UPDATE deliveries SET attempts = 0, next_at = ?, currency = 'CNY', amount = 1, created_at = ? WHERE id IN (SELECT id FROM deliveries WHERE status = 'exhausted' ORDER BY id LIMIT 5)", d.Now(), d.Now()-25*60_000_000)
	for i, kind := range []string{exception.LatePayment, exception.UnknownOrder, exception.DuplicatePayment} { // parts of a tile
		change(t, d,
			"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
				" SELECT id + ?, ?, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at FROM exceptions WHERE kind = 'amount_mismatch'", 9000+i, kind)
	}
	// A notification's id is as long as they are.
	change(t, d, `INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at)
		SELECT 7001, 1, id, 'order.closed', 3, '{"id":"ntf_2wpytmd90jk0-order-closed-0"}', ? FROM orders WHERE order_no = '2026112000000001'`, d.Now())
	change(t, d,
		`INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, currency, amount)
		SELECT 7002, 7001, 1, id, 'order.closed', 'webhook', '', 'skipped', ?, 'CNY', 1 FROM orders WHERE order_no = '2026112000000001'`,
		d.Now())
	minute := time.Minute.Microseconds()
	now := d.Now() / minute * minute
	for i := range int64(24 * 60) {
		good, bad := 40+(i*i)%37, (i%97)/12
		if i < 90 {
			good, bad = 20, 30
		}
		change(t, d,
			"INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (0, ?, ?, ?, 0, 0, '', '')",
			now-i*minute, good, bad)
		change(t, d, "INSERT INTO report_orders VALUES (60, ?, 'CNY', 40, 798000, ?, 19950 * ?)", now-i*minute, 40-bad, 40-bad)
		if i%10 == 0 { // the curves of the tiles
			change(t, d,
				"INSERT INTO report_risk (start, part, currency, orders, amount) VALUES (?, 'untold', 'CNY', 1, ?), (?, 'untold', 'KWD', 1, ?)", now-i*minute, 1+i, now-i*minute, 1+i)
		}
		if i%9 == 0 {
			change(t, d, "INSERT INTO report_orders VALUES (60, ?, 'JPY', 2, 3960, 1, 1980)", now-i*minute)
		}
		change(t, d, "INSERT INTO report_callbacks (start, supplier_id, outcome, n) VALUES (?, 1, 'paid', ?), (?, 1, 'late_payment', ?)",
			now-i*minute, good, now-i*minute, bad/3)
	}
	// What commands leave in the audit is as long as it may be.
	many := strings.TrimSuffix(strings.Repeat("merchant a-code-that-is-as-long-as-they-come: name, notify.urls, breaker; ", 20), "; ")
	digest := strings.Repeat("0123456789abcdef", 4)
	for _, a := range []audit.Act{
		{Action: "settings.apply", Object: "file", ObjectID: "backstop-settings.yaml", Params: map[string]any{
			"created": "supplier wx-main",
			"changed": many + " … and 480 more", "disabled": "merchant m7", "sha256": digest,
		}},
		{Action: "orders.import", Object: "file", ObjectID: "orders.jsonl", Params: map[string]any{"orders": 100_000, "sha256": digest}},
		{Action: "token.add", Object: "token", ObjectID: "grafana", Params: map[string]any{"scope": "monitor"}},
		{Action: "secrets.reseal", Object: "master_key", ObjectID: "k-4f2a"},
	} {
		a.Actor = audit.Command()
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return audit.New(d, sealtest.Ring(t, 1)).Write(ctx, tx,
				a)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// examine checks a page's layout, and what people with a screen reader would miss: fields and
// buttons without a name, headings, ids given twice. The actions of a page's head are at its
// right end.
const examine = `(() => {
  const d = document, violations = [];
  const named = e => e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length) || e.getAttribute("title");
  for (const e of d.querySelectorAll("a, button, input:not([type=hidden]):not([hidden]), select, textarea")) if (!named(e)) violations.push("no name: " + e.outerHTML.slice(0, 80));
  for (const e of d.querySelectorAll("[aria-labelledby]")) if (!d.getElementById(e.getAttribute("aria-labelledby"))) violations.push("labelled by nothing: " + e.outerHTML.slice(0, 80));
  const ids = [...d.querySelectorAll("[id]")].map(e => e.id);
  for (const id of new Set(ids)) if (ids.filter(x => x === id).length > 1) violations.push("id twice: " + id);
  for (const e of d.querySelectorAll(".page-head")) {
    const ends = [...e.querySelectorAll(".btn")].map(b => b.getBoundingClientRect().right);
    if (ends.length && Math.max(...ends) < e.getBoundingClientRect().right - 1) violations.push("not at the right: " + e.querySelector(".btn").textContent.trim());
  }
  for (const e of d.querySelectorAll(".hero .parts a")) {
    if (e.getBoundingClientRect().bottom > e.lastElementChild.getBoundingClientRect().bottom + 48) violations.push("an empty tile: " + e.getAttribute("href"));
  }
  if (d.querySelectorAll("h1").length !== 1) violations.push(d.querySelectorAll("h1").length + " h1");
  return {
    Theme: d.documentElement.dataset.theme, Language: d.documentElement.lang,
    Overflow: Math.max(0, d.documentElement.scrollWidth - d.documentElement.clientWidth), Violations: violations,
  };
})()`

// tooWide are the tables that are wider than their place, with the longest times that cells
// can show. Which ones they show depends on the time of day.
const tooWide = `(() => {
  const moments = [...document.querySelectorAll("td time")], texts = moments.map(e => e.textContent);
  for (const e of moments) if (e.textContent.length < 16) e.textContent = "2025-12-31 23:59";
  const wide = [...document.querySelectorAll(".table-wrap")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute("aria-label") + " by " + (e.scrollWidth - e.clientWidth) + " px");
  moments.forEach((e, i) => e.textContent = texts[i]);
  return wide;
})()`

// tooSmallForAThumb are the controls that are drawn and less than 44 px high: every act must be
// within reach on a phone. Boxes of rows have a label or a cell of that size around them.
const tooSmallForAThumb = `(() => {
  const controls = document.querySelectorAll(".btn, .side a.nav, .top a, .top button, .search, main select, main summary, main .copy, main .seg a, main input:not([type=hidden]):not([type=checkbox]):not([type=radio]), .cards .pick");
  return [...controls].filter(e => e.getClientRects().length > 0 && e.getBoundingClientRect().height < 43.5).map(e => Math.round(e.getBoundingClientRect().height) + " px: " + e.outerHTML.slice(0, 90));
})()`

// tooNarrow are the lines of cards, which tables are on a phone, that do not have the card's whole width.
const tooNarrow = `(() => {
  const lines = [...document.querySelectorAll(".cards tbody td:not(.pick)")].filter(e => e.getClientRects().length > 0);
  return lines.filter(e => e.getBoundingClientRect().width < e.parentElement.getBoundingClientRect().width - 29)
    .map(e => Math.round(e.getBoundingClientRect().width) + " px: " + e.outerHTML.slice(0, 90));
})()`

// stepTime is long, since it is reached only where something is wrong or the machine is busy.
const stepTime = 3 * time.Minute

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	step, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if err := chromedp.Run(step, chromedp.ActionFunc(func(ctx context.Context) error { return each(ctx, actions) })); err != nil {
		var where string
		_ = chromedp.Run(ctx, chromedp.Location(&where))
		t.Fatalf("at %s: %v", where, err)
	}
}

// each runs actions one after the other. What found its node on a page that was just being left
// looks for it again on the next: the browser answers before it has done anything with the node.
func each(ctx context.Context, actions []chromedp.Action) error {
	for _, action := range actions {
		if tasks, ok := action.(chromedp.Tasks); ok {
			if err := each(ctx, tasks); err != nil {
				return err
			}
			continue
		}
		err := action.Do(ctx)
		for _, finds := action.(*chromedp.Selector); finds && isGone(err) && ctx.Err() == nil; {
			err = action.Do(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isGone reports whether the browser no longer knows a node, since its page is left.
func isGone(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && refused.Message == "No node with given id found"
}

// whole says that a page is there with its scripts. A key or a click before that
// is lost, as it is with a person's hand; what led to the page does not wait.
const whole = `document.readyState === "complete"`

// becomes waits until an expression is true on the page, or on the page that
// comes after it.
func becomes(expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			yes := false
			// A page that is being left takes the answer with it: ask the next one.
			err := chromedp.Evaluate(expression, &yes).Do(ctx)
			if err == nil && yes {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("it never became true: %s (%v)", expression, err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// presses focuses an element and presses a key until something is there, as a person does: an
// update of the page between the two takes the focus with it.
func presses(element, key, until string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		there := fmt.Sprintf("!!document.querySelector(%q)", until)
		for {
			try, cancel := context.WithTimeout(ctx, 20*time.Second)
			err := chromedp.Tasks{chromedp.Focus(element), chromedp.KeyEvent(key), becomes(there)}.Do(try)
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

// at waits until the browser has come to another page.
func at(path string) chromedp.Action {
	return becomes("location.pathname === " + strconv.Quote(path) + " && " + whole)
}

// signsIn signs an operator in by the form and waits for the page behind it.
func signsIn(base, name, password, path string) chromedp.Action {
	next := path
	if path == "/" {
		next = "/?" // otherwise the role decides
	}
	return chromedp.Tasks{
		chromedp.Navigate(base + "/login?lang=en&next=" + url.QueryEscape(next)), chromedp.WaitReady("#password"),
		chromedp.SendKeys("#name", name), chromedp.SendKeys("#password", password+"\r"), at(path),
	}
}

// reads has the operator choose a language and a theme.
func reads(base, language, theme string) chromedp.Action {
	return chromedp.Tasks{
		// By query: otherwise links to these places match too, which are hidden on phones.
		chromedp.Navigate(base + "/me"), chromedp.WaitVisible("#language", chromedp.ByQuery), chromedp.SetValue("#language", language,
			chromedp.ByQuery),
		chromedp.SetValue("#theme", theme, chromedp.ByQuery), chromedp.Submit("#zone", chromedp.ByQuery),
		chromedp.WaitVisible(".notice.ok"), becomes(whole),
	}
}

func takeScreenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	var picture []byte
	run(t, ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = cdppage.CaptureScreenshot().WithFormat(cdppage.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err := os.MkdirAll(*screenshots, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// axe is the accessibility checker; see testdata/axe/README.md.
//
//go:embed testdata/axe/axe.min.js
var axe string

// parsedOnce caches the colours that axe parses. Otherwise it parses them again for each element.
const parsedOnce = `;(() => {
  const color = axe.commons.color.Color.prototype, parse = color.parseString, known = new Map();
  color.parseString = function (text) {
    const c = known.get(text);
    if (c) [this.r, this.g, this.b, this.alpha] = c;
    else known.set(text, (parse.call(this, text), [this.r, this.g, this.b, this.alpha]));
    return this;
  };
})()`

// violations runs axe on the page that is open and returns what it found: the
// rules of WCAG 2.2 AA and its best practices. It runs in a world of its own, as
// an extension would: the page's own policy forbids it there.
func violations(t *testing.T, ctx context.Context) []string {
	t.Helper()
	return breaches(t, ctx, `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}`)
}

// breaches are the violations of the rules that axe is given.
func breaches(t *testing.T, ctx context.Context, rules string) []string {
	t.Helper()
	var found []string
	look := func(ctx context.Context) error {
		tree, err := cdppage.GetFrameTree().Do(ctx)
		if err != nil {
			return err
		}
		world, err := cdppage.CreateIsolatedWorld(tree.Frame.ID).WithWorldName("axe").Do(ctx)
		if err != nil {
			return err
		}
		loaded, _, err := runtime.Evaluate("typeof axe === 'object'").WithContextID(world).Do(ctx)
		if err != nil {
			return err
		}
		if string(loaded.Value) != "true" { // the world lasts as long as the page
			if _, thrown, err := runtime.Evaluate(axe + parsedOnce).WithContextID(world).Do(ctx); err != nil || thrown != nil {
				return fmt.Errorf("load axe: %v %v", err, thrown)
			}
		}
		ask := `axe.run(document, {runOnly: ` + rules + `, resultTypes: ["violations"]})
  .then(r => r.violations.map(v => v.id + " (" + v.nodes.length + "): " + v.nodes[0].html.slice(0, 160) + " – " + v.nodes[0].failureSummary.slice(0, 200)))`
		got, thrown, err := runtime.Evaluate(ask).WithContextID(world).WithAwaitPromise(true).WithReturnByValue(true).Do(ctx)
		if err != nil || thrown != nil {
			return fmt.Errorf("run axe: %v %v", err, thrown)
		}
		return json.Unmarshal(got.Value, &found)
	}
	run(t, ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		waittest.Within(5*time.Second, func() bool {
			err = look(ctx)
			return err == nil || !left(err) // a form that was sent leads to the next page
		})
		return err
	}))
	return found
}

// left reports whether a page was left while axe looked at it.
func left(err error) bool {
	for _, text := range []string{"Cannot find context", "context was destroyed", "navigated or closed"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// TestABrowserComplainsWhereThereIsCause is the negative control: a page that
// breaks the policy and leaves our origin is seen, and what axe finds on a second look.
func TestABrowserComplainsWhereThereIsCause(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, said := newBrowser(t, h.Addr)
	script, _ := json.Marshal(`<p style="color:red">x</p><img src="http://127.0.0.1:1/x.png"><p id="faint">too faint to be read</p>`)
	run(t, ctx, chromedp.Navigate("http://"+h.Addr+"/login"), chromedp.WaitReady("main"))
	if found := violations(t, ctx); len(found) > 0 {
		t.Errorf("before there is cause: %q", found)
	}
	run(t, ctx, chromedp.Evaluate("document.body.insertAdjacentHTML('beforeend', "+string(script)+
		"); Object.assign(document.getElementById('faint').style, {color: '#bbbbbb', background: '#ffffff'});"+
		" new Promise(done => setTimeout(() => done(true), 300))", nil,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	found := strings.Join(violations(t, ctx), "; ")
	for _, rule := range []string{"image-alt", "color-contrast"} {
		if !strings.Contains(found, rule) {
			t.Errorf("%s was not found: %s", rule, found)
		}
	}
	all := strings.Join(said.take(), "; ")
	if !strings.Contains(strings.ToLower(all), "content security policy") {
		t.Errorf("browser console, only: %s", all)
	}
}

// TestAnOrderIsFoundAndSentAgainByKeyboardAlone answers a merchant who asks for an order: from the
// overview it is found by the merchant's number, its page says why, and its notification is sent
// again in four steps, without a pointer; shortcuts are silent inside of fields.
func TestAnOrderIsFoundAndSentAgainByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM compensations")
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	run(t, ctx, signsIn("http://"+h.Addr, "wang.min", webtest.GoodPassword, "/"))
	run(t, ctx, chromedp.KeyEvent("go"), at("/orders"))
	run(t, ctx, chromedp.KeyEvent("gc"), at("/callbacks"))
	run(t, ctx, chromedp.KeyEvent("gd"), at("/"))
	steps := 0
	step := func(actions ...chromedp.Action) { t.Helper(); steps++; run(t, ctx, actions...) }
	step(press("/"), chromedp.KeyEvent("GX-88210477"), chromedp.KeyEvent("\r"), at(orderOne))
	var why string
	run(t, ctx, chromedp.Text("#why", &why))
	for _, text := range []string{"The merchant has not confirmed: attempt 2 failed", "Attempt 3 of"} {
		if !strings.Contains(why, text) {
			t.Errorf("the page says why as %q, without %q", why, text)
		}
	}
	step(tabTo(`[data-open="#resend"]`), chromedp.KeyEvent(kb.Enter))
	step(tabTo("#resend-reason"), chromedp.KeyEvent("go on the merchant asked by phone"),
		at(orderOne)) // "go" inside of a field leads nowhere
	step(tabTo("#resend button.primary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#resent"))
	if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action = 'notification.resend' AND object_id = '2026112000000001'"); n != 1 ||
		steps > 4 {
		t.Errorf("sent again %d times, in %d steps", n, steps)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// press is a key as a keyboard sends it: the browser makes the character itself,
// unless the page has taken the key.
func press(key string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key).Do(ctx); err != nil {
			return err
		}
		return input.DispatchKeyEvent(input.KeyUp).WithKey(key).Do(ctx)
	})
}

// TestPagesAreReadWithoutJavaScript reads, filters and pages with scripts off.
func TestPagesAreReadWithoutJavaScript(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBrowser(t, h.Addr)
	var text string
	run(t, ctx, emulation.SetScriptExecutionDisabled(true), signsIn("http://"+h.Addr, "wang.min", webtest.GoodPassword, "/"),
		chromedp.Navigate("http://"+h.Addr+"/orders?status=paid"), chromedp.WaitReady("main"),
		chromedp.Text("main", &text, chromedp.ByQuery))
	if !strings.Contains(text, "3,499.00") || strings.Contains(text, "1,980") {
		t.Errorf("the list of paid orders shows %q", text)
	}
	run(t, ctx, chromedp.Navigate("http://"+h.Addr+"/orders/2026112000000001"), chromedp.WaitReady("main"),
		chromedp.Text("main", &text, chromedp.ByQuery))
	if !strings.Contains(text, "SKU-77120") {
		t.Errorf("the story shows %q", text)
	}
}
