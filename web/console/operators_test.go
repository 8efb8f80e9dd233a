package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/webtest"
)

const because = "joins the night shift"

// linkOf returns the path of the invitation that a page shows.
func linkOf(t *testing.T, body string) string {
	t.Helper()
	link := regexp.MustCompile(`/invite/bsi_[A-Z2-7]+`).FindString(body)
	if link == "" {
		t.Fatalf("no link on the page: %s", body)
	}
	return link
}

// From the invitation to what the person may do, and what an admin can do to it.
func TestAColleagueIsInvitedAndComesInAsAViewer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin := h.SignIn(t, access.Admin)
		form := formOf(t, h.Page(t, admin, "/operators").Body, "/operators")
		got := h.Post(t, admin, "/operators?lang=en", append(form, "name", "li.hang", "role", "viewer", "reason", because)...)
		if got.Status != http.StatusOK || got.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("invited: %d", got.Status)
		}
		link := linkOf(t, got.Body)
		if strings.Contains(h.Logged(), link[len("/invite/"):]) {
			t.Error("the log has the link")
		}
		// The same form does it once, and nobody sees the link again.
		if got := h.Post(t, admin, "/operators", append(form, "name", "li.hang", "role", "viewer", "reason", because)...); got.Status != http.StatusSeeOther {
			t.Errorf("the form sent twice: %d", got.Status)
		}
		if page := h.Page(t, admin, "/operators/li.hang?lang=en").Body; strings.Contains(page, "bsi_") || !strings.Contains(page, "Invited") {
			t.Error("the page of who is invited shows the link, or not that it is")
		}
		if got := h.Page(t, "", link+"?lang=en"); got.Status != http.StatusOK || !strings.Contains(got.Body, "You sign in as li.hang (Viewer)") {
			t.Errorf("the page of the link: %d", got.Status)
		}
		if got := h.Post(t, "", link, "new", webtest.GoodPassword, "again", "another"); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("two passwords: %d", got.Status)
		}
		if got := h.Post(t, "", link+"?lang=en", "new", "Football2026!", "again", "Football2026!"); got.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.Body, "This password is a common one") {
			t.Errorf("a common password: %d", got.Status)
		}
		got = h.Post(t, "", link, "new", webtest.GoodPassword, "again", webtest.GoodPassword)
		li := webtest.CookieOf(got)
		if got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/orders" {
			t.Fatalf("accepted: %d to %s", got.Status, got.Header.Get("Location"))
		}
		for path, want := range map[string]int{"/orders": 200, "/operators": 403, "/audit": 403, "/roles": 200} {
			if got := h.Page(t, li, path); got.Status != want {
				t.Errorf("%s as a viewer: %d, want %d", path, got.Status, want)
			}
		}
		if got := h.Post(t, "", link, "new", webtest.GoodPassword, "again", webtest.GoodPassword); got.Status != http.StatusGone {
			t.Errorf("the link a second time: %d", got.Status)
		}

		page := "/operators/li.hang"
		h.sends(t, admin, page, page+"/role", http.StatusSeeOther, "role", "ops", "role", "finance", "reason", because)
		if got := h.Page(t, li, "/queues"); got.Status != http.StatusOK {
			t.Errorf("the new roles: %d", got.Status)
		}
		if got := h.Page(t, admin, page+"?lang=en").Body; !strings.Contains(got, "Finance · Operations") {
			t.Error("the page does not name both roles")
		}
		if got := h.Post(t, admin, page+"/role", "form_key", "none", "reason", because); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("no role: %d", got.Status)
		}
		h.sends(t, admin, page, page+"/end_sessions", http.StatusSeeOther, "reason", because)
		if got := h.Page(t, li, "/orders"); got.Status != http.StatusSeeOther {
			t.Errorf("a session that was ended: %d", got.Status)
		}
		form = formOf(t, h.Page(t, admin, page).Body, page+"/reset")
		again := linkOf(t, h.Post(t, admin, page+"/reset", append(form, "reason", because)...).Body)
		if got := h.Post(t, "", "/login", "name", "li.hang", "password", webtest.GoodPassword); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("the password after its reset: %d", got.Status)
		}
		h.sends(t, admin, page, page+"/disable", http.StatusSeeOther, "reason", because)
		if got := h.Page(t, "", again); got.Status != http.StatusGone {
			t.Errorf("the link of somebody disabled: %d", got.Status)
		}
		h.sends(t, admin, page, page+"/enable", http.StatusSeeOther, "reason", because)
		wantAudit(t, h, "li.hang", "operator.invite operator.accept operator.role operator.end_sessions operator.reset_password"+
			" operator.disable operator.enable")
	})
}

// wantAudit compares what was done to an operator.
func wantAudit(t *testing.T, h *harness, name, want string) {
	t.Helper()
	var acts []string
	if err := h.DB.NewRaw("SELECT action FROM audit WHERE object = 'operator' AND object_id = ? ORDER BY number", name).Scan(t.Context(), &acts); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(acts, " "); got != want {
		t.Errorf("the audit of %s has %s, want %s", name, got, want)
	}
}

func TestNobodyChangesTheirOwnAccess(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		admin, _ := h.SignIn(t, access.Admin), h.SignIn(t, access.Lead)
		own, lead := "/operators/the.admin", "/operators/the.lead"
		if body := h.Page(t, admin, own).Body; strings.Contains(body, own+"/role") || strings.Contains(body, own+"/disable") {
			t.Error("a person's own page offers to change it")
		}
		for path, c := range map[string]struct{ page, field, says string }{
			own + "/role":     {own, "role", "nobody changes or disables themselves"},
			own + "/disable":  {own, "", "nobody changes or disables themselves"},
			own + "/reset":    {own, "", "nobody changes or disables themselves"},
			lead + "/disable": {lead, "", "This is the last operator who may approve"},
			lead + "/role":    {lead, "role", "This is the last operator who may approve"},
			lead + "/enable":  {lead, "", "The operator is not disabled"},
		} {
			fields := []string{"form_key", "k " + path, "reason", because}
			if c.field != "" {
				fields = append(fields, c.field, "admin")
			}
			got := h.Post(t, admin, path+"?lang=en", fields...)
			if got.Status != http.StatusConflict || !strings.Contains(strings.ToLower(got.Body), strings.ToLower(c.says)) {
				t.Errorf("%s: %d without %q", path, got.Status, c.says)
			}
		}
		for name, problem := range map[string]string{"the.lead": "the name is taken", "Li Hang": "bad name"} {
			form := formOf(t, h.Page(t, admin, "/operators").Body, "/operators")
			got := h.Post(t, admin, "/operators?lang=en", append(form, "name", name, "role", "viewer", "reason", because)...)
			if got.Status != http.StatusUnprocessableEntity || !strings.Contains(strings.ToLower(got.Body), problem) ||
				!strings.Contains(got.Body, `value="`+name+`"`) {
				t.Errorf("invite %q: %d, want %q at the field", name, got.Status, problem)
			}
		}
		if got := h.Page(t, admin, "/operators/nobody"); got.Status != http.StatusNotFound {
			t.Errorf("nobody: %d", got.Status)
		}
		for _, lang := range []string{"zh", "en"} {
			for _, path := range []string{"/operators", own, lead, "/roles"} {
				got := h.Page(t, admin, path+"?lang="+lang)
				if got.Status != http.StatusOK || lang == "en" && han.MatchString(strings.ReplaceAll(got.Body, "中文", "")) || leakedKey(got.Body) != "" {
					t.Errorf("%s in %s: %d, or it is in another language", path, lang, got.Status)
				}
			}
		}
	})
}
