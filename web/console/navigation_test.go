package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"
)

// The navigation counts what waits, as it is stored.
func TestTheNavigationCountsWhatWaits(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie, now := h.SignIn(t, access.Lead), h.DB.Now()
	for id, state := range []string{"open", "open", "resolved"} {
		change(t, h.DB,
			"INSERT INTO exceptions (id, kind, state, subject, amount, currency, detail, opened_at, updated_at) VALUES (?, 'dispute_opened', ?, ?, 2500, 'CNY', '{}', ?, 0)", 70+id, state, id, now)
	}
	for id, state := range []string{"dead", "done"} {
		change(t, h.DB,
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, lane, state, max_attempts, made_by, opened_at) VALUES (?, 'query_order', '', 'order', ?, 1, ?, 9, 'system', ?)", 80+id, id, state, now)
	}
	body := h.Page(t, cookie, "/orders?lang=en").Body
	for path, want := range map[string]string{"/exceptions": "2", "/compensations": "1", "/orders": ""} { // the first pages of their sections
		_, link, _ := strings.Cut(body, `<a class="nav" href="`+path+`"`)
		link, _, _ = strings.Cut(link, "</a>")
		_, count, _ := strings.Cut(link, `<b class="count bad" title="Waiting" data-fact="`)
		_, count, _ = strings.Cut(count, `">`)
		if count, _, _ = strings.Cut(count, "</b>"); count != want {
			t.Errorf("%s counts %q, not %q", path, count, want)
		}
	}
	if strings.Contains(body, `class="env`) {
		t.Error("an installation without a name has a badge")
	}
}

// The environment is named in the top bar and first in the title.
func TestEveryPageNamesItsEnvironment(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_ENVIRONMENT=production")
	cookie := h.SignIn(t, access.Viewer)
	for lang, want := range map[string]string{"en": "Production", "zh": "生产环境"} {
		for _, page := range []string{"/?lang=", "/orders?lang="} {
			if body := h.Page(t, cookie, page+lang).Body; !strings.Contains(body, `<span class="env production">`+want+`</span>`) ||
				!strings.Contains(body, "<title>["+want+"] ") {
				t.Errorf("%s%s does not name its environment", page, lang)
			}
		}
	}
}

// In shadow mode every page says so; otherwise none does.
func TestEveryPageSaysThatItIsShadowMode(t *testing.T) {
	t.Parallel()
	for setting, says := range map[string]bool{"BACKSTOP_SHADOW=true": true, "BACKSTOP_SHADOW=false": false} {
		h := open(t, setting)
		cookie := h.SignIn(t, access.Viewer)
		for lang, want := range map[string]string{"en": "Shadow mode: nobody is notified", "zh": "影子模式：不通知任何人"} {
			for _, page := range []string{"/?lang=", "/orders?lang="} {
				if body := h.Page(t, cookie, page+lang).Body; strings.Contains(body, want) != says {
					t.Errorf("%s: %s%s says that it is shadow mode: %t", setting, page, lang, !says)
				}
			}
		}
	}
}

// A role's day begins where its work is, unless the person asked for a page. Every page of the
// navigation is a tab of one section.
func TestTheFirstPageIsThatOfTheRole(t *testing.T) {
	t.Parallel()
	h := open(t)
	for role, want := range map[string]string{
		access.Finance: "/approvals", access.Lead: "/approvals", access.Viewer: "/orders", access.Support: "/orders", access.Ops: "/",
		access.Admin: "/", access.Auditor: "/",
	} {
		cookie := h.SignIn(t, role)
		name := "first." + role
		if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
		for next, to := range map[string]string{"": want, "/": want, "/queues": "/queues"} {
			got := h.Post(t, "", "/login", "name", name, "password", webtest.GoodPassword, "next", next)
			if at := got.Header.Get("Location"); at != to {
				t.Errorf("%s who asked for %q lands on %q, not on %q", role, next, at, to)
			}
		}
		body := h.Page(t, cookie, want).Body
		if n := strings.Count(body, `<a class="nav"`); n > 9 {
			t.Errorf("%s has %d entries in the navigation", role, n)
		}
		if strings.Count(body, `aria-current>`)+strings.Count(body, `aria-current `) == 0 {
			t.Errorf("%s is in no section on %s", role, want)
		}
	}
}
