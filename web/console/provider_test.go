package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/operator"
	"backstop/internal/signin/signintest"
	"backstop/web/webtest"
)

// person is who uses a browser.
type person struct {
	h       *harness
	there   *signintest.Provider
	cookies map[string]string
}

// openWithProvider returns a server whose people sign in at a provider that knows li, a lead, and a
// browser.
func openWithProvider(t *testing.T, d *db.DB, environ ...string) *person {
	t.Helper()
	const console = "http://127.0.0.1:8080"
	there := signintest.Open(t, console+"/login/oidc/callback")
	there.Add(signintest.User{Subject: "s-1", Name: "li", Groups: []string{"leads"}})
	h := openOn(t, d, append(environ, "BACKSTOP_OIDC_ISSUER="+there.URL, "BACKSTOP_OIDC_CLIENT_ID="+signintest.Client,
		"BACKSTOP_OIDC_CLIENT_SECRET="+signintest.Secret, "BACKSTOP_OIDC_ROLES=leads=lead,admins=admin,watchers=viewer",
		"BACKSTOP_OIDC_ALLOW_CIDRS=127.0.0.0/8", "BACKSTOP_ADMIN_URL="+console)...)
	return &person{h: h, there: there, cookies: map[string]string{}}
}

// took keeps the cookies of an answer, as a browser does.
func (p *person) took(a webtest.Answer) webtest.Answer {
	for _, line := range a.Header.Values("Set-Cookie") {
		cookie, rest, _ := strings.Cut(line, ";")
		name, value, _ := strings.Cut(cookie, "=")
		p.cookies[name] = value
		if strings.Contains(rest, "expires=") {
			delete(p.cookies, name)
		}
	}
	return a
}

func (p *person) cookie() string {
	all := []string{}
	for name, value := range p.cookies {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, "; ")
}

func (p *person) get(t *testing.T, path string) webtest.Answer {
	t.Helper()
	return p.took(p.h.Call(t, http.MethodGet, path, "", "Cookie", p.cookie(), "Sec-Fetch-Site", "cross-site", "Accept-Language", "en"))
}

func (p *person) post(t *testing.T, path string, fields ...string) webtest.Answer {
	t.Helper()
	return p.took(p.h.Post(t, p.cookie(), path, fields...))
}

// atProvider begins a sign-in and returns the path at which the provider sends the browser back.
func (p *person) atProvider(t *testing.T, query, name string) string {
	t.Helper()
	got := p.get(t, "/login/oidc"+query)
	if got.Status != http.StatusSeeOther {
		t.Fatalf("begin: %d %s", got.Status, got.Body)
	}
	return p.there.SignIn(t, got.Header.Get("Location"), name).RequestURI()
}

func (p *person) signIn(t *testing.T, query, name string) webtest.Answer {
	t.Helper()
	return p.get(t, p.atProvider(t, query, name))
}

func TestPeopleSignInAtTheProvider(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := openWithProvider(t, d, "BACKSTOP_REQUIRE_TOTP=lead")
		if got := p.get(t, "/login?lang=en"); !strings.Contains(got.Body, "Sign in with "+strings.TrimPrefix(p.there.URL, "http://")) {
			t.Errorf("the page for signing in: %s", got.Body)
		}
		if got := p.signIn(t, "?next=%2Forders%3Fstatus%3Dpaid", "li"); got.Header.Get("Location") != "/orders?status=paid" {
			t.Fatalf("signed in: %d to %q", got.Status, got.Header.Get("Location"))
		}
		if got := p.get(t, "/orders"); got.Status != http.StatusOK {
			t.Errorf("the role's page: %d", got.Status)
		}
		if got := p.get(t, "/me"); strings.Contains(got.Body, `action="/me/password"`) || !strings.Contains(got.Body, "are set there") {
			t.Error("a password can be set here")
		}
		if got := p.post(t, "/me/second", "code", "123456"); got.Status != http.StatusConflict {
			t.Errorf("a second factor of our own: %d", got.Status)
		}
		first, err := access.Named(t.Context(), d.Read, "li")
		if err != nil || first.Roles != access.Lead {
			t.Fatalf("%+v, %v", first, err)
		}
		// Signed out, here and there.
		got := p.post(t, "/logout")
		if to, err := url.Parse(strings.TrimPrefix(got.Header.Get("Refresh"), "0; url=")); err != nil || to.Path != "/end_session" ||
			got.Status != http.StatusOK || to.Query().Get("post_logout_redirect_uri") != "http://127.0.0.1:8080/login" {
			t.Errorf("sign out: %d to %v", got.Status, to)
		}
		if got := p.get(t, "/orders"); got.Status != http.StatusSeeOther {
			t.Errorf("after signing out: %d", got.Status)
		}
		// The same person under another name, with other groups.
		p.there.Add(signintest.User{Subject: "s-1", Name: "li", Groups: nil})
		p.there.Add(signintest.User{Subject: "s-1", Name: "li", Groups: []string{"watchers"}})
		p.signIn(t, "", "li")
		if again, err := access.Named(t.Context(), d.Read, "li"); err != nil || again.ID != first.ID || again.Roles != access.Viewer {
			t.Errorf("%+v, %v", again, err)
		}
		if all, err := p.h.Operators.List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d operators, %v", len(all), err)
		}
		for _, secret := range []string{signintest.Secret, "code=", p.cookies["backstop"]} {
			if strings.Contains(p.h.Logged(), secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
	})
}

func TestAnAnswerOfTheProviderWorksOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := openWithProvider(t, d)
		back := p.atProvider(t, "", "li")
		thief := &person{h: p.h, there: p.there, cookies: map[string]string{}}
		if got := thief.get(t, back); got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "another browser") {
			t.Errorf("in another browser: %d", got.Status)
		}
		copied := p.cookie()
		if got := p.get(t, back); got.Status != http.StatusSeeOther {
			t.Fatalf("in its own: %d", got.Status)
		}
		if p.cookies["backstop-oidc"] != "" {
			t.Error("the cookie of the sign-in is still there")
		}
		calls := p.there.Calls["/oauth/token"]
		if got := p.h.Call(t, http.MethodGet, back, "", "Cookie", copied); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("once more, with the cookie of before: %d", got.Status)
		}
		if n := p.there.Calls["/oauth/token"]; n != calls {
			t.Error("the code was sent again")
		}
		forged := "backstop-oidc=" + strings.Repeat("x", 100)
		if got := p.h.Call(t, http.MethodGet, back, "", "Cookie", forged); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("with a forged cookie: %d", got.Status)
		}
	})
}

func TestWhomTheProviderLetsInAndWeDoNot(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := openWithProvider(t, d)
		admin := p.h.SignIn(t, access.Admin)
		for i, c := range []struct {
			user signintest.User
			says string
		}{
			{signintest.User{Subject: "s-2", Name: "wang", Groups: []string{"others"}}, "none of your groups has a role here"},
			{signintest.User{Subject: "s-3", Name: "the.admin", Groups: []string{"admins"}}, "belongs to another operator"},
			{signintest.User{Subject: "s-4", Name: "王敏", Groups: []string{"admins"}}, "gives no name that is valid here"},
			{signintest.User{Subject: "s-1", Name: "li", Groups: []string{"leads"}}, "you are disabled here"},
		} {
			p.there.Add(c.user)
			if c.user.Name == "li" {
				if got := p.signIn(t, "", "li"); got.Status != http.StatusSeeOther {
					t.Fatalf("li: %d", got.Status)
				}
				page := p.h.Page(t, admin, "/operators/li").Body
				if strings.Contains(page, `action="/operators/li/reset"`) || strings.Contains(page, `action="/operators/li/role"`) {
					t.Error("role and password of li can be changed here")
				}
				form := append(formOf(t, page, "/operators/li/disable"), "reason", because)
				if got := p.h.Post(t, admin, "/operators/li/disable", form...); got.Status != http.StatusSeeOther && got.Status != http.StatusOK {
					// A lead is needed for approvals, and this one is the last.
					if _, err := p.h.Operators.Add(t.Context(), "another", access.Lead, webtest.GoodPassword); err != nil {
						t.Fatal(err)
					}
					got = p.h.Post(t, admin, "/operators/li/disable", form...)
				}
				if op, err := access.Named(t.Context(), d.Read, "li"); err != nil || op.DisabledAt == nil {
					t.Fatalf("not disabled: %v", err)
				}
			}
			got := p.signIn(t, "", c.user.Name)
			if got.Status != http.StatusForbidden || !strings.Contains(got.Body, c.says) || !strings.Contains(got.Body, "the.admin") {
				t.Errorf("%d: %d %s", i, got.Status, got.Body)
			}
			if p.get(t, "/orders").Status == http.StatusOK {
				t.Errorf("%d has a session", i)
			}
		}
	})
}

func TestAProviderThatIsGoneEndsNoSession(t *testing.T) {
	t.Parallel()
	p := openWithProvider(t, dbtest.Default(t))
	p.signIn(t, "", "li")
	back := p.atProvider(t, "", "li")
	p.there.Set(false, false)
	if got := p.get(t, "/orders"); got.Status != http.StatusOK {
		t.Errorf("the session: %d", got.Status)
	}
	if got := p.get(t, back); got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Body, "cannot be reached now") {
		t.Errorf("a sign-in: %d %s", got.Status, got.Body)
	}
}

// Acts that ask for a second factor once more want a new sign-in at the provider.
func TestAnActOnPeopleWantsANewSignIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := openWithProvider(t, d)
		p.there.Add(signintest.User{Subject: "s-1", Name: "li", Groups: []string{"admins"}})
		p.signIn(t, "", "li")
		page := p.get(t, "/operators")
		if !strings.Contains(page.Body, `action="/operators"`) || strings.Contains(page.Body, "again=1") {
			t.Errorf("just signed in: %s", page.Body)
		}
		if _, err := d.NewRaw("UPDATE sessions SET second_at = second_at - ?", access.FreshFor.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		invite := func() webtest.Answer {
			form := formOf(t, p.get(t, "/operators").Body, "/operators")
			return p.post(t, "/operators", append(form, "name", "bo", "role", access.Viewer, "reason", because)...)
		}
		if got := invite(); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("ten minutes later: %d", got.Status)
		}
		page = p.get(t, "/operators")
		if !strings.Contains(page.Body, `href="/login/oidc?again=1&amp;next=%2Foperators"`) || strings.Contains(page.Body, `name="code"`) {
			t.Errorf("ten minutes later: %s", page.Body)
		}
		if got := p.signIn(t, "?again=1&next=%2Foperators", "li"); got.Header.Get("Location") != "/operators" {
			t.Errorf("again: %d to %q", got.Status, got.Header.Get("Location"))
		}
		if got := invite(); got.Status != http.StatusOK || !strings.Contains(got.Body, "/invite/bsi_") {
			t.Errorf("after that: %d", got.Status)
		}
		if n := auditCount(t, d, operator.InviteAct); n != 1 {
			t.Errorf("%d invitations", n)
		}
	})
}

func auditCount(t *testing.T, d *db.DB, action string) (n int) {
	t.Helper()
	if err := d.NewRaw("SELECT count(*) FROM audit WHERE action = ?", action).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPasswordsCanBeOffButForEmergencies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := openWithProvider(t, d, "BACKSTOP_PASSWORDS=off", "BACKSTOP_BREAK_GLASS=glass")
		for _, name := range []string{"glass", "bo"} {
			if _, err := p.h.Operators.Add(t.Context(), name, access.Admin, webtest.GoodPassword); err != nil {
				t.Fatal(err)
			}
		}
		wrong := p.post(t, "/login?lang=en", "name", "glass", "password", "wrong password")
		if other := p.post(t, "/login?lang=en", "name", "bo", "password", "wrong password"); other.Status != wrong.Status ||
			strings.ReplaceAll(other.Body, `"bo"`, `"glass"`) != wrong.Body {
			t.Error("a wrong password shows who may use one")
		}
		if got := p.post(t, "/login?lang=en", "name", "bo", "password", webtest.GoodPassword); got.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.Body, "by password is off") || p.get(t, "/orders").Status == http.StatusOK {
			t.Errorf("another operator: %d", got.Status)
		}
		if got := p.post(t, "/login", "name", "glass", "password", webtest.GoodPassword); got.Status != http.StatusSeeOther {
			t.Fatalf("the operator for emergencies: %d", got.Status)
		}
		var alerts int
		if err := d.NewRaw("SELECT count(*) FROM alerts WHERE rule = 'break_glass' AND subject = 'glass'").Scan(t.Context(), &alerts); err != nil || alerts != 1 {
			t.Errorf("%d alerts: %v", alerts, err)
		}
		if n := auditCount(t, d, "session.break_glass"); n != 1 {
			t.Errorf("%d audit rows", n)
		}
		if got := p.get(t, "/operators"); got.Status != http.StatusOK || strings.Contains(got.Body, `action="/operators"`) {
			t.Errorf("people can be invited to set a password: %d", got.Status)
		}
		got := p.post(t, "/operators", "name", "new", "role", access.Viewer, "reason", "a new colleague", "form_key", "k-1")
		if got.Status != http.StatusConflict {
			t.Errorf("an invitation: %d", got.Status)
		}
		// A link from before opens nothing either.
		var in *access.Invitation
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			in, err = p.h.Operators.InviteTx(ctx, tx, "new", access.Admin, "")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got := p.get(t, "/invite/"+in.Token); got.Status != http.StatusGone {
			t.Errorf("an invitation: %d", got.Status)
		}
		if got := p.post(t, "/invite/"+in.Token, "new", webtest.GoodPassword, "again", webtest.GoodPassword); got.Status != http.StatusGone {
			t.Errorf("an invitation accepted: %d", got.Status)
		}
	})
}

func TestWithoutAProviderThereIsNone(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?state=x&code=y"} {
		if got := h.Page(t, "", path); got.Header.Get("Location") != "/login" {
			t.Errorf("%s: %d to %q", path, got.Status, got.Header.Get("Location"))
		}
	}
	if got := h.Page(t, "", "/login"); strings.Contains(got.Body, "/login/oidc") {
		t.Error("the page for signing in offers one")
	}
}
