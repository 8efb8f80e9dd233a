package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/webtest"
)

func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	if got := h.Page(t, cookie, "/orders"); got.Status != http.StatusOK {
		t.Fatalf("signed in: %d", got.Status)
	}
	got := h.Post(t, cookie, "/logout")
	if got.Header.Get("Location") != "/login" || !strings.Contains(got.Header.Get("Set-Cookie"), "expires=") {
		t.Errorf("sign out: %d %v", got.Status, got.Header)
	}
	// The cookie may live on in a copy: the session must not.
	if got := h.Page(t, cookie, "/orders?status=paid"); got.Header.Get("Location") != "/login?next=%2Forders%3Fstatus%3Dpaid" {
		t.Errorf("after signing out: %d to %q", got.Status, got.Header.Get("Location"))
	}
}

func TestCookiesAreLockedDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		public, name string
		secure       bool
	}{{"http://127.0.0.1:8080", "backstop=", false}, {"https://pay.example", "__Host-backstop=", true}} {
		h := open(t, "BACKSTOP_PUBLIC_URL="+c.public)
		if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		got := h.Post(t, "", "/login", "name", "li", "password", webtest.GoodPassword)
		cookie := got.Header.Get("Set-Cookie")
		lower := strings.ToLower(cookie)
		if !strings.HasPrefix(cookie, c.name) || !strings.Contains(lower, "httponly") || !strings.Contains(lower, "samesite=lax") ||
			!strings.Contains(lower, "path=/") || strings.Contains(lower, "domain") || strings.Contains(lower, "secure") != c.secure {
			t.Errorf("at %s: %q", c.public, cookie)
		}
		if hsts := got.Header.Get("Strict-Transport-Security"); (hsts != "") != c.secure {
			t.Errorf("at %s: HSTS %q", c.public, hsts)
		}
	}
}

func TestOtherSitesCannotPost(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"our page", []string{"Sec-Fetch-Site", "same-origin"}, http.StatusSeeOther},
		{"our page in an older browser", []string{"Origin", "http://" + h.Addr}, http.StatusSeeOther},
		{"our page behind a proxy", []string{"Origin", "http://127.0.0.1:8080"}, http.StatusSeeOther},
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a sister site", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{
			"another site that also says our origin",
			[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://" + h.Addr},
			http.StatusForbidden,
		},
		{"another origin", []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{"no origin", []string{"Origin", "null"}, http.StatusForbidden},
		{"nothing said", nil, http.StatusForbidden},
	} {
		for _, path := range []string{"/me", "/login", "/me/password", "/logout"} {
			want := c.want
			if want == http.StatusSeeOther && path != "/me" {
				continue // they would change the session; /me stands for them
			}
			header := append([]string{"Content-Type", "application/x-www-form-urlencoded", "Cookie", cookie}, c.header...)
			if got := h.Call(t, http.MethodPost, path, "theme=dark", header...); got.Status != want {
				t.Errorf("%s to %s: %d, want %d", c.name, path, got.Status, want)
			}
		}
	}
}

// It runs alone: the guesses must come faster than the seconds that they have to wait.
func TestLoginTellsNothing(t *testing.T) {
	h := open(t)
	if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		known := h.Post(t, "", "/login", "name", "li", "password", "wrong password")
		unknown := h.Post(t, "", "/login", "name", "lo", "password", "wrong password")
		same := strings.ReplaceAll(unknown.Body, `value="lo"`, `value="li"`)
		if known.Status != unknown.Status || i < 5 && known.Body != same {
			t.Errorf("try %d: %d for a known name and %d for an unknown one", i, known.Status, unknown.Status)
		}
		if want := http.StatusUnprocessableEntity; i < 5 && known.Status != want || i > 5 && known.Status != http.StatusTooManyRequests {
			t.Errorf("try %d: %d", i, known.Status)
		}
	}
	// The right password is refused like a wrong one, or guessing could go on.
	if got := h.Post(t, "", "/login", "name", "li", "password", webtest.GoodPassword); got.Status != http.StatusTooManyRequests {
		t.Errorf("the correct password in between: %d", got.Status)
	}
	if strings.Contains(h.Logged(), "wrong password") || strings.Contains(h.Logged(), webtest.GoodPassword) {
		t.Error("a password is in the log")
	}
}

func TestNamesThatCannotBeAreWrongNames(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		for _, name := range []string{"", "li\x00", "\x00", "\xff", "li\r\nx", strings.Repeat("n", 10_000)} {
			if got := h.Post(t, "", "/login", "name", name, "password", "wrong password"); got.Status != http.StatusUnprocessableEntity &&
				got.Status != http.StatusTooManyRequests {
				t.Errorf("%.10q: %d", name, got.Status)
			}
		}
	})
}

// Behind a proxy, operators' acts are recorded with their own address, not with the proxy's.
func TestActsAreOfTheClientBehindAProxy(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]string{"127.0.0.0/8": "198.51.100.7", "192.0.2.0/24": "127.0.0.1"} {
		h := open(t, "BACKSTOP_TRUSTED_PROXIES="+proxies)
		if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		header := []string{
			"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "X-Forwarded-For",
			"198.51.100.7",
		}
		got := h.Call(t, http.MethodPost, "/login", url.Values{"name": {"li"}, "password": {webtest.GoodPassword}}.Encode(), header...)
		if got = h.Call(t, http.MethodPost, "/me/sessions/end", "",
			append(header, "Cookie", webtest.CookieOf(got))...); got.Status != http.StatusSeeOther {
			t.Fatalf("end the other sessions: %d", got.Status)
		}
		var seen []string
		if err := h.DB.Read.NewRaw("SELECT remote_addr FROM audit WHERE remote_addr <> '' UNION SELECT remote_addr FROM sessions").Scan(
			t.Context(), &seen); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, []string{want}) {
			t.Errorf("with the proxies %s: %q, want %s", proxies, seen, want)
		}
	}
}

// What a stranger writes to the left of its own address in the header hides nothing.
func TestActsNameTheNearestAddressThatCanBeBelieved(t *testing.T) {
	t.Parallel()
	for forwarded, want := range map[string]string{
		"garbage, 198.51.100.7":                          "198.51.100.7",
		",,, 198.51.100.7":                               "198.51.100.7",
		"203.0.113.9, 198.51.100.7":                      "198.51.100.7",
		strings.Repeat("9.9.9.9,", 300) + "198.51.100.7": "198.51.100.7",
		"198.51.100.7, garbage":                          "127.0.0.1",
		"198.51.100.7, garbage, 127.0.0.9":               "127.0.0.9",
	} {
		h := open(t, "BACKSTOP_TRUSTED_PROXIES=127.0.0.0/8")
		if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		got := h.Call(t, http.MethodPost, "/login", url.Values{"name": {"li"}, "password": {webtest.GoodPassword}}.Encode(),
			"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", forwarded)
		if got.Status != http.StatusSeeOther {
			t.Fatalf("%.40s: %d", forwarded, got.Status)
		}
		var seen []string
		if err := h.DB.Read.NewRaw("SELECT remote_addr FROM audit WHERE remote_addr <> '' UNION SELECT remote_addr FROM sessions").Scan(
			t.Context(), &seen); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, []string{want}) {
			t.Errorf("%.40s: %q, want %s", forwarded, seen, want)
		}
	}
}

// Strangers who guess at a name from everywhere keep its owner out of a browser that
// he never used, and out of no other.
//
// It runs alone: the guesses must come faster than the seconds that they have to wait.
func TestNobodyIsLockedOutFromOutside(t *testing.T) {
	h := open(t, "BACKSTOP_TRUSTED_PROXIES=127.0.0.0/8")
	for _, name := range []string{"li", "wang"} {
		if _, err := h.Operators.Add(t.Context(), name, access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
	}
	login := func(from, cookie, name, password string) webtest.Answer {
		return h.Call(t, http.MethodPost, "/login", url.Values{"name": {name}, "password": {password}}.Encode(),
			"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", from, "Cookie", cookie)
	}
	first := login("192.0.2.1", "", "li", webtest.GoodPassword)
	var device string
	for _, c := range first.Header.Values("Set-Cookie") {
		if strings.Contains(c, "-device-") {
			device, _, _ = strings.Cut(c, ";")
			if lower := strings.ToLower(c); !strings.Contains(lower, "httponly") || !strings.Contains(lower, "samesite=lax") ||
				!strings.Contains(c, "max-age=31536000") {
				t.Errorf("the device's cookie: %s", c)
			}
		}
	}
	if device == "" {
		t.Fatalf("no cookie of the device: %v", first.Header)
	}
	for i := range 12 {
		login("203.0.113."+strconv.Itoa(i), "", "li", "wrong password")
	}
	if got := login("198.51.100.1", "", "li", webtest.GoodPassword); got.Status != http.StatusTooManyRequests {
		t.Fatalf("the control: a new place is answered %d", got.Status)
	}
	if got := login("192.0.2.1", "", "li", webtest.GoodPassword); got.Status != http.StatusSeeOther {
		t.Errorf("the address that he signed in from: %d", got.Status)
	}
	if got := login("198.51.100.1", device, "li", webtest.GoodPassword); got.Status != http.StatusSeeOther {
		t.Errorf("the browser that he signed in from, at another address: %d", got.Status)
	}
	// His browser is none of another name, and cannot be made.
	name, proof, _ := strings.Cut(device, "=")
	for i := range 12 {
		login("203.0.113."+strconv.Itoa(i), "", "wang", "wrong password")
	}
	forged := proof[:len(proof)-13] + "AAAAAAAAAAAAA"
	for what, cookie := range map[string]string{
		"another's": h.in.deviceCookie("wang") + "=" + proof, "a forged one": h.in.deviceCookie("wang") + "=" + forged,
		"his own name": name + "=" + proof,
	} {
		if got := login("198.51.100.2", cookie, "wang", webtest.GoodPassword); got.Status != http.StatusTooManyRequests {
			t.Errorf("%s: wang was let in: %d", what, got.Status)
		}
	}
	// By it passwords are guessed no faster.
	refused := 0
	for range 10 {
		if login("198.51.100.1", device, "li", "wrong password").Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 4 {
		t.Errorf("of 10 guesses with a known device %d were refused", refused)
	}
}

func TestAOneTimePasswordThatExpiredSaysSo(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, err := h.Operators.Add(t.Context(), "li", access.Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	cookie := webtest.CookieOf(h.Post(t, "", "/login", "name", "li", "password", first))
	if _, err := h.DB.NewRaw("UPDATE operators SET password_expires_at = 1").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, got := range []webtest.Answer{
		h.Post(t, "lang=en", "/login", "name", "li", "password", first),
		h.Post(t, cookie+"; lang=en", "/me/password", "old", first, "new", webtest.GoodPassword, "again", webtest.GoodPassword),
	} {
		if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "reset-password") {
			t.Errorf("%d, %.200s", got.Status, got.Body)
		}
	}
	if got := h.Post(t, "lang=en", "/login", "name", "li", "password", "wrong password"); strings.Contains(got.Body, "reset-password") {
		t.Error("a wrong password was answered as expired")
	}
}

func TestLoginLeadsBackButToNoOtherSite(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/orders?status=paid": "/orders?status=paid", "": "/", "//evil.example": "/", "/\\evil.example": "/",
		"https://evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/login": "/",
	} {
		if got := safeNext(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

func TestAOneTimePasswordOpensNothingButItsChange(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, err := h.Operators.Add(t.Context(), "li", access.Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	got := h.Post(t, "", "/login", "name", "li", "password", first, "next", "/orders")
	cookie := webtest.CookieOf(got)
	if got.Header.Get("Location") != "/me" {
		t.Fatalf("login: %d to %q", got.Status, got.Header.Get("Location"))
	}
	for _, path := range []string{"/", "/orders", "/orders/2026112000000001", "/asynqmon/"} {
		if got := h.Page(t, cookie, path); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/me" {
			t.Errorf("%s before the change: %d to %q", path, got.Status, got.Header.Get("Location"))
		}
	}
	for _, c := range [][3]string{
		{"wrong", webtest.GoodPassword, webtest.GoodPassword},
		{first, "short", "short"},
		{first, webtest.GoodPassword, "something else"},
		{first, first, first},
	} {
		if got := h.Post(t, cookie, "/me/password", "old", c[0], "new", c[1], "again", c[2]); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("change with %v: %d", c, got.Status)
		}
	}
	got = h.Post(t, cookie, "/me/password", "old", first, "new", webtest.GoodPassword, "again", webtest.GoodPassword)
	if got.Status != http.StatusSeeOther || webtest.CookieOf(got) == cookie {
		t.Fatalf("change: %d, cookie %q", got.Status, webtest.CookieOf(got))
	}
	if old := h.Page(t, cookie, "/"); old.Status != http.StatusSeeOther {
		t.Errorf("the session of the one-time password: %d", old.Status)
	}
	if now := h.Page(t, webtest.CookieOf(got), "/"); now.Status != http.StatusOK {
		t.Errorf("the new session: %d", now.Status)
	}
}

// Whoever sets up the installation is led to the first colleague, and nobody after that.
func TestTheFirstPasswordLeadsToTheFirstColleague(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i, c := range []struct{ name, role, to string }{
		{"admin", access.Admin, "/operators?first=1"}, {"second", access.Admin, "/"}, {"third", access.Viewer, "/"},
	} {
		once, err := h.Operators.Add(t.Context(), c.name, c.role, "")
		if err != nil {
			t.Fatal(err)
		}
		cookie := webtest.CookieOf(h.Post(t, "", "/login", "name", c.name, "password", once))
		got := h.Post(t, cookie, "/me/password", "old", once, "new", webtest.GoodPassword, "again", webtest.GoodPassword)
		if got.Header.Get("Location") != c.to {
			t.Errorf("%s is led to %q", c.name, got.Header.Get("Location"))
		}
		if i > 0 {
			continue
		}
		page := h.Page(t, webtest.CookieOf(got), c.to+"&lang=en").Body
		for _, want := range []string{
			"You are the only operator", `action="/operators"`, "Approves what moves money and settings", "moves no money", `href="/guide"`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not have %q", want)
			}
		}
	}
}

func TestChoicesAreKept(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	if got := h.Post(t, cookie, "/me", "language", "en", "theme", "dark", "zone",
		"America/New_York"); got.Header.Get("Location") != "/me?kept=1" {
		t.Fatalf("save: %d", got.Status)
	}
	body := h.Page(t, cookie, "/").Body
	if !strings.Contains(body, `<html lang="en" data-theme="dark">`) || !strings.Contains(body, "America/New_York") {
		t.Error("the overview does not look as chosen")
	}
	// The top bar changes one of them and leaves the others.
	if got := h.Post(t, cookie, "/me", "theme", "light", "back",
		"/orders?status=paid"); got.Header.Get("Location") != "/orders?status=paid" {
		t.Errorf("back to %q", got.Header.Get("Location"))
	}
	if body := h.Page(t, cookie, "/").Body; !strings.Contains(body, `<html lang="en" data-theme="light">`) {
		t.Error("the language was lost with the theme")
	}
	if got := h.Post(t, cookie, "/me", "zone", "Mars/Olympus"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("a zone that there is not: %d", got.Status)
	}
}

func TestLanguageOfStrangersIsTheirBrowsers(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct {
		header []string
		path   string
		want   string
	}{
		{nil, "/login", "zh-CN"},
		{[]string{"Accept-Language", "en-US,en;q=0.9"}, "/login", "en"},
		{[]string{"Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8"}, "/login", "zh-CN"},
		{[]string{"Accept-Language", "fr"}, "/login", "zh-CN"},
		{[]string{"Accept-Language", "zh-CN", "Cookie", "lang=en"}, "/login", "en"},
		{[]string{"Cookie", "lang=en"}, "/login?lang=zh", "zh-CN"},
	} {
		if got := h.Call(t, http.MethodGet, c.path, "", c.header...); !strings.Contains(got.Body, `<html lang="`+c.want+`"`) {
			t.Errorf("%s with %v is not in %s", c.path, c.header, c.want)
		}
	}
}

func TestAPagesOwnRequestIsToldOfTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	h := open(t)
	got := h.Call(t, http.MethodGet, "/", "", "HX-Request", "true")
	if got.Status != http.StatusUnauthorized || got.Header.Get("HX-Redirect") != "/login" {
		t.Errorf("%d, %v", got.Status, got.Header)
	}
}

func TestSigningInAgainLeavesNoSessionBehind(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.SignIn(t, access.Viewer)
	got := h.Post(t, first, "/login", "name", "the.viewer", "password", webtest.GoodPassword)
	if got.Status != http.StatusSeeOther || webtest.CookieOf(got) == first {
		t.Fatalf("%d %s", got.Status, webtest.CookieOf(got))
	}
	if old := h.Page(t, first, "/"); old.Status != http.StatusSeeOther {
		t.Errorf("the session before: %d", old.Status)
	}
	if now := h.Page(t, webtest.CookieOf(got), "/"); now.Status != http.StatusOK {
		t.Errorf("the new session: %d", now.Status)
	}
}
