package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/webtest"

	"github.com/pquerna/otp/totp"
)

// setsUp sets up the second factor of who is signed in, and returns its secret and recovery codes.
func (h *harness) setsUp(t *testing.T, cookie string) (secret string, recovery []string) {
	t.Helper()
	page := h.Page(t, cookie, "/me/second?lang=en").Body
	m := regexp.MustCompile(`tabindex="0">([A-Z2-7]{32})<`).FindStringSubmatch(page)
	if m == nil || !strings.Contains(page, "<svg") {
		t.Fatalf("no key on the page: %s", page)
	}
	secret = m[1]
	got := h.Post(t, cookie, "/me/second?lang=en", append(formOf(t, page, "/me/second"), "code", h.code(t, secret, -1))...)
	recovery = regexp.MustCompile(`[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}`).FindAllString(got.Body, 10)
	if got.Status != http.StatusOK || len(recovery) != 10 {
		t.Fatalf("set up: %d, %d recovery codes", got.Status, len(recovery))
	}
	return secret, recovery
}

// code is the code of now, or of so many steps later.
func (h *harness) code(t *testing.T, secret string, steps int) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, h.DB.NowTime().Add(time.Duration(steps)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestASecondFactorIsAskedForAtEachSignIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		secret, recovery := h.setsUp(t, h.SignIn(t, access.Ops))
		got := h.Post(t, "", "/login", "name", "the.ops", "password", webtest.GoodPassword, "next", "/queues")
		half := webtest.CookieOf(got)
		if got.Header.Get("Location") != "/second?next=%2Fqueues" {
			t.Errorf("the password leads to %q", got.Header.Get("Location"))
		}
		for _, path := range []string{"/", "/orders", "/me", "/me/second", "/roles", "/_/risk", "/asynqmon/"} {
			if got := h.Page(t, half, path); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/second" {
				t.Errorf("%s before the second factor: %d to %q", path, got.Status, got.Header.Get("Location"))
			}
		}
		for _, path := range []string{"/me/password", "/me/second/remove", "/queues/notify/pause", "/me/sessions/end"} {
			if got := h.Post(t, half, path, "form_key", "k", "reason", because, "old", webtest.GoodPassword); got.Header.Get("Location") != "/second" {
				t.Errorf("POST %s before the second factor: %d to %q", path, got.Status, got.Header.Get("Location"))
			}
		}
		if got := h.Api(t, webtest.BearerOf(half), http.MethodGet, "/api/v1/admin/exceptions", ""); got.Status != http.StatusForbidden {
			t.Errorf("the session as a bearer: %d", got.Status)
		}
		if got := h.Post(t, half, "/second?lang=en", "code", "123"); got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "Wrong code") {
			t.Errorf("a wrong code: %d", got.Status)
		}
		code := h.code(t, secret, 0)
		got = h.Post(t, half, "/second", "code", code[:3]+" "+code[3:], "next", "/queues")
		if got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/queues" {
			t.Errorf("the code: %d to %q", got.Status, got.Header.Get("Location"))
		}
		if got := h.Page(t, half, "/queues"); got.Status != http.StatusOK {
			t.Errorf("after the code: %d", got.Status)
		}
		other := webtest.CookieOf(h.Post(t, "", "/login", "name", "the.ops", "password", webtest.GoodPassword))
		if got := h.Post(t, other, "/second?lang=en", "code", code); got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "used already") {
			t.Errorf("the code once more: %d", got.Status)
		}
		if got := h.Post(t, other, "/second", "code", recovery[0]); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/" {
			t.Errorf("a recovery code: %d to %q", got.Status, got.Header.Get("Location"))
		}
		if got := h.Post(t, other, "/me/second/remove", "code", recovery[1]); got.Status != http.StatusSeeOther {
			t.Errorf("removed: %d", got.Status)
		}
		if got := h.Post(t, "", "/login", "name", "the.ops", "password", webtest.GoodPassword); got.Header.Get("Location") != "/" {
			t.Errorf("without it the password leads to %q", got.Header.Get("Location"))
		}
	})
}

func TestARoleThatRequiresASecondFactorDoesNothingBefore(t *testing.T) {
	t.Parallel()
	h := openOn(t, dbtest.Default(t), "BACKSTOP_REQUIRE_TOTP=admin,lead")
	lead := h.SignIn(t, access.Lead)
	if got := h.Page(t, lead, "/orders"); got.Header.Get("Location") != "/me/second" {
		t.Errorf("before: %d to %q", got.Status, got.Header.Get("Location"))
	}
	_, recovery := h.setsUp(t, lead)
	if got := h.Page(t, lead, "/orders"); got.Status != http.StatusOK {
		t.Errorf("after: %d", got.Status)
	}
	if got := h.Post(t, lead, "/me/second/remove", "code", recovery[0]); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("what is required is removed: %d", got.Status)
	}
	ops := h.SignIn(t, access.Ops)
	if got := h.Page(t, ops, "/orders"); got.Status != http.StatusOK {
		t.Errorf("another role: %d", got.Status)
	}
	if _, err := h.DB.NewRaw("UPDATE operators SET role = 'lead,ops' WHERE name = 'the.ops'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.Page(t, ops, "/orders"); got.Header.Get("Location") != "/me/second" {
		t.Errorf("one of several roles: %d to %q", got.Status, got.Header.Get("Location"))
	}
}

// People and approvals ask for the factor again once it is 10 minutes old.
func TestTheSecondFactorIsAskedForAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		h.decideWith(twoPeople)
		admin := h.SignIn(t, access.Admin)
		_, recovery := h.setsUp(t, admin)
		old := func() { change(t, h.DB, "UPDATE sessions SET second_at = second_at - 660000000") }
		invite := func(want int, fields ...string) webtest.Answer {
			form := formOf(t, h.Page(t, admin, "/operators").Body, "/operators")
			return h.Post(t, admin, "/operators?lang=en", append(append(form, "name", "li.hang", "role", "viewer", "reason", because), fields...)...)
		}
		if strings.Contains(h.Page(t, admin, "/operators").Body, `name="code"`) {
			t.Error("a fresh factor is asked for")
		}
		old()
		if got := invite(422); got.Status != 422 || !strings.Contains(got.Body, "more than 10 minutes ago") || !strings.Contains(got.Body, `name="code"`) {
			t.Errorf("without the code: %d", got.Status)
		}
		if got := invite(422, "code", "x"); got.Status != 422 || !strings.Contains(got.Body, "Wrong code") {
			t.Errorf("with a wrong one: %d", got.Status)
		}
		if got := invite(200, "code", recovery[0]); got.Status != 200 {
			t.Errorf("with a recovery code: %d", got.Status)
		}
		lead := h.SignIn(t, access.Lead)
		_, recovery = h.setsUp(t, lead)
		old()
		path := "/approvals/apr_501"
		form := formOf(t, h.Page(t, lead, path).Body, path+"/approve")
		if got := h.Post(t, lead, path+"/approve?lang=en", append(form, "reason", because)...); got.Status != 422 || !strings.Contains(got.Body, "more than 10 minutes ago") {
			t.Errorf("an approval without the code: %d", got.Status)
		}
		if got := h.Post(t, lead, path+"/approve?lang=en", append(form, "reason", because, "code", recovery[1])...); got.Status == 422 {
			t.Errorf("an approval with the code: %d", got.Status)
		}
	})
}

func TestOneSessionIsEndedByItsOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		here := h.SignIn(t, access.Ops)
		signIn := func() string {
			return webtest.CookieOf(h.Call(t, http.MethodPost, "/login", "name=the.ops&password="+webtest.GoodPassword, "Content-Type",
				"application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "User-Agent", "Mozilla/5.0 (iPhone) Version/17.5 Safari/604.1"))
		}
		phone, other := signIn(), signIn()
		page := h.Page(t, here, "/me?lang=en").Body
		if !strings.Contains(page, "Safari, iPhone") {
			t.Error("the list of sessions does not name the device")
		}
		hashes := regexp.MustCompile(`name="session" value="([^"]+)"`).FindAllStringSubmatch(page, -1)
		if len(hashes) != 2 {
			t.Fatalf("%d sessions can be ended, want 2", len(hashes))
		}
		lead := h.SignIn(t, access.Lead)
		for _, m := range hashes { // nobody else can
			h.Post(t, lead, "/me/sessions/end", "session", m[1])
		}
		if got := h.Post(t, here, "/me/sessions/end", "session", hashes[0][1]); got.Status != http.StatusSeeOther {
			t.Fatalf("ended: %d", got.Status)
		}
		open := 0
		for _, cookie := range []string{here, phone, other} {
			if h.Page(t, cookie, "/orders").Status == http.StatusOK {
				open++
			}
		}
		if open != 2 || h.Page(t, here, "/orders").Status != http.StatusOK {
			t.Errorf("%d sessions are open, want 2 with this one", open)
		}
	})
}
