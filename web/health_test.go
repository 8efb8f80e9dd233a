package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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
		got.Body != `{"status":"not ready","checks":[{"name":"database","ok":true},{"name":"redis","ok":false,"error":"connection refused"}]}` {
		t.Errorf("answer %+v", got)
	}
	h.Ready = web.NewReadiness([]web.Check{{
		Name: "nodes", Warning: true,
		Run: func(context.Context) error { return errors.New("they differ") },
	}})
	if got := h.Call(t, "GET", "/readyz", ""); got.Status != 200 ||
		got.Body != `{"status":"ready","checks":[{"name":"nodes","ok":true,"warning":"they differ"}]}` {
		t.Errorf("with a warning: %+v", got)
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
