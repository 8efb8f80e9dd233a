package console

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/callback"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// supplierKey is what the supplier "quick" signs with.
var supplierKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// declareSupplier declares the supplier "quick", with the id 2.
func declareSupplier(t *testing.T, d *db.DB) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&supplierKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(
		`{"format":"form","algorithm":"rsa-sha256","public_key":%q,"order_field":"out_trade_no","trade_field":"trade_no","amount_field":"money","amount_unit":"major","currency":"CNY","status_field":"trade_status","paid_values":["TRADE_SUCCESS"]}`,
		base64.StdEncoding.EncodeToString(der))
	change(t, d, "INSERT INTO supplier_accounts (id, name) VALUES (2, 'quick')")
	change(t, d,
		"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (2, 'quick', 'sortedparams', 2, TRUE, '[\"203.0.113.0/24\"]', ?, 0, 0)", config)
	if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.IncrementVersion(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

// seedSupplier declares the supplier "quick", and a last hour and week of it.
func seedSupplier(t *testing.T, d *db.DB) {
	t.Helper()
	declareSupplier(t, d)
	const fine = 300_000_000
	now := d.Now() / fine * fine
	for i := range int64(12) {
		change(t, d,
			"INSERT INTO report_suppliers (supplier_id, start, outcome, n) VALUES (2, ?, 'paid', 80), (2, ?, 'late_payment', 2), (2, ?, 'bad_signature', 9)", now-i*fine, now-i*fine, now-i*fine)
		change(t, d,
			"INSERT INTO report_calls (supplier_id, start, op, class, bucket, n) VALUES (2, ?, 'query', 'ok', 4, 30), (2, ?, 'query', 'timeout', 15, 1), (2, ?, 'refund', 'ok', 5, 3)", now-i*fine, now-i*fine, now-i*fine)
	}
	for i := range int64(14) {
		change(t, d, "INSERT INTO report_suppliers (supplier_id, start, outcome, n) VALUES (2, ?, 'paid', 120)", now-7*24*12*fine-i*fine)
	}
}

func TestTheListOfSuppliersShowsTheirFigures(t *testing.T) {
	t.Parallel()
	h := open(t)
	seedSupplier(t, h.DB)
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	cookie := h.SignIn(t, access.Viewer)
	page := h.Page(t, cookie, "/suppliers?lang=en")
	if page.Status != http.StatusOK {
		t.Fatal(page.Status)
	}
	for _, want := range []string{
		"sortedparams", "18.2", "last week 24", "90.1%", "97.6%",
		`href="/callbacks?supplier=quick&amp;window=1h&amp;outcome=bad_signature"`, `href="/suppliers/quick"`, "query", "96.8%", "Unusable",
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if strings.Index(page.Body, ">wx<") > strings.Index(page.Body, ">quick<") {
		t.Error("the one that needs a person is not first")
	}
	overview := h.Page(t, cookie, "/?lang=en").Body
	for _, want := range []string{`id="suppliers-health"`, "Supplier health", "last week 24"} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
}

// TestWhichSupplierFailsIsSeenOnTheOverview is what an operator does who wonders which supplier
// fails now: it is first on the overview, says why, and its name leads on.
func TestWhichSupplierFailsIsSeenOnTheOverview(t *testing.T) {
	t.Parallel()
	h := open(t)
	seedSupplier(t, h.DB)
	change(t, h.DB, "DELETE FROM suppliers WHERE id = 1")
	change(t, h.DB,
		"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) SELECT 3, 'steady', kind, account_id, enabled, allow_ips, config, 0, 0 FROM suppliers WHERE id = 2")
	change(t, h.DB,
		"INSERT INTO report_suppliers (supplier_id, start, outcome, n) SELECT 3, start, 'paid', 300 FROM report_suppliers WHERE supplier_id = 2 AND outcome = 'bad_signature'")
	change(t, h.DB, "UPDATE report_suppliers SET n = 40 WHERE supplier_id = 2 AND outcome = 'bad_signature'")
	if err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.IncrementVersion(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	var first, second, where string
	const row = "document.querySelectorAll('#suppliers-health tbody tr')"
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn("http://"+h.Addr, "li.hang", webtest.GoodPassword, "/"),
		chromedp.WaitReady("#suppliers-health tbody tr"),
		chromedp.Evaluate(row+"[0].innerText", &first), chromedp.Evaluate(row+"[1].innerText", &second))
	if !strings.Contains(first, "quick") || !strings.Contains(first, "Failing checks") || !strings.Contains(second, "steady") ||
		!strings.Contains(second, "OK") {
		t.Errorf("the overview shows %q, %q", first, second)
	}
	// By keyboard: its link has the focus, and Enter follows it.
	run(t, ctx, chromedp.Focus("#suppliers-health tbody tr td a"), chromedp.KeyEvent("\r"), at("/suppliers/quick"),
		chromedp.Text("h1", &where))
	if !strings.Contains(where, "quick") {
		t.Errorf("it leads to %s", where)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// playgroundOf opens a console whose playground checks as the program does.
func playgroundOf(t *testing.T) *harness {
	t.Helper()
	h := open(t)
	seedSupplier(t, h.DB)
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, h.DB,
		"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
			" VALUES (77, 'QUICK77', 1, 'T77', 2, 1999, 'CNY', 2, '', '', 'pending', 1, ?0, ?0, ?0)", h.DB.Now())
	log := slog.New(slog.DiscardHandler)
	nudger := notify.NewNudger(nil, h.DB.Now, log)
	t.Cleanup(nudger.Close)
	processor := payment.New(payment.Options{
		DB: h.DB, Settings: h.Settings, Ledger: ledger.New(h.DB), Nudger: nudger, CheckURL: func(string) error { return nil },
		Batch: 8, Writers: 1, Queue: 64, Wait: 30 * time.Second, Expiry: time.Hour, ExpiryMax: time.Hour, ClosingGrace: time.Minute,
		Log: log,
	})
	t.Cleanup(processor.Close)
	h.Sender.Checks = callback.New(callback.Options{DB: h.DB, Settings: h.Settings, Payments: processor, Wait: 30 * time.Second}).Check
	return h
}

// quickCallback is a signed callback of the supplier "quick".
func quickCallback(t *testing.T, money string) string {
	t.Helper()
	fields := "money=" + money + "&out_trade_no=QUICK77&trade_no=Q1&trade_status=TRADE_SUCCESS"
	digest := sha256.Sum256([]byte(fields))
	sign, err := rsa.SignPKCS1v15(rand.Reader, supplierKey(), crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return "POST /callback/quick HTTP/1.1\nContent-Type: application/x-www-form-urlencoded\n\n" + fields + "&sign=" +
		url.QueryEscape(base64.StdEncoding.EncodeToString(sign))
}

func TestASupplierHasAPageOfItsOwn(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, h.DB,
		"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps) VALUES (?, 'quick', 'wrong_address', ?, '198.51.100.9', 'POST', '', '', '', 'address\t0\t\t!\tnot in allow_ips')", h.DB.NewID(), h.DB.Now())
	change(t, h.DB, `INSERT INTO setting_history (id, object, version, field, old, new, actor, reason, approval, at) VALUES
		(1, 'supplier quick', 2, 'query_rate', '51/s', '20/s', 'operator:chen', 'they asked for it', '', 0),
		(2, 'supplier quicker', 3, 'enabled', 'true', 'false', 'operator:wu', '', '', 0)`)
	viewer := h.SignIn(t, access.Viewer)
	page := h.Page(t, viewer, "/suppliers/quick?lang=en")
	for _, want := range []string{
		"203.0.113.0/24", "public_key", "Supplier&#39;s public key", "query_rate", "chen", "198.51.100.9",
		`href="/callbacks?supplier=quick&amp;outcome=wrong_address"`, `href="/suppliers/quick/playground"`, "timeout 12", "never",
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the page (%d) lacks %q", page.Status, want)
		}
	}
	der, _ := x509.MarshalPKIXPublicKey(&supplierKey().PublicKey)
	if print := fmt.Sprintf("%x", sha256.Sum256(der)); !strings.Contains(page.Body, print) {
		t.Error("the page lacks the fingerprint")
	}
	if strings.Contains(page.Body, "51/s") || !strings.Contains(h.Page(t, h.SignIn(t, access.Admin), "/suppliers/quick").Body, "they asked for it") {
		t.Error("the values of a change are not for those alone who may edit them")
	}
	if got := h.Page(t, viewer, "/suppliers/wx?lang=en"); got.Status != http.StatusOK || !strings.Contains(got.Body, "Unusable") {
		t.Errorf("one whose settings cannot be used: %d", got.Status)
	}
	for _, path := range []string{"/suppliers/none", "/suppliers/none/playground", "/suppliers/%00"} {
		if got := h.Call(t, "GET", path, "", "Cookie", viewer); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}

func TestThePlaygroundShowsWhatWouldHappen(t *testing.T) {
	t.Parallel()
	h := playgroundOf(t)
	viewer := h.SignIn(t, access.Viewer)
	good := quickCallback(t, "19.99")
	hidden := "QUICK77" + webtest.Hostile
	for _, c := range []struct {
		name   string
		form   []string
		status int
		holds  []string
	}{
		{"a payment", []string{"request", good}, 200, []string{
			"Order QUICK77 would be paid (¥19.99 CNY)", "HTTP 200",
			`href="/orders/QUICK77"`, "not checked: no address was given", "nothing was changed",
		}},
		{"its address", []string{"request", good, "from", "192.0.2.1"}, 200, []string{
			"192.0.2.1 is not in allow_ips",
			"It would be rejected", "HTTP 403",
		}},
		{"a forgery", []string{"request", strings.Replace(good, "19.99", "1.99", 1)}, 200, []string{"It would be rejected", "HTTP 401"}},
		{"a wrong amount", []string{"request", quickCallback(t, "5.00")}, 200, []string{"Amount mismatch", "held in suspense"}},
		{"another time", []string{"request", good, "at", "2026-11-20 10:00:00"}, 200, []string{"would be paid"}},
		{"nothing", []string{"request", " "}, 422, []string{"paste an HTTP request"}},
		{"no request", []string{"request", hidden}, 422, []string{"the first line must be", "QUICK77"}},
		{"no address", []string{"request", good, "from", "here"}, 422, []string{"must be an IP address"}},
		{"no time", []string{"request", good, "at", "soon"}, 422, []string{"the time must look like"}},
		{"a long one", []string{"request", strings.Repeat("a", callback.MaxPaste+1)}, 422, []string{"longer than 16384 bytes"}},
	} {
		got := h.Post(t, viewer, "/suppliers/quick/playground?lang=en", c.form...)
		if got.Status != c.status {
			t.Errorf("%s: %d, want %d", c.name, got.Status, c.status)
		}
		for _, want := range c.holds {
			if !strings.Contains(got.Body, want) {
				t.Errorf("%s: the page lacks %q", c.name, want)
			}
		}
		if strings.Contains(got.Body, "<script>alert") || strings.Contains(got.Body, "<img") {
			t.Errorf("%s: a stranger's text is HTML", c.name)
		}
	}
	if n := number(t, h.DB, "SELECT count(*) FROM callbacks") + number(t, h.DB, "SELECT count(*) FROM refused_callbacks") +
		number(t, h.DB, "SELECT count(*) FROM orders WHERE status <> 'pending'"); n != 0 {
		t.Errorf("%d rows are left behind", n)
	}
}

// TestThePlaygroundInABrowser pastes a callback and reads what would happen, in both languages, at
// both widths.
func TestThePlaygroundInABrowser(t *testing.T) {
	t.Parallel()
	h := playgroundOf(t)
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1100, 1, false), signsIn(base, "li.hang", webtest.GoodPassword,
		"/suppliers/quick"))
	for _, look := range []struct{ language, theme, says string }{{"en", "light", "would be paid"}, {"zh", "dark", "已支付"}} {
		run(t, ctx, reads(base, look.language, look.theme))
		for _, width := range []int64{1440, 390} {
			var text string
			var examined struct{ Overflow int }
			run(t, ctx, emulation.SetDeviceMetricsOverride(width, 1100, 1, false), chromedp.Navigate(base+"/suppliers/quick"),
				chromedp.Click(".page-head .btn"), at("/suppliers/quick/playground"),
				chromedp.SetValue("#request", quickCallback(t, "19.99")), chromedp.Submit("#request"), chromedp.WaitVisible("#would-title"),
				becomes(whole),
				chromedp.Text("main", &text), chromedp.Evaluate(examine, &examined))
			name := fmt.Sprintf("playground-%s-%s-%d", look.language, look.theme, width)
			if !strings.Contains(text, look.says) {
				t.Errorf("%s says %q", name, text)
			}
			if found := violations(t, ctx); len(found) > 0 || examined.Overflow > 0 {
				t.Errorf("%s is %d px too wide; %s", name, examined.Overflow, strings.Join(found, "; "))
			}
			if *screenshots != "" {
				takeScreenshot(t, ctx, name)
			}
		}
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
