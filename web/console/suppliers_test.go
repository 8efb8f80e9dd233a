package console

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
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

// seedSupplier declares the supplier "quick", and a last hour and week of it.
func seedSupplier(t *testing.T, d *db.DB) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&supplierKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"format":"form","algorithm":"rsa-sha256","public_key":%q,"order_field":"out_trade_no","trade_field":"trade_no","amount_field":"money","amount_unit":"major","currency":"CNY","status_field":"trade_status","paid_values":["TRADE_SUCCESS"]}`,
		base64.StdEncoding.EncodeToString(der))
	change(t, d, "INSERT INTO supplier_accounts (id, name) VALUES (2, 'quick')")
	change(t, d, "INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (2, 'quick', 'sortedparams', 2, TRUE, '[\"203.0.113.0/24\"]', ?, 0, 0)", config)
	if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.Bump(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	const fine = 300_000_000
	now := d.Now() / fine * fine
	for i := range int64(12) {
		change(t, d, "INSERT INTO report_suppliers (supplier_id, start, outcome, n) VALUES (2, ?, 'paid', 80), (2, ?, 'late_payment', 2), (2, ?, 'bad_signature', 9)", now-i*fine, now-i*fine, now-i*fine)
		change(t, d, "INSERT INTO report_calls (supplier_id, start, op, class, bucket, n) VALUES (2, ?, 'query', 'ok', 4, 30), (2, ?, 'query', 'timeout', 15, 1), (2, ?, 'refund', 'ok', 5, 3)", now-i*fine, now-i*fine, now-i*fine)
	}
	for i := range int64(14) {
		change(t, d, "INSERT INTO report_suppliers (supplier_id, start, outcome, n) VALUES (2, ?, 'paid', 120)", now-7*24*12*fine-i*fine)
	}
}

func TestTheListOfSuppliersShowsTheirFigures(t *testing.T) {
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
		"sortedparams", "18.2", "last week 24", "90.1%", "97.6%", `href="/callbacks?supplier=quick&amp;window=1h&amp;outcome=bad_signature"`, "query", "96.8%", "Unusable",
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if strings.Index(page.Body, ">wx<") > strings.Index(page.Body, ">quick<") {
		t.Error("the one that needs somebody is not first")
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
	h := open(t)
	seedSupplier(t, h.DB)
	change(t, h.DB, "DELETE FROM suppliers WHERE id = 1")
	change(t, h.DB, "INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) SELECT 3, 'steady', kind, account_id, enabled, allow_ips, config, 0, 0 FROM suppliers WHERE id = 2")
	change(t, h.DB, "INSERT INTO report_suppliers (supplier_id, start, outcome, n) SELECT 3, start, 'paid', 300 FROM report_suppliers WHERE supplier_id = 2 AND outcome = 'bad_signature'")
	change(t, h.DB, "UPDATE report_suppliers SET n = 40 WHERE supplier_id = 2 AND outcome = 'bad_signature'")
	if err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.Bump(ctx, tx) }); err != nil {
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
	if !strings.Contains(first, "quick") || !strings.Contains(first, "Checks fail") || !strings.Contains(second, "steady") || !strings.Contains(second, "OK") {
		t.Errorf("the overview shows %q, %q", first, second)
	}
	// By keyboard: its link has the focus, and Enter follows it.
	run(t, ctx, chromedp.Focus("#suppliers-health tbody tr td a"), chromedp.KeyEvent("\r"), becomes("location.pathname !== '/' && "+whole), chromedp.Location(&where))
	if !strings.Contains(where, "quick") {
		t.Errorf("it leads to %s", where)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
