package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/queue"
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
	var nudged []queue.Nudge
	h := open(t)
	h.o.Nudge = func(n []queue.Nudge) { nudged = append(nudged, n...) }
	seed(t, h.db)
	cookie := h.signIn(t, access.Support)
	form := append(formOf(t, h.page(t, cookie, orderOne).body, orderOne+"/resend"), "reason", "the merchant asked by phone <b>")
	for range 2 { // a double click
		got := h.post(t, cookie, orderOne+"/resend", form...)
		if got.status != http.StatusSeeOther || got.header.Get("Location") != orderOne {
			t.Fatalf("resend: %d %s %s", got.status, got.header.Get("Location"), got.body)
		}
	}
	if len(nudged) != 1 {
		t.Errorf("%d nudges for one act", len(nudged))
	}
	page := h.page(t, cookie, orderOne+"?lang=en").body
	if strings.Count(page, "the merchant asked by phone &lt;b&gt;") != 1 || !strings.Contains(page, "the.support") {
		t.Error("the story does not show who sent it again and why, once")
	}
	if got := h.page(t, h.signIn(t, access.Auditor), "/audit?check=1&lang=en"); !strings.Contains(got.body, "sent a notification again") || !strings.Contains(got.body, "Chain verified") {
		t.Errorf("the audit does not show it: %d", got.status)
	}
}

func TestAnActNeedsAReasonARightAndItsForm(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Support)
	form := formOf(t, h.page(t, cookie, orderOne).body, orderOne+"/resend")
	for name, c := range map[string]struct {
		cookie, path string
		form         []string
		want         int
	}{
		"without a reason":       {cookie, orderOne + "/resend", form, http.StatusUnprocessableEntity},
		"with a short reason":    {cookie, orderOne + "/resend", append(form[:len(form):len(form)], "reason", "  1234567  "), http.StatusUnprocessableEntity},
		"without the form's key": {cookie, orderOne + "/note", []string{"reason", "long enough to read"}, http.StatusUnprocessableEntity},
		"of another order":       {cookie, "/orders/2026112000000002/resend", append(form[:len(form):len(form)], "reason", "long enough to read"), http.StatusNotFound},
		"of no order":            {cookie, "/orders/NOTHING/note", []string{"form_key", "k", "reason", "long enough to read"}, http.StatusNotFound},
		"by a viewer":            {h.signIn(t, access.Viewer), orderOne + "/resend", append(form[:len(form):len(form)], "reason", "long enough to read"), http.StatusForbidden},
	} {
		if got := h.post(t, c.cookie, c.path, c.form...); got.status != c.want {
			t.Errorf("%s: %d, want %d", name, got.status, c.want)
		}
	}
	if page := h.page(t, h.signIn(t, access.Admin), orderOne).body; strings.Contains(page, orderOne+"/resend") {
		t.Error("a button is drawn for somebody who may not press it")
	}
	for _, table := range []string{"form_keys"} {
		var n int
		if err := h.db.NewRaw("SELECT count(*) FROM "+table).Scan(t.Context(), &n); err != nil || n != 0 {
			t.Errorf("%d rows in %s of acts that were refused, %v", n, table, err)
		}
	}
}

func TestANoteStandsInTheStory(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Finance)
	form := append(formOf(t, h.page(t, cookie, orderOne).body, orderOne+"/note"), "reason", hostile)
	if got := h.post(t, cookie, orderOne+"/note", form...); got.status != http.StatusSeeOther {
		t.Fatalf("note: %d %s", got.status, got.body)
	}
	page := h.page(t, cookie, orderOne).body
	if !strings.Contains(page, "ph-people") || strings.Contains(page, "<img src=x") {
		t.Error("the note is missing, or is not text")
	}
}

// Every role against every route of the console, from the tables themselves.
func TestEveryRoleComesInWhereItsPolicySays(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, role := range access.Roles {
		cookie := h.signIn(t, role)
		for _, r := range h.routes() {
			if r.door != consoleDoor || r.method == http.MethodHead {
				continue
			}
			path := strings.NewReplacer(":order_no", "2026112000000001", "*", "api/queues").Replace(r.path)
			var got answer
			if r.method == http.MethodPost {
				got = h.post(t, cookie, path)
			} else {
				got = h.page(t, cookie, path)
			}
			allowed := policy.Allows(role, r.permission)
			if (got.status != http.StatusForbidden) != allowed {
				t.Errorf("%s %s as %s: %d, allowed %t", r.method, r.path, role, got.status, allowed)
			}
			if got.status >= http.StatusInternalServerError {
				t.Errorf("%s %s as %s: %d", r.method, r.path, role, got.status)
			}
			checked++
		}
	}
	if checked < 80 {
		t.Errorf("only %d pairs of role and route", checked)
	}
}

func TestTheAuditShowsWhatCommandsChanged(t *testing.T) {
	h := open(t)
	auditor := h.signIn(t, access.Auditor) // added as by a command
	for lang, want := range map[string][]string{
		"en": {"added an operator", "role: auditor", "Master key"},
		"zh": {"新建了操作员", "角色：auditor", "主密钥"},
	} {
		got := h.page(t, auditor, "/audit?object=operator&lang="+lang)
		for _, text := range append(want, strings.TrimPrefix(audit.Command(), "command:")) {
			if !strings.Contains(got.body, text) {
				t.Errorf("%s: the audit does not show %q", lang, text)
			}
		}
	}
	if got := h.page(t, auditor, "/audit?object=token&lang=en"); strings.Contains(got.body, "data-row") || !strings.Contains(got.body, `<option value="token" selected>`) {
		t.Errorf("the filter by kind: %d", got.status)
	}
}
