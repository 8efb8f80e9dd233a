package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/web"
	"backstop/web/webtest"
)

func TestRealtimeSaysWhatTheOverviewSays(t *testing.T) {
	t.Parallel()
	for !realtimeSays(t, open(t)) { // the minute turned meanwhile, so that the last whole one is another
	}
}

func realtimeSays(t *testing.T, h *harness) (within bool) {
	t.Helper()
	begun := h.DB.NowTime().Truncate(time.Minute)
	h.Queues = func(context.Context) (map[string]queue.Size, error) {
		return map[string]queue.Size{"notify": {Pending: 7, Latency: 2 * time.Second}}, nil
	}
	ago := func(d time.Duration, r report.Result, took time.Duration) {
		x := report.NewDelta(h.DB.Now() - d.Microseconds())
		x.Attempt(1, r, took)
		h.Put(t, x)
	}
	for range 3 {
		ago(0, report.OK, 80*time.Millisecond)
	}
	ago(time.Minute, report.Failed, 2*time.Second)
	ago(30*time.Minute, report.Retried, 8*time.Second)
	h.Happen(t, func(x *report.Delta) { x.Unnotified(1, "JPY", 2, 5000) })
	h.Notify(t, "O1", 1)
	h.Notify(t, "O2", 2)
	h.slowElsewhere(t, 2)

	got := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"realtime", "").Object(t)
	shown, err := h.Console.Outcomes(t.Context(), console.RangeOf("1h"))
	if err != nil {
		t.Fatal(err)
	}
	if !h.DB.NowTime().Truncate(time.Minute).Equal(begun) {
		return false
	}
	byMinutes := map[float64]map[string]any{}
	for _, w := range got["windows"].([]any) {
		byMinutes[w.(map[string]any)["minutes"].(float64)] = w.(map[string]any)
	}
	hour := byMinutes[60]
	rate, _ := shown.Total.Rate()
	if hour["attempts"] != float64(shown.Total.Attempts()) || hour["success_rate"] != rate || hour["attempts"] != 5.0 {
		t.Errorf("the hour is %v, the overview shows %+v", hour, shown.Total)
	}
	if fmt.Sprint(hour["retry_rate"], hour["error_rate"], hour["mean_ms"]) != "0.2 0.25 2048" {
		t.Errorf("rates of the hour: %v", hour)
	}
	if five := byMinutes[5]; five["attempts"] != 4.0 || five["p99_ms"].(float64) < 1000 || five["p50_ms"].(float64) > 100 {
		t.Errorf("five minutes: %v", five)
	}
	if one := byMinutes[1]; one["attempts"] != 1.0 || one["error_rate"] != 1.0 {
		t.Errorf("the last whole minute: %v", one)
	}
	if got["in_flight"] != 0.0 || got["slow_merchants"] != 1.0 || got["redis_reachable"] != true ||
		fmt.Sprint(got["untold"]) != "[map[amount:5000 currency:JPY orders:2]]" {
		t.Errorf("realtime %v", got)
	}
	for _, q := range got["queues"].([]any) {
		q := q.(map[string]any)
		switch {
		case q["queue"] == "notify" && fmt.Sprint(q["tasks"], q["oldest_seconds"], q["rows"]) != "7 2 0":
			t.Errorf("notify: %v", q)
		case q["queue"] == "notify_slow" && (q["rows"] != 1.0 || q["tasks"] != 0.0 || q["overdue_seconds"].(float64) < 5):
			t.Errorf("notify_slow: %v", q)
		case q["queue"] == "notify_retry" && (q["rows"] != 1.0 || q["overdue_seconds"].(float64) < 5):
			t.Errorf("notify_retry: %v", q)
		}
	}
	return true
}

// slowElsewhere lets another node have the merchant among its slow ones.
func (h *harness) slowElsewhere(t *testing.T, merchant int64) {
	t.Helper()
	_, err := h.DB.NewRaw(
		"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, slow) VALUES (9, 'x', 'other', 1, 1, ?, ?)",
		h.DB.Now(), fmt.Sprintf("[%d]", merchant)).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func TestMerchantsStandAPageAtATime(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Happen(t, func(x *report.Delta) {
		x.Attempt(1, report.OK, 30*time.Millisecond)
		x.Attempt(1, report.Retried, time.Second)
		x.Unnotified(1, "CNY", 3, 900)
	})
	h.Notify(t, "O1", 1)
	items := h.pages(t, webtest.Monitoring+"merchants?limit=1")
	if len(items) != 2 || items[0]["merchant"] != "m1" || items[1]["merchant"] != "m2" {
		t.Fatalf("merchants %v", items)
	}
	m1, m2 := items[0], items[1]
	if fmt.Sprint(m1["attempts"], m1["success_rate"], m1["waiting_orders"],
		m1["at_risk"]) != "2 0.5 3 [map[amount:900 currency:CNY orders:3]]" {
		t.Errorf("m1: %v", m1)
	}
	if m1["last_success_at"] == nil || m1["last_failure_at"] == nil || m1["oldest_due_at"] == nil {
		t.Errorf("m1 lacks a moment: %v", m1)
	}
	if m2["attempts"] != 0.0 || m2["success_rate"] != nil || m2["last_success_at"] != nil || m2["oldest_due_at"] != nil {
		t.Errorf("m2 has no data, but the answer is %v", m2)
	}
	if m1["slow"] != false || m2["slow"] != false {
		t.Errorf("no merchant is slow: %v, %v", m1, m2)
	}
	h.slowElsewhere(t, 2)
	if m2 = h.pages(t, webtest.Monitoring+"merchants?merchant=m2")[0]; m2["slow"] != true {
		t.Errorf("another node has m2 among its slow merchants: %v", m2)
	}
	cookie := h.SignIn(t, access.Viewer)
	for path, want := range map[string]int{"/merchants?lang=en": 1, "/merchants/m2?lang=en": 1, "/merchants/m1?lang=en": 0} {
		if page := h.Page(t, cookie, path).Body; strings.Count(page, "</svg>Slow") != want {
			t.Errorf("%s must contain slow %d times", path, want)
		}
	}
	if one := h.pages(t, webtest.Monitoring+"merchants?merchant=m2"); len(one) != 1 || one[0]["merchant"] != "m2" {
		t.Errorf("by code: %v", one)
	}
}

func TestTheLogIsWalkedByFilterAndCursor(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := h.DB.Now()
	for i := range 5 {
		class, status := notify.OK, 200
		if i%2 == 1 {
			class, status = notify.Class("bad_status"), 502
		}
		h.Notify(t, fmt.Sprintf("O%d", i), int64(i%2+1), notify.Attempt{
			URL: "https://u:p@m.example/hook?token=s3cret", Class: class,
			HTTPStatus: status, TookUS: 1500,
		})
	}
	h.Notify(t, "OLD", 1, notify.Attempt{ID: db.IDAt(now-3*24*time.Hour.Microseconds()) + 1, Class: notify.OK})
	old := time.UnixMicro(now - 4*24*time.Hour.Microseconds()).UTC().Format(time.RFC3339)
	for query, want := range map[string]string{
		"?limit=2":                  "O4 O3 O2 O1 O0",
		"?merchant=m2&limit=1":      "O3 O1",
		"?class=bad_status":         "O3 O1",
		"?status=200&limit=1":       "O4 O2 O0",
		"?order_no=O1":              "O1",
		"?order_no=none":            "",
		"?merchant=m1&from=" + old:  "O4 O2 O0 OLD",
		"?order_no=OLD&from=" + old: "OLD",
		"?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z": "",
	} {
		var got []string
		for _, a := range h.pages(t, webtest.Monitoring+"logs"+query) {
			got = append(got, a["order_no"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	a := h.pages(t, webtest.Monitoring+"logs?order_no=O4")[0]
	if names := slices.Sorted(maps.Keys(a)); strings.Join(names,
		" ") != "attempt class error id merchant node notification order_no started_at status took_ms type url" {
		t.Errorf("fields %v", names)
	}
	if a["url"] != "https://m.example/hook" || a["took_ms"] != 1.5 || a["status"] != 200.0 || !strings.HasPrefix(a["notification"].(string),
		"ntf_") {
		t.Errorf("attempt %v", a)
	}
}

func TestACursorOfTheLogIsGoodForItsFilterAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 3 {
		h.Notify(t, fmt.Sprintf("O%d", i), 1, notify.Attempt{Class: notify.OK})
	}
	next := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"logs?merchant=m1&limit=1", "").Object(t)["next"].(string)
	if next == "" {
		t.Fatal("no next page")
	}
	for query, want := range map[string]string{
		"merchant=m1&cursor=" + next:      "200",
		"merchant=m2&cursor=" + next:      "422 invalid_field cursor",
		"merchant=m1&cursor=A" + next[1:]: "422 invalid_field cursor",
		"merchant=m1&cursor=" + next[:8]:  "422 invalid_field cursor",
		"cursor=!":                        "422 invalid_field cursor",
		"status=99":                       "422 invalid_field status",
		"from=yesterday":                  "422 invalid_field from",

		// Turned round, too long, too many.
		"to=2026-01-01T00:00:00Z&from=2026-01-02T00:00:00Z": "422 invalid_field from",
		"from=2024-01-01T00:00:00Z":                         "422 invalid_field from",
		"limit=201":                                         "422 invalid_field limit",
	} {
		if got := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"logs?"+query, "").Problem(); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestHealthNamesWhatItStandsOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.RedisSkew = func(context.Context) (time.Duration, error) { return -1500 * time.Microsecond, nil }
	if _, err := h.DB.NewRaw(
		"INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (1, 'redis_down', 'n', 'firing', 100, 1, 0, 0)").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.NewRaw(
		"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (77, 'x', 'gone', 77, 1, ?)",
		h.DB.Now()-60_000_000).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"health", "").Object(t)
	if got["status"] != "ok" || got["queue_engine"] != "child" || got["firing_alerts"] != 1.0 ||
		got["clock_skew"].(map[string]any)["redis_ms"] != -1.5 {
		t.Errorf("health %v", got)
	}
	alive := map[any]any{}
	for _, n := range got["nodes"].([]any) {
		alive[n.(map[string]any)["node"]] = n.(map[string]any)["alive"]
	}
	if alive["gone"] != false || len(alive) != 2 {
		t.Errorf("nodes %v", alive)
	}
	h.Ready = web.NewReadiness([]web.Check{{Name: "redis", Run: func(context.Context) error { return context.DeadlineExceeded }}})
	if got := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"health", "").Object(t); got["status"] != "degraded" {
		t.Errorf("with a check that fails: %v", got)
	}
}

func TestAnOperatorsSessionOpensTheMonitor(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, session, _ := strings.Cut(h.SignIn(t, access.Viewer), "=")
	if got := h.Api(t, session, "GET", webtest.Monitoring+"realtime", ""); got.Status != http.StatusOK {
		t.Errorf("an operator: %s", got.Problem())
	}
	if got := h.Api(t, session+"x", "GET", webtest.Monitoring+"realtime", "").Problem(); got != "401 unauthorized" {
		t.Errorf("a session without an operator: %s", got)
	}
	if got := h.Call(t, "GET", webtest.Monitoring+"realtime", "", "Cookie", "backstop="+session); got.Status != http.StatusUnauthorized {
		t.Errorf("a cookie alone, which another site could make a browser send: %d", got.Status)
	}
}
