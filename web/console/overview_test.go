package console

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/base/waittest"
	"backstop/internal/console"
	"backstop/internal/ledger"
	"backstop/internal/report"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

func TestOverviewTellsItsFiguresInBothLanguages(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.Happen(t, func(x *report.Delta) {
		for range 3 {
			x.Attempt(1, report.OK, 80*time.Millisecond)
		}
		x.Attempt(1, report.Failed, 2*time.Second)
		x.Unnotified(1, "JPY", 2, 5000)
		x.Lag(1, 30*time.Millisecond)
	})
	cookie := h.SignIn(t, access.Ops)
	for lang, phrases := range map[string][]string{
		"zh": {"风险资金（待处理）", "¥3,499.00", "KWD", "75.00%", "金额不符 1 笔", "notify_retry", "内置 redis-server", "以表格显示", "Galaxy", "1h 尝试成功率"},
		"en": {
			"Money at risk", "¥3,499.00", "JPY", "75.00%", "Amount mismatch: 1", "notify_retry", "embedded redis-server",
			"Show as table", "Galaxy", "1 h attempt success",
		},
	} {
		for _, rng := range []string{"1h", "6h", "24h", "7d", "nonsense"} {
			got := h.Page(t, cookie, "/?lang="+lang+"&range="+rng)
			if got.Status != http.StatusOK {
				t.Fatalf("%s %s: %d", lang, rng, got.Status)
			}
			for _, phrase := range phrases {
				if !strings.Contains(got.Body, phrase) {
					t.Errorf("%s %s does not say %q", lang, rng, phrase)
				}
			}
			if found := inlineCode.FindString(got.Body); found != "" {
				t.Errorf("%s %s contains %q", lang, rng, found)
			}
		}
	}
	if body := h.Page(t, h.SignIn(t, access.Viewer), "/").Body; strings.Contains(body, `href="/asynqmon/"`) {
		t.Error("a viewer is led to a page that is not theirs")
	}
}

// Figures are read for several who look: the time beside them is that of the reading.
func TestTheOverviewSaysWhenItsFiguresWereRead(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	h.Page(t, cookie, "/") // everything is read
	read := h.DB.NowTime()
	waittest.Until(t, "the clock shows the next second", func() bool { return h.DB.NowTime().Truncate(time.Second).After(read) })
	body := h.Page(t, cookie, "/").Body
	said := regexp.MustCompile(`id="live-at" datetime="([^"]*)"`).FindStringSubmatch(body)
	if said == nil {
		t.Fatalf("the page shows no time: %s", body)
	}
	if at, err := time.Parse(time.RFC3339Nano, said[1]); err != nil || at.After(read) {
		t.Errorf("the page dates its figures %s, but they were read before %s, %v", said[1], read, err)
	}
}

func TestPanelsComeAloneToScriptsAndAsAPageToPeople(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	for _, topic := range h.in.topics() {
		for _, lang := range []string{"zh", "en"} {
			got := h.Call(t, http.MethodGet, "/_/"+topic.Name+"?range=6h&lang="+lang, "", "Cookie", cookie, "HX-Request", "true")
			if got.Status != http.StatusOK || !strings.Contains(got.Body, `id="`+topic.Name+`"`) || strings.Contains(got.Body, "<html") {
				t.Errorf("%s: %d %q", topic.Name, got.Status, got.Body)
			}
			if found := inlineCode.FindString(got.Body) + leakedKey(got.Body); found != "" {
				t.Errorf("%s in %s contains %q", topic.Name, lang, found)
			}
			if lang == "en" && han.MatchString(got.Body) {
				t.Errorf("%s in English: %q", topic.Name, han.FindString(got.Body))
			}
		}
		if got := h.Page(t, cookie, "/_/"+topic.Name+"?range=6h"); got.Header.Get("Location") != "/?range=6h" {
			t.Errorf("%s by its address: %d to %q", topic.Name, got.Status, got.Header.Get("Location"))
		}
	}
	if got := h.Call(t, http.MethodGet, "/_/risk", "", "HX-Request", "true"); got.Status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", got.Status)
	}
}

// The queues stand on the database; Redis may be away.
func TestQueuesAreShownWithoutRedis(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	asks := 0
	h.Queues = func(context.Context) (map[string]queue.Size, error) {
		asks++
		return nil, errors.New("connection refused")
	}
	body := h.Page(t, cookie, "/?lang=en").Body
	if !strings.Contains(body, "Redis does not answer") || strings.Count(body, `class="mono">notify`) != 4 {
		t.Error("the page does not show the queues without Redis")
	}
	h.QueueEngine = "in-process"
	for range 5 {
		body = h.Page(t, cookie, "/?lang=en").Body
	}
	if !strings.Contains(body, "for development only") {
		t.Error("the in-process queue carries no warning")
	}
	if asks > 2 {
		t.Errorf("six requests queried Redis %d times within two seconds", asks)
	}
}

// The example of the guide with its keys filled in is an apply file that is accepted as it stands.
func TestTheGuideHasAFileToBeginWith(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Admin)
	body := h.Page(t, cookie, "/guide?lang=en").Body
	for _, phrase := range []string{"Start here", "backstop serve --demo", "/api/v1/orders", "/callback/"} {
		if !strings.Contains(body, phrase) {
			t.Errorf("the guide lacks %q", phrase)
		}
	}
	_, rest, _ := strings.Cut(h.Post(t, cookie, "/guide/keys", "form_key", "k").Body, `id="own-title"`)
	_, rest, _ = strings.Cut(rest, "<pre")
	_, rest, _ = strings.Cut(rest, ">")
	declared, _, _ := strings.Cut(rest, "</pre>")
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.ExecContext(t.Context(), "DELETE FROM merchants"); err != nil {
		t.Fatal(err)
	}
	env := apply.Env{
		DB: h.DB, Keys: keys, Kinds: supplier.Kinds{sortedparams.Kind}, Ledger: ledger.New(h.DB),
		CheckURL: func(string) error { return nil }, Out: io.Discard,
	}
	if err := apply.Apply(t.Context(), env, apply.File{Name: "first.yaml", Text: []byte(html.UnescapeString(declared))}); err != nil {
		t.Errorf("the declaration of the guide: %v\n%s", err, declared)
	}
}

// A console that is in use greets no newcomer; one that is not shows the first steps to everybody,
// and their buttons to an admin.
func TestTheOverviewGreetsNewcomersOnly(t *testing.T) {
	t.Parallel()
	h := open(t)
	for role, want := range map[string]bool{access.Admin: true, access.Viewer: false} {
		body := h.Page(t, h.SignIn(t, role), "/?lang=en").Body
		if !strings.Contains(body, "Start here") || strings.Contains(body, "curl ") != want {
			t.Errorf("%s: greeted %t, shown commands %t", role, strings.Contains(body, "Start here"), strings.Contains(body, "curl "))
		}
	}
	used := open(t)
	seed(t, used.DB)
	change(t, used.DB, "UPDATE deliveries SET status = 'delivered', next_at = NULL")
	if strings.Contains(used.Page(t, used.SignIn(t, access.Admin), "/?lang=en").Body, "Start here") {
		t.Error("a console that is in use still greets a newcomer")
	}
}

// The to-do list leads to what it names, and to alerts only those who may read them.
func TestTheTodoListLeadsToWhatItNames(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.InTrouble(t)
	change(t, h.DB, "INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (2, 'CNY', 4, 990000)")
	change(t, h.DB,
		"INSERT INTO breakers (owner_id, state, generation, cause, changed_at, open_until, updated_at) VALUES (2, 'open', 1, 'failures_in_a_row', ?, ?, ?)", h.DB.Now(), h.DB.Now()+60_000_000, h.DB.Now())
	if err := h.Breakers.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.NewInsert().Model(&alert.Incident{
		ID: 9, Rule: alert.QueueLength, Subject: "due", State: alert.Open, Firings: 1, OpenedAt: h.DB.Now(), FiredAt: h.DB.Now(), Version: 1,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, subject, amount, currency, detail, opened_at, updated_at) VALUES (77, 'dispute_opened', 'open', 'du_1', 2500, 'CNY', '{}', ?, 0)", h.DB.Now())
	todo := func(cookie string) string {
		_, list, _ := strings.Cut(h.Page(t, cookie, "/?lang=en").Body, `<ol class="todo">`)
		list, _, _ = strings.Cut(list, "</ol>")
		return list
	}
	list, last := todo(h.SignIn(t, access.Ops)), -1
	for _, want := range []string{
		"Breaker open: Other", `href="/merchants/m2"`, "¥9,900.00", "orders not notified: 4", "Dispute opened: 1",
		"¥25.00", "A queue is too long: due", `href="/attention/9"`,
	} {
		at := strings.Index(list, want)
		if at < last {
			t.Errorf("%q is missing or too early", want)
		}
		last = at
	}
	if list := todo(h.SignIn(t, access.Viewer)); strings.Contains(list, "/attention/9") || !strings.Contains(list, "Breaker open") {
		t.Error("a viewer is led to alerts, or to no breaker")
	}
}

// Each column of the chart leads to exactly the notifications of the orders that it counts.
func TestAColumnOfTheChartLeadsToItsOrders(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	step := console.RangeOf("24h").Step.Microseconds()
	now := h.DB.Now() / step * step
	for i, at := range []int64{now - 1, now - step, now - step, now - 9*step, now - 9*step + 1, now - 9*step - 1} {
		id := db.IDAt(at) + int64(i) + 1
		change(t, h.DB,
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, finished_at, currency, amount, counted)"+
				" VALUES (?, ?, 1, ?, 'order.paid', 'webhook', '', 'delivered', ?, ?, 'CNY', 100, TRUE)", id, id, i, at, at)
		h.Happen(t, func(x *report.Delta) {
			x.Attempt(1, report.OK, time.Millisecond)
			x.Raised(at, "CNY", 100)
			if i > 0 {
				x.Notified(at, "CNY", 100)
			}
		})
	}
	_, chart, _ := strings.Cut(h.Page(t, cookie, "/?lang=en&range=24h").Body, `id="outcomes"`)
	chart, _, _ = strings.Cut(chart, "</section>")
	if !strings.Contains(chart, "Objective 99.5%") || !strings.Contains(chart, "s-objective") {
		t.Error("the chart has no objective")
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?s)<a class="spot" href="([^"]+)"[^>]*><title>([^<]*)</title>`).FindAllStringSubmatch(chart,
		-1) {
		_, counted, ok := strings.Cut(m[2], "orders notified: ")
		if !ok {
			continue // attempts of the step in progress
		}
		_, of, _ := strings.Cut(counted, " of ")
		want, err := strconv.Atoi(strings.TrimSuffix(of, ")"))
		if err != nil {
			t.Fatalf("%q: %v", m[2], err)
		}
		found += want
		list := h.Page(t, cookie, html.UnescapeString(m[1]))
		if rows := strings.Count(list.Body, "<tr data-row"); list.Status != http.StatusOK || rows != want {
			t.Errorf("%q leads to %d rows (%d): %s", m[2], rows, list.Status, m[1])
		}
	}
	if found != 6 {
		t.Errorf("the columns count %d orders, want 6", found)
	}
}
