package e2e

import (
	"errors"
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

// TestNodesRestartOneAfterTheOtherBehindNginx does what docs/operations/upgrade.md says, with the shipped nginx
// configuration and the wait between two nodes that the page gives, and expects every callback to be
// taken.
func TestNodesRestartOneAfterTheOtherBehindNginx(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	wait, err := strconv.Atoi(find(t, page, `\n\| nginx as in \[deploy/nginx.conf\].*\| (\d+) s \|\n`))
	if err != nil {
		t.Fatal(err)
	}
	one, two := twoNodes(t)
	for _, w := range []*world{one, two} {
		w.more = append(w.more[:len(w.more):len(w.more)], "BACKSTOP_DRAIN=1s", "BACKSTOP_TRUSTED_PROXIES=127.0.0.1/32")
		w.start("")
	}
	front := *one
	front.address = nginx(t, one.address, two.address)
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

// shipped returns a file of deploy with each first word replaced by the second one.
func shipped(t *testing.T, file string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			t.Fatalf("deploy/%s has no %q", file, pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(string(text))
}

// nginx runs the shipped nginx in front of two nodes, and returns where it listens.
func nginx(t *testing.T, one, two string) (address string) {
	t.Helper()
	folder := t.TempDir()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	snippet := shipped(t, "nginx.conf", "listen 443 ssl;", "listen "+address+";", "10.0.0.11:8080", one, "10.0.0.12:8080", two,
		"proxy_read_timeout 5s;", "proxy_read_timeout 10s;") // as the tests' BACKSTOP_CALLBACK_WAIT
	snippet = regexp.MustCompile(`(?m)^\s*ssl_certificate.*\n`).ReplaceAllString(snippet, "")
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
	proxy(t, address, exec.Command(program, "-p", folder, "-c", file, "-e", "stderr"))
	return address
}

// caddy runs the shipped Caddy in front of two nodes, and returns where it listens.
func caddy(t *testing.T, one, two string) (address string) {
	t.Helper()
	folder := t.TempDir()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	text := shipped(t, "Caddyfile", "pay.example.com", "http://"+address, "10.0.0.11:8080", one, "10.0.0.12:8080", two)
	file := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n\tadmin off\n}\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	proxy(t, address, cmd)
	return address
}

// proxy runs a proxy until the test ends.
func proxy(t *testing.T, address string, cmd *exec.Cmd) {
	t.Helper()
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("run %s (Debian: apt-get install nginx-light caddy): %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the proxy says:\n%s", said.String())
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
		t.Fatal("the proxy does not answer")
	}
}

// TestShippedProxies sends callbacks through the shipped nginx and Caddy: the supplier's address is checked, not
// the proxy's nor one that a client made up, merchants connect by WebSocket, and metrics stay inside.
func TestShippedProxies(t *testing.T) {
	t.Parallel()
	const supplier, stranger = "127.0.0.9", "127.0.0.8"
	for name, run := range map[string]func(t *testing.T, one, two string) string{"nginx": nginx, "caddy": caddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{environ: []string{"BACKSTOP_TRUSTED_PROXIES=127.0.0.1/32"}})
			w.apply(strings.Replace(connecting(w), "203.0.113.0/24", supplier+"/32", 1))
			w.start("")
			front := *w
			front.address = run(t, w.address, w.address)
			merchant := connectTo(t, &front)
			no := front.create("behind-"+name, requestBody{"supplier": "sp-listed"})
			form := callbackForm("sp-listed", no, "T-"+no, 1999)

			from := func(address string, header http.Header, path, body string) int {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
				c := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
				for {
					req, err := http.NewRequest(http.MethodPost, "http://"+front.address+path, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header = header.Clone()
					req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					resp, err := c.Do(req)
					if cut := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE); cut && t.Context().Err() == nil {
						continue // a body that is refused may be cut off while it is written, before the answer is read
					}
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					return resp.StatusCode
				}
			}
			madeUp := http.Header{"X-Forwarded-For": {supplier}}
			if got := from(stranger, madeUp, "/callback/sp-listed", form.Encode()); got != http.StatusForbidden {
				t.Errorf("a stranger with a made-up address: %d", got)
			}
			if got := from(supplier, http.Header{}, "/callback/sp-listed", strings.Repeat("a", 300<<10)); got != http.StatusRequestEntityTooLarge {
				t.Errorf("a body of 300 KiB: %d", got)
			}
			if got := from(supplier, http.Header{}, "/callback/sp-listed", form.Encode()); got != http.StatusOK {
				t.Errorf("the supplier: %d", got)
			}
			w.within(10*time.Second, "the merchant is notified by its line", func() bool { return merchant.received(no) > 0 })
			for path, want := range map[string]int{"/metrics": http.StatusNotFound, "/readyz": http.StatusOK} {
				if a, err := front.do(http.MethodGet, path, "", nil, ""); err != nil || a.status != want {
					t.Errorf("%s: %d %v", path, a.status, err)
				}
			}
		})
	}
}
