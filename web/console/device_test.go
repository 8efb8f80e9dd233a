package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/inbox"
	"backstop/web/webtest"
)

func TestASignInFromANewDeviceIsReportedToItsOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d, "BACKSTOP_TRUSTED_PROXIES=127.0.0.0/8")
		if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		const chrome, firefox = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Chrome/141", "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"
		signIn := func(from, agent, cookie string) string {
			t.Helper()
			got := h.Call(t, http.MethodPost, "/login", "name=li&password="+strings.ReplaceAll(webtest.GoodPassword, " ", "+"),
				"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", from, "User-Agent", agent, "Cookie", cookie)
			if got.Status != http.StatusSeeOther {
				t.Fatalf("sign in: %d", got.Status)
			}
			cookies := ""
			for _, line := range got.Header.Values("Set-Cookie") {
				one, _, _ := strings.Cut(line, ";")
				cookies += one + "; "
			}
			return cookies
		}
		messages := func() []inbox.Message {
			t.Helper()
			row, err := access.Named(t.Context(), d.Read, "li")
			if err != nil {
				t.Fatal(err)
			}
			page, err := inbox.List(t.Context(), d.Read, row.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			return page.Rows
		}
		first := signIn("203.0.113.7", chrome, "")
		for _, c := range []struct{ what, from, agent, cookie string }{
			{"the same again", "203.0.113.7", chrome, ""},
			{"another address of the block", "203.0.113.200", chrome, ""},
			{"the browser at another place", "198.51.100.9", chrome, first},
			{"a newer version at that place", "198.51.100.9", strings.Replace(chrome, "141", "142", 1), ""},
		} {
			if signIn(c.from, c.agent, c.cookie); len(messages()) != 0 {
				t.Errorf("%s: %+v", c.what, messages())
			}
		}
		mine := signIn("203.0.113.7", firefox, "")
		all := messages()
		if len(all) != 1 || all[0].Text != "Firefox, Linux" || all[0].ObjectID != "203.0.113.7" {
			t.Fatalf("another browser: %+v", all)
		}
		if signIn("203.0.113.7", firefox, ""); len(messages()) != 1 {
			t.Error("the same device is reported twice")
		}
		if signIn("192.0.2.1", chrome, ""); len(messages()) != 2 {
			t.Error("another place is not reported")
		}
		got := h.Page(t, mine, "/inbox?lang=en")
		if !strings.Contains(got.Body, "from a new device: Firefox, Linux, 203.0.113.7") || !strings.Contains(got.Body, `value="/me#sessions"`) {
			t.Errorf("the inbox: %s", got.Body)
		}
		if got := h.Page(t, mine, "/inbox?lang=zh"); !strings.Contains(got.Body, "从新设备登录：Firefox, Linux") {
			t.Error("the inbox in Chinese does not say so")
		}
	})
}
