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
  return [form.elements.passkey_sealed.value, JSON.stringify(await navigator.credentials.get({ publicKey }))];
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
		var key string
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
		const alone = `form[action="/login/passkey"] button`
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
				chromedp.SendKeys("#password", webtest.GoodPassword), chromedp.Click("button.primary"),
				chromedp.WaitVisible(`form[action="/second"][data-passkey] button`))
		}
		password()
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the page that asks: %s", strings.Join(found, "; "))
		}
		run(t, ctx, onward(`form[action="/second"][data-passkey] button`, "/queues"))
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
			h.Post(t, half, "/second", "passkey_sealed", fields[0], "passkey_answer", fields[1])
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
		// Alone it is both factors, and it answers the question of what asks for them again.
		out := chromedp.Tasks{
			chromedp.Evaluate(`void document.querySelector('form[action="/logout"]').requestSubmit()`, nil), chromedp.WaitVisible("#password"),
		}
		run(t, ctx, chromedp.Navigate(base+"/login?lang=en&next=/queues"), chromedp.WaitVisible(alone))
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the page for signing in: %s", strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, "passkey-login")
		}
		run(t, ctx, onward(alone, "/queues"))
		change(t, d, "UPDATE operators SET role = 'admin' WHERE name = 'li'")
		change(t, d, "UPDATE sessions SET second_at = second_at - 660000000")
		run(t, ctx, chromedp.Navigate(base+"/operators?lang=en"), chromedp.WaitVisible("[data-give-passkey]"))
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("the page that asks again: %s", strings.Join(found, "; "))
		}
		run(t, ctx, chromedp.SendKeys(`form[action="/operators"] [name="name"]`, "mei"),
			chromedp.SendKeys(`form[action="/operators"] [name="reason"]`, because), chromedp.Click(`form[action="/operators"] [data-give-passkey]`),
			chromedp.WaitVisible(".notice .copied pre"))
		if n := number(t, d, "SELECT count(*) FROM operators WHERE name = 'mei'"); n != 1 {
			t.Errorf("invited: %d", n)
		}

		// An answer works once, while the operator may sign in by password.
		run(t, ctx, out, chromedp.Navigate(base+"/login?lang=en"), chromedp.WaitVisible(alone),
			chromedp.Evaluate(answerPasskey, &fields, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		enter := func() webtest.Answer {
			return h.Post(t, "", "/login/passkey", "passkey_sealed", fields[0], "passkey_answer", fields[1])
		}
		for _, refused := range []string{"must_change = TRUE", "disabled_at = 1"} {
			change(t, d, "UPDATE operators SET "+refused+" WHERE name = 'li'")
			if got := enter(); got.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", refused, got.Status)
			}
			change(t, d, "UPDATE operators SET must_change = FALSE, disabled_at = NULL WHERE name = 'li'")
		}
		h.in.Config.Passwords = "off"
		if got := enter(); got.Status != http.StatusUnprocessableEntity || strings.Contains(got.Body, `action="/login/passkey"`) {
			t.Errorf("without passwords: %d", got.Status)
		}
		h.in.Config.Passwords = "on"
		fresh := h.Post(t, "", "/login/passkey", "passkey_sealed", fields[0], "passkey_answer", fields[1])
		if fresh.Status != http.StatusUnprocessableEntity {
			t.Errorf("an answer that was used: %d", fresh.Status)
		}
		var params string
		const started = "SELECT params FROM audit WHERE action = 'session.start' AND params LIKE '%passkey%'"
		if err := d.NewRaw(started).Scan(t.Context(), &params); err != nil {
			t.Errorf("the audit does not say how li signed in: %v", err)
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
