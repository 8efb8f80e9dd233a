package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/queue"
	"backstop/web"
	"backstop/web/webtest"
)

// formOf finds the hidden fields of a form on a page.
func formOf(t *testing.T, body, action string) (fields []string) {
	t.Helper()
	_, form, found := strings.Cut(body, `action="`+action+`"`)
	if !found {
		t.Fatalf("the page has no form for %s", action)
	}
	form, _, _ = strings.Cut(form, "</form>")
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]+)"`).FindAllStringSubmatch(form, -1) {
		fields = append(fields, m[1], m[2])
	}
	return fields
}

const orderOne = "/orders/2026112000000001"

func TestANotificationIsSentAgainOnceWithItsReason(t *testing.T) {
	t.Parallel()
	var nudged []queue.Nudge
	h := open(t)
	h.Nudge = func(n []queue.Nudge) { nudged = append(nudged, n...) }
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Support)
	form := append(formOf(t, h.Page(t, cookie, orderOne).Body, orderOne+"/resend"), "reason", "the merchant asked by phone <b>")
	for range 2 { // a double click
		got := h.Post(t, cookie, orderOne+"/resend", form...)
		if got.Status != http.StatusSeeOther || got.Header.Get("Location") != orderOne {
			t.Fatalf("resend: %d %s %s", got.Status, got.Header.Get("Location"), got.Body)
		}
	}
	if len(nudged) != 1 {
		t.Errorf("%d nudges for one act", len(nudged))
	}
	page := h.Page(t, cookie, orderOne+"?lang=en").Body
	if strings.Count(page, "the merchant asked by phone &lt;b&gt;") != 1 || !strings.Contains(page, "the.support") {
		t.Error("the story does not show who sent it again and why, once")
	}
	if got := h.Page(t, h.SignIn(t, access.Auditor), "/audit?check=1&lang=en"); !strings.Contains(got.Body, "resent a notification") ||
		!strings.Contains(got.Body, "Chain verified") {
		t.Errorf("the audit does not show it: %d", got.Status)
	}
}

func TestAnActNeedsAReasonARightAndItsForm(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Support)
	form := formOf(t, h.Page(t, cookie, orderOne).Body, orderOne+"/resend")
	for name, c := range map[string]struct {
		cookie, path string
		form         []string
		want         int
	}{
		"without a reason": {cookie, orderOne + "/resend", form, http.StatusUnprocessableEntity},
		"with a short reason": {
			cookie, orderOne + "/resend", append(form[:len(form):len(form)], "reason", "  1234567  "),
			http.StatusUnprocessableEntity,
		},
		"without the form's key": {cookie, orderOne + "/note", []string{"reason", "long enough to read"}, http.StatusUnprocessableEntity},
		"of another order": {cookie, "/orders/2026112000000002/resend", append(form[:len(form):len(form)], "reason",
			"long enough to read"), http.StatusNotFound},
		"of no order": {
			cookie, "/orders/NOTHING/note",
			[]string{"form_key", "k", "reason", "long enough to read"},
			http.StatusNotFound,
		},
		"by a viewer": {h.SignIn(t, access.Viewer), orderOne + "/resend", append(form[:len(form):len(form)], "reason",
			"long enough to read"), http.StatusForbidden},
	} {
		if got := h.Post(t, c.cookie, c.path, c.form...); got.Status != c.want {
			t.Errorf("%s: %d, want %d", name, got.Status, c.want)
		}
	}
	if page := h.Page(t, h.SignIn(t, access.Admin), orderOne).Body; strings.Contains(page, orderOne+"/resend") {
		t.Error("a button is shown to an operator who may not use it")
	}
	for _, table := range []string{"form_keys"} {
		var n int
		if err := h.DB.NewRaw("SELECT count(*) FROM "+table).Scan(t.Context(), &n); err != nil || n != 0 {
			t.Errorf("%d rows in %s of acts that were refused, %v", n, table, err)
		}
	}
}

func TestANoteStandsInTheStory(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Finance)
	form := append(formOf(t, h.Page(t, cookie, orderOne).Body, orderOne+"/note"), "reason", webtest.Hostile)
	if got := h.Post(t, cookie, orderOne+"/note", form...); got.Status != http.StatusSeeOther {
		t.Fatalf("note: %d %s", got.Status, got.Body)
	}
	page := h.Page(t, cookie, orderOne).Body
	if !strings.Contains(page, "ph-people") || strings.Contains(page, "<img src=x") {
		t.Error("the note is missing, or is not text")
	}
}

// Every role against every route of the console, from the tables themselves.
func TestEveryRoleComesInWhereItsPolicySays(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, role := range access.AllRoles {
		cookie := h.SignIn(t, role)
		for _, r := range h.Routes() {
			if r.Audience != web.ForOperator || r.Method == http.MethodHead {
				continue
			}
			path := strings.NewReplacer(":order_no", "2026112000000001", "*", "api/queues").Replace(r.Path)
			var got webtest.Answer
			if r.Method == http.MethodPost {
				got = h.Post(t, cookie, path)
			} else {
				got = h.Page(t, cookie, path)
			}
			allowed := policy.Allows(access.RolesOf(role), r.Permission)
			if (got.Status != http.StatusForbidden) != allowed {
				t.Errorf("%s %s as %s: %d, allowed %t", r.Method, r.Path, role, got.Status, allowed)
			}
			if got.Status >= http.StatusInternalServerError {
				t.Errorf("%s %s as %s: %d", r.Method, r.Path, role, got.Status)
			}
			checked++
		}
	}
	if checked < 80 {
		t.Errorf("only %d pairs of role and route", checked)
	}
}

func TestTheAuditShowsWhatCommandsChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	auditor := h.SignIn(t, access.Auditor) // added as by a command
	for lang, want := range map[string][]string{
		"en": {"added an operator", "role: auditor", "Master key"},
		"zh": {"新建了操作员", "角色：auditor", "主密钥"},
	} {
		got := h.Page(t, auditor, "/audit?object=operator&lang="+lang)
		for _, text := range append(want, strings.TrimPrefix(audit.Command(), "command:")) {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s: the audit does not show %q", lang, text)
			}
		}
	}
	if got := h.Page(t, auditor, "/audit?object=token&lang=en"); strings.Contains(got.Body, "data-row") ||
		!strings.Contains(got.Body, `<option value="token" selected>`) {
		t.Errorf("the filter by kind: %d", got.Status)
	}
}
