package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/audit"
)

func TestWhatNeedsAttentionIsOneListByMoney(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
			" VALUES (9, 'late_payment', 'open', 0, 0, 0, '', 't9', 500000, 'CNY', '{}', 1, 1)")
	page := h.Page(t, h.SignIn(t, access.Ops), "/?lang=en")
	if page.Status != http.StatusOK {
		t.Fatal(page.Status)
	}
	_, list, _ := strings.Cut(page.Body, `id="attention"`)
	list, _, _ = strings.Cut(list, "</section>")
	links := regexp.MustCompile(`<a class="btn sm" href="([^"]+)"`).FindAllStringSubmatch(list, -1)
	var got []string
	for _, l := range links {
		got = append(got, strings.ReplaceAll(l[1], "&amp;", "&"))
	}
	// CNY is in most lines, so its largest amount comes first; a million yen is not compared with it.
	want := "/exceptions?kind=late_payment&state=needs /attention/4 /attention/7 /attention/1 /attention/5 /attention/6 /attention/2"
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, phrase := range []string{
		"¥5,000.00", "¥239.88", "¥1,000,000", "Being worked on", "assigned to wang.min", "Snoozed",
		"Ended within the last 24 hours", "3 times",
	} {
		if !strings.Contains(page.Body, phrase) {
			t.Errorf("the list does not show %q", phrase)
		}
	}
	if strings.Contains(page.Body, "<img src=x") {
		t.Error("something of outside is not text")
	}
	if !regexp.MustCompile(`class="nav" href="/"[^>]*>(?s:.{0,300})<b class="count[^>]*>3</b>`).MatchString(
		page.Body) { // open, neither acknowledged nor snoozed
		t.Error("the navigation does not count the open incidents")
	}
	finance := h.Page(t, h.SignIn(t, access.Finance), "/?lang=en").Body
	if !strings.Contains(finance, "/exceptions?kind=late_payment") || strings.Contains(finance, "/attention/") {
		t.Error("who may not read alerts sees incidents, or not the rest")
	}
}

// The list is filtered by text, kind and assignee; the file has what the page shows.
func TestWhatNeedsAttentionIsFilteredAndExported(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
			" VALUES (9, 'late_payment', 'open', 0, 0, 0, '', 't9', 500000, 'CNY', '{}', 1, 1)")
	ops := h.SignIn(t, access.Ops)
	link := regexp.MustCompile(`<a class="btn sm" href="([^"]+)"`)
	linksOf := func(body string) (all []string) {
		for _, l := range link.FindAllStringSubmatch(body, -1) {
			all = append(all, strings.ReplaceAll(l[1], "&amp;", "&"))
		}
		return all
	}
	const exceptions = "/exceptions?kind=late_payment&state=needs"
	change(t, h.DB, "UPDATE incidents SET assignee = 'the.ops' WHERE id = 5")
	for query, want := range map[string]string{
		"matter=exceptions":           exceptions,
		"text=LATE+pay":               exceptions,
		"who=me":                      "/attention/5",
		"matter=incident&who=me":      "/attention/5",
		"who=nobody&text=late":        exceptions,
		"text=the.ops":                "/attention/5",
		"text=no+such+thing":          "/",
		"matter=approvals":            "/",
		"matter=exceptions&text=1.00": "/",
	} {
		page := h.Page(t, ops, "/?lang=en&"+query)
		if got := strings.Join(linksOf(page.Body), " "); page.Status != http.StatusOK || got != want {
			t.Errorf("%s: %d %q, want %q", query, page.Status, got, want)
		}
		part := h.Call(t, http.MethodGet, "/_/attention?lang=en&"+query, "", "Cookie", ops, "HX-Request", "true")
		if got := strings.Join(linksOf(part.Body), " "); part.Status != http.StatusOK || got != want ||
			strings.Contains(part.Body, "<html") {
			t.Errorf("%s alone: %d %q, want %q", query, part.Status, got, want)
		}
	}
	if got := h.Page(t, ops, "/_/attention?who=me").Header.Get("Location"); got != "/?who=me" {
		t.Errorf("the list by its address leads to %q", got)
	}
	for query, want := range map[string]string{
		"":                                   "/",
		"matter=incident&who=me&range=7d":    "/?matter=incident&who=me",
		"format=csv&columns=title&cursor=no": "/?columns=title&format=csv",
		"matter=nothing&who=me":              "/",
		"text=%00":                           "/",
		"columns=%00&q=%ff":                  "/",
	} {
		if got := h.Page(t, ops, "/attention?"+query); got.Status != http.StatusSeeOther || got.Header.Get("Location") != want {
			t.Errorf("the old address with %q: %d %q, want %q", query, got.Status, got.Header.Get("Location"), want)
		}
	}
	for _, query := range []string{"matter=nothing", "who=li", "text=%00", "format=pdf"} {
		if got := h.Page(t, ops, "/?"+query); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", query, got.Status)
		}
	}
	file := h.Page(t, ops, "/?lang=en&format=csv").Body
	for _, want := range []string{"Late payment: 1", "5000.00", "239.88", "1000000", "Acknowledged", "the.ops"} {
		if !strings.Contains(file, want) {
			t.Errorf("the file lacks %q:\n%s", want, file)
		}
	}
	if file := h.Page(t, ops, "/?lang=en&format=csv&matter=exceptions&columns=title,currency,amount").Body; strings.Contains(file,
		"239.88") || !strings.Contains(file, "Late payment: 1,CNY,5000.00") {
		t.Errorf("the filtered file:\n%s", file)
	}
	if file := h.Page(t, h.SignIn(t, access.Finance), "/?lang=en&format=csv").Body; strings.Contains(file, "239.88") ||
		!strings.Contains(file, "Late payment: 1") {
		t.Errorf("the file of one who may not read alerts:\n%s", file)
	}
	if got := h.Call(t, http.MethodGet, "/?format=csv", "", "Cookie", ops, "Sec-Fetch-Site",
		"cross-site"); got.Status != http.StatusForbidden {
		t.Errorf("another site exports: %d", got.Status)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "list", Limit: 20})
	if err != nil || len(acts) != 3 {
		t.Errorf("%d exports in the audit, %v", len(acts), err)
	}
}

// The list is kept current with its filter.
func TestWhatNeedsAttentionIsLive(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	ops := h.SignIn(t, access.Ops)
	w := h.watch(t, ops, "/_/live?lang=en&topics=attention&matter=exceptions")
	if e := w.Next(t); !strings.Contains(e.Data, `id="attention"`) || !strings.Contains(e.Data, `id="live-at"`) ||
		strings.Contains(e.Data, "/attention/1") || strings.Contains(e.Data, `id="risk"`) {
		t.Errorf("the first frame is %s", e.Data)
	}
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, detail, opened_at, updated_at) VALUES (900, 'late_payment', 'open', '{}', 5, 5)")
	w.Until(t, "Late payment: 1")
	mine := h.watch(t, ops, "/_/live?lang=en&topics=attention&who=me")
	if e := mine.Next(t); !strings.Contains(e.Data, "Nothing matches the filter") {
		t.Errorf("nothing is assigned: %s", e.Data)
	}
	change(t, h.DB, "UPDATE incidents SET assignee = 'the.ops' WHERE id = 5")
	mine.Until(t, "/attention/5")
	if e := h.watch(t, ops, "/_/live?lang=en").Next(t); !strings.Contains(e.Data, "/attention/1") || !strings.Contains(e.Data, `id="risk"`) {
		t.Error("the whole page is not sent the list, or nothing else")
	}
	if got := h.watch(t, ops, "/_/live?topics=attention&who=li").Status; got != http.StatusUnprocessableEntity {
		t.Errorf("with a wrong filter: %d", got)
	}
}

func TestAnIncidentTellsItsStoryAndWhatIsSent(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	auditor := h.SignIn(t, access.Auditor)
	for path, phrases := range map[string][]string{
		"/attention/1": {
			"4210", "Fired", "Notified", "telegram-a1b2c3", "night shift ", "Not acknowledged",
			`href="/runbook#a-backlog"`,
		},
		"/attention/2": {"Over since", "/notifications", "a new incident opens"},
		"/attention/4": {"¥239.88", `href="/notifications?cause=locked"`},
		"/attention/5": {"wang.min is working on it"},
		"/attention/6": {"No messages until"},
		"/attention/7": {"Close it once it has been dealt with", "¥1,000,000", "¥0.99"},
	} {
		page := h.Page(t, auditor, path+"?lang=en")
		for _, phrase := range phrases {
			if page.Status != http.StatusOK || !strings.Contains(page.Body, phrase) {
				t.Errorf("%s: %d without %q", path, page.Status, phrase)
			}
		}
		if strings.Contains(page.Body, "<form class=\"stack-tight\"") || strings.Contains(page.Body, "<img src=x") {
			t.Errorf("%s: an auditor is offered acts, or something of outside is not text", path)
		}
	}
	if got := h.Page(t, auditor, "/attention/99"); got.Status != http.StatusNotFound {
		t.Errorf("an incident that is not: %d", got.Status)
	}
	if got := h.Page(t, h.SignIn(t, access.Finance), "/attention/1"); got.Status != http.StatusForbidden {
		t.Errorf("as finance: %d", got.Status)
	}
}

func TestActsOnIncidentsTakeEffectOnceWithTheirReason(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	ops := h.SignIn(t, access.Ops)
	do := func(id, name string, want int, fields ...string) {
		t.Helper()
		path := "/attention/" + id
		form := []string{"form_key", "key-" + id + name + strings.Join(fields, "")}
		if page := h.Page(t, ops, path).Body; strings.Contains(page, `action="`+path+`/acknowledge"`) {
			form = formOf(t, page, path+"/acknowledge")
		}
		if got := h.Post(t, ops, path+"/"+name, append(form, fields...)...); got.Status != want {
			t.Errorf("%s of %s: %d %s, want %d", name, id, got.Status, got.Body, want)
		}
	}
	state := func(id int64) string {
		t.Helper()
		i, err := alert.FindIncident(t.Context(), h.DB.Read, id)
		if err != nil {
			t.Fatal(err)
		}
		return i.State + "/" + i.Assignee
	}
	reason := []string{"reason", "adding a worker"}
	do("1", "acknowledge", http.StatusUnprocessableEntity, "reason", "short")
	do("1", "acknowledge", http.StatusSeeOther, reason...)
	if got := state(1); got != "acknowledged/the.ops" {
		t.Error(got)
	}
	do("1", "snooze", http.StatusUnprocessableEntity, append(reason, "for", "999h")...)
	do("1", "snooze", http.StatusSeeOther, append(reason, "for", "4h0m0s")...)
	do("1", "resume", http.StatusSeeOther, reason...)
	do("1", "assign", http.StatusUnprocessableEntity, append(reason, "to", "nobody")...)
	do("1", "assign", http.StatusSeeOther, append(reason, "to", "")...)
	if got := state(1); got != "open/" {
		t.Error(got)
	}
	do("1", "close", http.StatusConflict, reason...)
	do("7", "close", http.StatusSeeOther, reason...)
	do("7", "acknowledge", http.StatusConflict, reason...)
	do("99", "acknowledge", http.StatusNotFound, reason...)
	if got := h.Post(t, h.SignIn(t, access.Auditor), "/attention/4/acknowledge", "form_key", "k", "reason",
		"adding a worker"); got.Status != http.StatusForbidden {
		t.Errorf("as auditor: %d", got.Status)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: alert.IncidentObject, Limit: 20})
	if err != nil || len(acts) != 5 {
		t.Errorf("%d acts in the audit, %v", len(acts), err)
	}
	page := h.Page(t, ops, "/attention/1?lang=en").Body
	for _, phrase := range []string{"Acknowledged", "Messages resumed", "Unassigned · the.ops", "adding a worker"} {
		if !strings.Contains(page, phrase) {
			t.Errorf("the timeline does not show %q", phrase)
		}
	}
}
