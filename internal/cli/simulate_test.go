package cli

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/waittest"

	"gopkg.in/yaml.v3"
)

func TestSimulateDeclaresAndServes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &shared{}
	ended := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		ended <- run(ctx, []string{"simulate", "--listen", "127.0.0.1:0", "--seed", "7"}, strings.NewReader(""), out, &stderr)
	}()
	waittest.Until(t, "it prints its declaration", func() bool { return strings.HasSuffix(out.String(), "kind: sortedparams\n") })
	var declared struct {
		Suppliers []struct {
			Code   string
			Config struct {
				BaseURL string `yaml:"base_url"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(out.String()), &declared); err != nil {
		t.Fatal(err)
	}
	if len(declared.Suppliers) != 4 {
		t.Fatalf("declared: %+v", declared)
	}
	resp, err := http.Get(declared.Suppliers[0].Config.BaseURL + "/_sim/calls")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || string(body) != `{"items":[],"money_moved":{},"next":null}` {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	stop()
	select {
	case code := <-ended:
		if code != exitDone || !strings.Contains(stderr.String(), "BACKSTOP_SUPPLIER_ALLOW_CIDRS") {
			t.Errorf("exit %d, %q", code, stderr.String())
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// shared is written by a command and read at the same time.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestSimulateStaysOnThisMachine(t *testing.T) {
	for _, args := range []string{
		"simulate", "simulate --listen 0.0.0.0:0", "simulate --listen :0", "simulate --listen 192.0.2.1:9090", "simulate --listen 9090",
		"simulate --listen 127.0.0.1:0 --callbacks https://pay.example.com/callback", "simulate --listen 127.0.0.1:0 --paid 101",
		"simulate --listen 127.0.0.1:0 --silent=-1",
	} {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		code, out, stderr := backstop(ctx, strings.Fields(args)...)
		stop()
		if code != exitUsage || out != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}
