package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
)

// TestNodesRestartOneAfterTheOtherBehindNginx does what docs/operations/upgrade.md says, with its nginx
// configuration and the wait between two nodes that it gives, and expects every callback to be
// taken.
func TestNodesRestartOneAfterTheOtherBehindNginx(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	snippet := find(t, page, "(?s)```nginx\n(.*?)```")
	wait, err := strconv.Atoi(find(t, page, `\n\| nginx as below \|.*\| (\d+) s \|\n`))
	if err != nil {
		t.Fatal(err)
	}
	one, two := twoNodes(t)
	for _, w := range []*world{one, two} {
		w.more = append(w.more[:len(w.more):len(w.more)], "BACKSTOP_DRAIN=1s", "BACKSTOP_TRUSTED_PROXIES=127.0.0.1/32")
		w.start("")
	}
	front := *one
	front.address = nginx(t, snippet, one.address, two.address)
	var forms []url.Values
	for i := range 100 {
		no := one.create(fmt.Sprintf("nginx-%d", i), nil)
		forms = append(forms, callbackForm("sp-main", no, "T-"+no, 1999))
	}

	stop := front.steady(forms)
	front.flows(20)
	for _, w := range []*world{one, two} {
		w.terminate()
		w.start("")
		time.Sleep(time.Duration(wait) * time.Second) // as the page says
	}
	sent, lost := stop()
	t.Logf("%d callbacks, %d s after each restart: %d not taken", sent, wait, len(lost))
	if len(lost) > 0 {
		t.Errorf("not accepted: %q", lost)
	}
	if sent < 200 {
		t.Errorf("only %d callbacks were sent", sent)
	}
}

// steady sends callbacks, one each 25 ms and whatever becomes of those before, until it is
// stopped. lost is what was not taken.
func (w *world) steady(forms []url.Values) (stop func() (sent int, lost []string)) {
	const every, most = 25 * time.Millisecond, 4000
	var mu sync.Mutex
	var lost []string
	var sent int
	var all sync.WaitGroup
	over := make(chan struct{})
	all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ; sent < most; sent++ {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			form := forms[sent%len(forms)]
			all.Go(func() {
				if a, err := w.postCallback("sp-main", form, nil); err != nil || !a.accepted() {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, fmt.Sprintf("%s %d %.40s %v", time.Now().Format("05.000"), a.status, a.body, err))
				}
			})
		}
	})
	return func() (int, []string) {
		close(over)
		all.Wait()
		return sent, lost
	}
}

func find(t *testing.T, page []byte, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(page)
	if m == nil {
		t.Fatalf("docs/operations/upgrade.md has no %s", pattern)
	}
	return string(m[1])
}

// nginx runs the page's nginx with its own addresses replaced, and returns where it
// listens.
func nginx(t *testing.T, snippet string, nodes ...string) (address string) {
	t.Helper()
	folder := t.TempDir()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	snippet = regexp.MustCompile(`(?m)^\s*ssl_certificate.*\n`).ReplaceAllString(snippet, "")
	pairs := []string{
		"listen 443 ssl;", "listen " + address + ";", "10.0.0.11:8080", nodes[0], "10.0.0.12:8080", nodes[1],
		"proxy_read_timeout 5s;", "proxy_read_timeout 10s;",
	} // as the tests' BACKSTOP_CALLBACK_WAIT
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(snippet, pairs[i]) {
			t.Fatalf("the page's nginx has no %q", pairs[i])
		}
	}
	snippet = strings.NewReplacer(pairs...).Replace(snippet)
	text := "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr warn;\nevents {}\nhttp {\naccess_log off;\n"
	for _, use := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += use + "_temp_path " + filepath.Join(folder, use) + ";\n"
	}
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(text+snippet+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // where Debian keeps it, and few have it in their PATH
	}
	var said strings.Builder
	cmd := exec.Command(program, "-p", folder, "-c", file, "-e", "stderr")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("run nginx (Debian: apt-get install nginx-light): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx says:\n%s", said.String())
		}
	})
	if !waittest.Within(10*time.Second, func() bool {
		resp, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}) {
		t.Fatal("nginx does not answer")
	}
	return address
}
