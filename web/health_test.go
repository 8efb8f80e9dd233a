package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/web"
)

func TestReadyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Ready = web.NewReadiness([]web.Check{
		{Name: "database", Run: func(context.Context) error { return nil }},
		{Name: "redis", Run: func(context.Context) error { return errors.New("connection refused") }},
	})
	got := h.Call(t, "GET", "/readyz", "")
	if got.Status != 503 ||
		got.Body != `{"status":"not ready","degraded":[],"checks":[{"name":"database","ok":true},{"name":"redis","ok":false,"error":"connection refused"}]}` {
		t.Errorf("answer %+v", got)
	}
	h.Ready = web.NewReadiness([]web.Check{{
		Name: "nodes", Degrades: true,
		Run: func(context.Context) error { return errors.New("they differ") },
	}})
	begun := h.DB.NowTime().Truncate(time.Second)
	var body struct {
		Status   string
		Degraded []web.Degraded
		Checks   []web.CheckResult
	}
	got = h.Call(t, "GET", "/readyz", "")
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil || got.Status != 200 || body.Status != "degraded" || len(body.Degraded) != 1 ||
		body.Degraded[0].Name != "nodes" || body.Degraded[0].Reason != "they differ" || len(body.Checks) != 1 || body.Checks[0].OK {
		t.Errorf("degraded: %v, %+v", err, got)
	} else if since := body.Degraded[0].Since; since.Before(begun) || since.After(h.DB.NowTime()) {
		t.Errorf("degraded since %s", since)
	}
	h.Ready = web.NewReadiness(nil)
	if got := h.Call(t, "GET", "/readyz", ""); got.Status != 200 || !strings.Contains(got.Body, `"ready"`) {
		t.Errorf("answer %+v", got)
	}
	if got := h.Call(t, "GET", "/healthz", ""); got.Status != 200 {
		t.Errorf("alive: %+v", got)
	}
}

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Call(t, "POST", "/callback/wx", "")
	got := h.Call(t, "GET", "/metrics", "")
	if got.Status != 200 || !strings.Contains(got.Body, "# TYPE backstop_callback_seconds histogram") ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v", got.Status, got.Header)
	}
}
