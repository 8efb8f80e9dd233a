package console

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/passkey"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// answerPasskey answers the form of a page, and returns its fields instead of sending them.
const answerPasskey = `(async () => {
  const form = document.querySelector("form[data-passkey]");
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(form.dataset.options));
  return [form.elements.sealed.value, JSON.stringify(await navigator.credentials.get({ publicKey }))];
})()`

// An operator with a second factor adds a passkey and signs in with it, by an authenticator of the
// browser.
func TestAPasskeyIsGivenInsteadOfACode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		for _, name := range []string{"li", "bo"} {
			if _, err := h.Operators.Add(t.Context(), name, access.Ops, webtest.GoodPassword); err != nil {
				t.Fatal(err)
			}
		}
		host := strings.Replace(h.Addr, "127.0.0.1", "localhost", 1) // browsers have no passkeys for addresses
		base := "http://" + host
		var err error
		if h.in.passkeys, err = passkey.New(d, h.Keys, base); err != nil {
			t.Fatal(err)
		}
		ctx, said := newBrowser(t, host)
		run(t, ctx, emulation.SetDeviceMetricsOverride(390, 900, 1, true), signsIn(base, "li", webtest.GoodPassword, "/"))
		var key, at, text string
		run(t, ctx, chromedp.Navigate(base+"/me/second?lang=en"), chromedp.WaitVisible(".copied pre"), chromedp.TextContent(".copied pre", &key))
		run(t, ctx, chromedp.SendKeys("#code", h.code(t, key, 0)), chromedp.Click(`form[action="/me/second"] button.primary`), chromedp.WaitVisible("#recovery"))

		run(t, ctx, webauthn.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
				Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
				HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			}).Do(ctx)
			return err
		}))
		const add, remove = `form[action="/me/second/passkeys"] button`, `form[action="/me/second/passkeys/remove"] button`
		run(t, ctx, chromedp.Navigate(base+"/me/second?lang=en"), chromedp.WaitVisible(add), chromedp.Click(add), chromedp.WaitVisible(remove))
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the second factor: %s", strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, "passkeys")
		}

		// The password is not enough, and the passkey is asked for.
		password := func() {
			t.Helper()
			run(t, ctx, chromedp.Evaluate(`void document.querySelector('form[action="/logout"]').requestSubmit()`, nil), chromedp.WaitVisible("#password"))
			run(t, ctx, chromedp.Navigate(base+"/login?lang=en&next=/queues"), chromedp.SendKeys("#name", "li"),
				chromedp.SendKeys("#password", webtest.GoodPassword), chromedp.Click("button.primary"), chromedp.WaitVisible(`form[data-passkey="get"] button`))
		}
		password()
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the page that asks: %s", strings.Join(found, "; "))
		}
		run(t, ctx, chromedp.Click(`form[data-passkey="get"] button`), chromedp.WaitReady(`a[href^="/asynqmon"], #main h1`),
			chromedp.Location(&at), chromedp.TextContent("main", &text))
		if at != base+"/queues" {
			t.Errorf("the passkey leads to %s: %s", at, text)
		}
		if row, err := h.in.passkeys.List(t.Context(), number(t, d, "SELECT id FROM operators WHERE name = 'li'")); err != nil || len(row) != 1 || row[0].UsedAt == nil {
			t.Errorf("stored: %+v, %v", row, err)
		}

		// An answer works once, and for its operator only.
		password()
		var fields []string
		run(t, ctx, chromedp.Evaluate(answerPasskey, &fields, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		give := func(name string) int {
			t.Helper()
			half := webtest.CookieOf(h.Post(t, "", "/login", "name", name, "password", webtest.GoodPassword))
			h.Post(t, half, "/second", "sealed", fields[0], "answer", fields[1])
			return h.Page(t, half, "/orders").Status
		}
		h.setsUp(t, webtest.CookieOf(h.Post(t, "", "/login", "name", "bo", "password", webtest.GoodPassword)))
		for i, c := range []struct {
			name string
			want int
		}{{"bo", http.StatusSeeOther}, {"li", http.StatusOK}, {"li", http.StatusSeeOther}} {
			if got := give(c.name); got != c.want {
				t.Errorf("%d: the answer given as %s opens the orders with %d, want %d", i, c.name, got, c.want)
			}
		}
		// Nobody removes another's, and the second factor takes its passkeys along.
		keys := func() int64 { return number(t, d, "SELECT count(*) FROM operator_passkeys") }
		id := func() (id string) {
			t.Helper()
			if err := d.NewRaw("SELECT id FROM operator_passkeys").Scan(t.Context(), &id); err != nil {
				t.Fatal(err)
			}
			return id
		}()
		stranger := h.SignIn(t, access.Viewer)
		if got := h.Post(t, stranger, "/me/second/passkeys/remove", "passkey", id); got.Status != http.StatusUnprocessableEntity || keys() != 1 {
			t.Errorf("another's passkey: %d", got.Status)
		}
		if got := h.Post(t, stranger, "/me/second/passkeys", "sealed", fields[0], "answer", fields[1]); got.Status != http.StatusConflict {
			t.Errorf("a passkey without a second factor: %d", got.Status)
		}
		if err := h.Operators.ResetSecond(t.Context(), "li"); err != nil || keys() != 0 {
			t.Errorf("reset: %d passkeys, %v", keys(), err)
		}
		if all := said.take(); len(all) > 0 {
			t.Errorf("browser console: %s", strings.Join(all, "; "))
		}
	})
}
