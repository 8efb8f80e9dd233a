package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
)

// The real Asynqmon, without a Redis: its scripts come compressed, are cached forever and have no
// source maps, and its page leads back to the console.
func TestAsynqmonIsServedSmallAndWithAWayBack(t *testing.T) {
	t.Parallel()
	h := open(t)
	monitor := asynqmon.New(asynqmon.Options{
		RootPath: "/asynqmon", RedisConnOpt: asynq.RedisClientOpt{Addr: "127.0.0.1:1"},
		ReadOnly: true,
	})
	t.Cleanup(func() { _ = monitor.Close() })
	h.Monitor = monitor
	cookie := h.SignIn(t, access.Ops)
	page := h.Page(t, cookie, "/asynqmon/?lang=en")
	if page.Status != http.StatusOK || !strings.Contains(page.Body, `<a href="/queues"`) ||
		!strings.Contains(page.Body, "Back to Backstop") || strings.Contains(page.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("the page: %d, %q", page.Status, page.Header.Get("Cache-Control"))
	}
	scripts := regexp.MustCompile(`/asynqmon/static/js/[^"]+\.js`).FindAllString(page.Body, -1)
	if len(scripts) < 2 {
		t.Fatalf("scripts of the page: %q", scripts)
	}
	for _, path := range scripts {
		for range 2 { // compressed now, and kept
			got := h.Call(t, http.MethodGet, path, "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Accept-Encoding", "gzip")
			if got.Status != http.StatusOK || got.Header.Get("Content-Encoding") != "gzip" ||
				!strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
				t.Fatalf("%s: %d %v", path, got.Status, got.Header)
			}
			packed, err := gzip.NewReader(strings.NewReader(got.Body))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(packed)
			if err != nil || bytes.Contains(body, []byte("sourceMappingURL")) || len(body) < len(got.Body) {
				t.Errorf("%s: %d bytes, %v", path, len(body), err)
			}
		}
		if got := h.Page(t, cookie, path+".map"); got.Status != http.StatusNotFound {
			t.Errorf("%s.map: %d", path, got.Status)
		}
	}
	// What does not exist is Asynqmon's page, which must not be kept under that name.
	if got := h.Page(t, cookie, "/asynqmon/static/js/main.00000000.chunk.js"); strings.Contains(got.Header.Get("Cache-Control"),
		"immutable") {
		t.Error("a page is cached forever under the name of a script")
	}
}
