package listen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/client"

	ws "github.com/fasthttp/websocket"
)

const (
	testKey    = "sk_test_0123456789abcdef"
	testSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// text is written and read at once.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// backstop is a server that sends a notification over each connection and reads the answer.
func backstop(t *testing.T) (url string, answers <-chan string) {
	t.Helper()
	read := make(chan string, 10)
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		conn, err := new(ws.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		n++
		body, _ := json.Marshal(map[string]any{
			"id": "ntf_" + strings.Repeat("i", n), "type": "order.paid", "timestamp": time.Now(),
			"data": map[string]string{"order_no": "42"},
		})
		_ = conn.WriteMessage(ws.TextMessage, body)
		if _, answer, err := conn.ReadMessage(); err == nil {
			read <- string(bytes.TrimSpace(answer))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, read
}

// A notification arrives signed, is acknowledged only if the forward accepts it, and the connection is made
// again when it ends.
func TestNotificationsReachTheForward(t *testing.T) {
	t.Parallel()
	url, answers := backstop(t)
	first := true
	forward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n, err := client.VerifyNotification(r.Header, body, testSecret)
		if err != nil || n.Type != "order.paid" || n.ID != r.Header.Get("Webhook-Id") {
			t.Errorf("%+v, %v", n, err)
		}
		if first {
			w.WriteHeader(http.StatusInternalServerError)
		}
		first = false
	}))
	defer forward.Close()
	ctx, stop := context.WithCancel(t.Context())
	var out text
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{URL: url, Key: testKey, Forward: forward.URL, Secret: testSecret, Out: &out})
	}()
	for _, want := range []string{`{"nack":"ntf_i"}`, `{"ack":"ntf_ii"}`} {
		if got := <-answers; got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"order.paid  42  500", "order.paid  42  200", "2 received, 1 forwarded"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestOnlyThisMachineIsForwardedTo(t *testing.T) {
	t.Parallel()
	for _, to := range []string{
		"http://203.0.113.7/notify", "https://example.com/", "http://10.0.0.1:3000/", "localhost:3000", "", "http://127.0.0.1.example.com/",
		"ftp://localhost/", "http://[::ffff:203.0.113.7]/",
	} {
		err := Run(t.Context(), Options{URL: "http://127.0.0.1:1", Key: testKey, Forward: to, Out: io.Discard})
		if !errors.Is(err, ErrForward) {
			t.Errorf("%q: %v", to, err)
		}
	}
	for address, ok := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "203.0.113.7:80": false, "[2001:db8::1]:80": false} {
		if err := onlyLoopback("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWhatCannotWorkEndsAtOnce(t *testing.T) {
	t.Parallel()
	url, _ := backstop(t)
	for name, c := range map[string]struct {
		change func(*Options)
		want   error
	}{
		"an unknown key": {func(o *Options) { o.Key = "sk_test_other" }, ErrKey},
		"a bad secret":   {func(o *Options) { o.Secret = "secret" }, ErrSecret},
		"a bad URL":      {func(o *Options) { o.URL = "127.0.0.1:8080" }, ErrURL},
	} {
		o := Options{URL: url, Key: testKey, Forward: "http://localhost:1/", Out: io.Discard}
		c.change(&o)
		if err := Run(t.Context(), o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
