package web

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/command/apply"
	"backstop/internal/ledger"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

// happen writes what came of attempts and callbacks, as the engine does, and
// folds it.
func (h *house) happen(t *testing.T, change func(x *report.Delta)) {
	t.Helper()
	x := report.NewDelta(h.db.Now())
	change(x)
	err := h.db.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		x.Write(w, h.db)
		return w.Exec(ctx)
	})
	if err == nil {
		_, err = report.Fold(t.Context(), h.db)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOverviewTellsItsFiguresInBothLanguages(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	h.happen(t, func(x *report.Delta) {
		for range 3 {
			x.Attempt(1, report.OK, 80*time.Millisecond)
		}
		x.Attempt(1, report.Failed, 2*time.Second)
		x.Untold(1, "JPY", 2, 5000)
		x.Lag(1, 30*time.Millisecond)
	})
	cookie := h.signIn(t, access.Ops)
	for lang, sights := range map[string][]string{
		"zh": {"在险资金", "¥3,499.00", "KWD", "75.00%", "金额不符 1 笔", "notify_retry", "内置 redis-server", "以表格显示", "Galaxy", "1h 尝试成功率"},
		"en": {"Money at risk", "¥3,499.00", "JPY", "75.00%", "Amount mismatch: 1", "notify_retry", "own redis-server", "Show as table", "Galaxy", "1 h attempt success"},
	} {
		for _, rng := range []string{"1h", "6h", "24h", "7d", "nonsense"} {
			got := h.page(t, cookie, "/?lang="+lang+"&range="+rng)
			if got.status != http.StatusOK {
				t.Fatalf("%s %s: %d", lang, rng, got.status)
			}
			for _, sight := range sights {
				if !strings.Contains(got.body, sight) {
					t.Errorf("%s %s does not say %q", lang, rng, sight)
				}
			}
			if found := inlineCode.FindString(got.body); found != "" {
				t.Errorf("%s %s holds %q", lang, rng, found)
			}
		}
	}
	if body := h.page(t, h.signIn(t, access.Viewer), "/").body; strings.Contains(body, `href="/asynqmon/"`) {
		t.Error("a viewer is led to a page that is not theirs")
	}
}

func TestPanelsComeAloneToScriptsAndAsAPageToPeople(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Viewer)
	for _, topic := range h.board.topics {
		for _, lang := range []string{"zh", "en"} {
			got := h.call(t, http.MethodGet, "/_/"+topic.name+"?range=6h&lang="+lang, "", "Cookie", cookie, "HX-Request", "true")
			if got.status != http.StatusOK || !strings.Contains(got.body, `id="`+topic.name+`"`) || strings.Contains(got.body, "<html") {
				t.Errorf("%s: %d %q", topic.name, got.status, got.body)
			}
			if found := inlineCode.FindString(got.body) + keyLeak.FindString(got.body); found != "" {
				t.Errorf("%s in %s holds %q", topic.name, lang, found)
			}
			if lang == "en" && han.MatchString(got.body) {
				t.Errorf("%s in English: %q", topic.name, han.FindString(got.body))
			}
		}
		if got := h.page(t, cookie, "/_/"+topic.name+"?range=6h"); got.header.Get("Location") != "/?range=6h" {
			t.Errorf("%s by its address: %d to %q", topic.name, got.status, got.header.Get("Location"))
		}
	}
	if got := h.call(t, http.MethodGet, "/_/risk", "", "HX-Request", "true"); got.status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", got.status)
	}
}

// The queues stand on the database; Redis may be away.
func TestQueuesAreShownWithoutRedis(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Viewer)
	asks := 0
	h.o.Queues = func(context.Context) (map[string]queue.Size, error) {
		asks++
		return nil, errors.New("connection refused")
	}
	body := h.page(t, cookie, "/?lang=en").body
	if !strings.Contains(body, "Redis does not answer") || strings.Count(body, `class="mono">notify`) != 4 {
		t.Error("the page does not show the queues without Redis")
	}
	h.o.QueueEngine = "in-process"
	for range 5 {
		body = h.page(t, cookie, "/?lang=en").body
	}
	if !strings.Contains(body, "for development only") {
		t.Error("the in-process queue carries no warning")
	}
	if asks > 2 {
		t.Errorf("six looks asked Redis %d times within two seconds", asks)
	}
}

func TestAnEmptyConsoleSaysWhatToDoFirst(t *testing.T) {
	h := open(t)
	cookie := h.signIn(t, access.Admin)
	body := h.page(t, cookie, "/?lang=en").body
	for _, sight := range []string{"Start here", "backstop serve --demo", "/api/v1/orders", "/callback/"} {
		if !strings.Contains(body, sight) {
			t.Errorf("a newcomer is not told %q", sight)
		}
	}
	if strings.Contains(body, "kind: sortedparams") {
		t.Error("the example is shown although supplier and merchants are declared")
	}
	if _, err := h.db.ExecContext(t.Context(), "DELETE FROM merchants"); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(h.page(t, cookie, "/?lang=en").body, "<pre")
	_, rest, _ = strings.Cut(rest, ">")
	declared, _, _ := strings.Cut(rest, "</pre>")
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	env := apply.Env{
		DB: h.db, Keys: keys, Kinds: supplier.Kinds{sortedparams.Kind}, Ledger: ledger.New(h.db),
		CheckURL: func(string) error { return nil }, Out: io.Discard,
	}
	if err := apply.Apply(t.Context(), env, apply.File{Name: "first.yaml", Text: []byte(html.UnescapeString(declared))}); err != nil {
		t.Errorf("what a newcomer is told to declare: %v\n%s", err, declared)
	}
	seed(t, h.db)
	if body = h.page(t, cookie, "/?lang=en").body; strings.Contains(body, "Start here") {
		t.Error("a console that is in use still greets a newcomer")
	}
}

// The to-do list leads to what it names, and to alerts only those who may read them.
func TestTheTodoListLeadsToWhatItNames(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	h.inTrouble(t)
	change(t, h.db, "INSERT INTO report_untold (merchant_id, currency, orders, amount) VALUES (2, 'CNY', 4, 990000)")
	change(t, h.db, "INSERT INTO breakers (merchant_id, state, generation, cause, changed_at, open_until, updated_at) VALUES (2, 'open', 1, 'failures_in_a_row', ?, ?, ?)", h.db.Now(), h.db.Now()+60_000_000, h.db.Now())
	if err := h.o.Breakers.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, h.db, "INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (9, 'queue_length', 'due', 'firing', 2000, 1, ?, 0)", h.db.Now())
	change(t, h.db, "INSERT INTO exceptions (id, kind, state, subject, amount, currency, detail, opened_at, updated_at) VALUES (77, 'dispute_opened', 'open', 'du_1', 2500, 'CNY', '{}', ?, 0)", h.db.Now())
	todo := func(cookie string) string {
		_, list, _ := strings.Cut(h.page(t, cookie, "/?lang=en").body, `<ol class="todo">`)
		list, _, _ = strings.Cut(list, "</ol>")
		return list
	}
	list, last := todo(h.signIn(t, access.Ops)), -1
	for _, want := range []string{"Breaker open: Other", `href="/merchants/m2"`, "¥9,900.00", "orders waiting: 4", "Dispute opened: 1", "¥25.00", "Alert: a queue is too long (due)", `href="/alerts?state=firing"`} {
		at := strings.Index(list, want)
		if at < last {
			t.Errorf("%q is missing or stands too early", want)
		}
		last = at
	}
	if list := todo(h.signIn(t, access.Viewer)); strings.Contains(list, "/alerts") || !strings.Contains(list, "Breaker open") {
		t.Error("a viewer is led to alerts, or to no breaker")
	}
}
