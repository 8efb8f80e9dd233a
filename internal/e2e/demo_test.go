package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestANewcomersFirstMinute starts the demo where no server runs, as a newcomer
// does: it serves, prints an order that is worth a look, and of every supplier kind something is taken. In a full run it serves within ten
// seconds, and what should go wrong is on the desk.
func TestANewcomersFirstMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w.folder = filepath.Join(t.TempDir(), "data") // nothing was applied there
	cmd := exec.Command(program, "demo")
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.environ(), t.TempDir(), out, out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	said := func() string {
		text, _ := os.ReadFile(out.Name())
		return string(text)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("it said:\n%.6000s", said())
		}
	})
	soon := readyTime
	if full() { // on a quiet machine
		soon = 10 * time.Second
	}
	w.within(soon, "the URL and the one-time passwords are printed", func() bool {
		return strings.Contains(said(), "admin one-time password: ") && strings.Contains(said(), "finance one-time password: ") &&
			strings.Contains(said(), "lead one-time password: ") && strings.Contains(said(), "console: http://"+w.address)
	})
	w.within(soon, "money arrives", func() bool {
		resp, err := client.Get("http://" + w.address + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		text := string(raw)
		return strings.Contains(text, `backstop_orders_moved_total{status="paid"}`) &&
			strings.Contains(text, `backstop_notifications_total{result="delivered"}`)
	})
	t.Logf("serves after %s", time.Since(start).Round(10*time.Millisecond))
	if _, err := os.Stat(w.folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it plays in the data folder itself: %v", err)
	}
	w.folder += "-demo"
	w.token = strings.TrimSpace(w.run("token", "add", "desk", "--scope", "monitor"))
	kinds := map[string]bool{}
	suppliers := map[string]bool{}
	w.within(50*time.Second, "callbacks of every supplier are to be seen, and every kind of trouble", func() bool {
		for _, kind := range w.exceptions("") {
			kinds[kind] = true
		}
		a := w.request(http.MethodGet, "/api/v1/admin/callbacks?limit=100", w.token, "")
		var page struct {
			Items []struct{ Supplier, Outcome string }
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for _, item := range page.Items {
			suppliers[item.Supplier] = true
			kinds["callback:"+item.Outcome] = true
		}
		return len(suppliers) >= 4 && (!full() || kinds["amount_mismatch"] && kinds["late_payment"])
	})
	var shown []string
	w.within(50*time.Second, "an order that is worth a look is printed", func() bool {
		shown = regexp.MustCompile(`an order with a story: http://` + regexp.QuoteMeta(w.address) + `/orders/(\d+)`).FindStringSubmatch(said())
		return shown != nil
	})
	if a := w.request(http.MethodGet, "/api/v1/admin/callbacks?order_no="+shown[1], w.token, ""); !strings.Contains(a.body, `"outcome":"paid"`) {
		t.Errorf("the callbacks of the order that is shown: %d %s", a.status, a.body)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(stopTime):
		t.Fatal("it does not stop")
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	w.books()
	t.Logf("seen: %v of %v", kinds, suppliers)
}
