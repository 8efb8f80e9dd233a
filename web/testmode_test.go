package web_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/settings"
	"backstop/web/webtest"

	"github.com/valyala/fasthttp"
)

// A key of test mode leads to test mode, and nowhere else; without test mode it is a key that nobody has.
func TestKeysOfTestModeLeadThere(t *testing.T) {
	t.Parallel()
	h := open(t)
	const testKey, path = webtest.TestKey, "/api/v1/orders?out_trade_no=1"
	ask := func(key, path string) string { return h.Api(t, key, http.MethodGet, path, "").Problem() }
	if got := ask(testKey, path); got != "401 unauthorized" {
		t.Errorf("test mode is off: %s", got)
	}
	var test fasthttp.RequestHandler
	h.TestMode = func() fasthttp.RequestHandler { return test }
	if got := ask(testKey, path); got != "503 unavailable" {
		t.Errorf("test mode does not run: %s", got)
	}
	test = func(c *fasthttp.RequestCtx) { c.SetStatusCode(http.StatusTeapot) }
	for name, c := range map[string]struct{ key, path, want string }{
		"a key of test mode":       {testKey, path, "418"},
		"a live key":               {webtest.KeyOfGalaxy, path, "404 not_found"},
		"an unknown key":           {"sk_live_nobody", path, "401 unauthorized"},
		"a callback":               {testKey, "/callback/wx", "200"},
		"what is not of merchants": {testKey, "/healthz", "200"},
	} {
		if got := ask(c.key, c.path); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// A live merchant got its key before there was test mode.
	err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE merchants SET api_key_hash = ? WHERE code = 'm2'", seal.HashToken(testKey))
		return errors.Join(err, settings.IncrementVersion(ctx, tx))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(testKey, path); got != "404 not_found" {
		t.Errorf("the key of a live merchant: %s", got)
	}
}
