package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestAnInvitationIsMailed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin := h.SignIn(t, access.Admin)
		if strings.Contains(h.Page(t, admin, "/operators").Body, `name="email"`) {
			t.Error("the form takes an address without a mail server")
		}
		var to, body string
		var fails error
		h.Mail = func(_ context.Context, address, _, text string) error {
			to, body = address, text
			return fails
		}
		invite := func(name, email string) (status int, page string) {
			t.Helper()
			form := formOf(t, h.Page(t, admin, "/operators").Body, "/operators")
			got := h.Post(t, admin, "/operators?lang=en", append(form, "name", name, "role", "viewer", "reason", because, "email", email)...)
			return got.Status, got.Body
		}
		status, page := invite("li", "li@x.example")
		link := linkOf(t, page)
		if status != http.StatusOK || !strings.Contains(page, "Mailed to li@x.example.") {
			t.Errorf("mailed: %d %s", status, page)
		}
		if to != "li@x.example" || strings.Count(body, link) != 2 || !strings.Contains(body, "as li.") || !strings.Contains(body, "用户名 li。") {
			t.Errorf("the mail to %s: %s", to, body)
		}
		for _, bad := range []string{"li", "Li <li@x.example>", "li@x.example, all@x.example", "li@x.example\r\nBcc: all@x.example"} {
			to = ""
			if status, page := invite("wang", bad); status != http.StatusUnprocessableEntity || !strings.Contains(page, "Use one mail address") || to != "" {
				t.Errorf("%q: %d, mailed to %q", bad, status, to)
			}
		}
		if _, err := access.Named(t.Context(), d.Read, "wang"); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("somebody is invited although the address is wrong: %v", err)
		}
		fails = errors.New("no room")
		if status, page := invite("wang", "wang@x.example"); status != http.StatusOK || !strings.Contains(page, "Not mailed to wang@x.example (no room)") ||
			linkOf(t, page) == "" {
			t.Errorf("not mailed: %d", status)
		}
		to = ""
		if _, page := invite("zhao", ""); to != "" || strings.Contains(page, "ailed to") {
			t.Errorf("mailed to nobody: %q", to)
		}
		if n := auditCount(t, d, "operator.mail_invitation"); n != 1 {
			t.Errorf("%d mails in the audit", n)
		}
		if strings.Contains(h.Logged(), link[len("/invite/"):]) {
			t.Error("the log has the link")
		}
	})
}
