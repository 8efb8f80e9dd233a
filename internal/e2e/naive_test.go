package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"backstop/internal/notify/fakemerchant"
)

// naiveEnv makes the test binary the negative control: a service that commits,
// then enqueues, and answers "taken" to what is paid already. It is how such
// services are usually written. Its value is the folder of its files.
const naiveEnv = "E2E_NAIVE"

// naive serves callbacks /?order=… until it is killed. The file "paid" is its
// database, the file "merchant" holds the merchant's address, and its own
// address goes to the file "address".
func naive(folder string) {
	merchant, err := os.ReadFile(filepath.Join(folder, "merchant"))
	fatal(err)
	file := filepath.Join(folder, "paid")
	before, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		fatal(err)
	}
	db, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	fatal(err)
	paid := map[string]bool{}
	for _, no := range strings.Fields(string(before)) {
		paid[no] = true
	}
	queue := make(chan string, 10_000)
	go func() {
		for no := range queue {
			resp, err := http.Post(string(merchant), "text/plain", strings.NewReader(no))
			if err == nil {
				resp.Body.Close()
			}
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(err)
	fatal(os.WriteFile(filepath.Join(folder, "address"), []byte(listener.Addr().String()), 0o600))
	var mu sync.Mutex
	fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		no := r.URL.Query().Get("order")
		if !paid[no] {
			_, err := fmt.Fprintln(db, no) // commit …
			fatal(err)
			paid[no] = true
			queue <- no // … then enqueue
		}
		_, _ = io.WriteString(w, "success")
	})))
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestCommitThenEnqueueLosesNotifications is the negative control of the tests
// that kill: the same supplier and the same merchant, with a service that keeps
// its notifications in a queue beside the database. If it ever lost nothing,
// those tests would show nothing.
func TestCommitThenEnqueueLosesNotifications(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	merchant, err := fakemerchant.Open(fakemerchant.Options{Keep: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer merchant.Close()
	if err := os.WriteFile(filepath.Join(folder, "merchant"), []byte(merchant.URL()), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	var accepted sync.Map
	var count atomic.Int64
	for life := range 5 {
		_ = os.Remove(filepath.Join(folder, "address"))
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = []string{naiveEnv + "=" + folder}, new(bytes.Buffer)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var address []byte
		w.within(readyTime, "the naive service listens", func() bool {
			address, _ = os.ReadFile(filepath.Join(folder, "address"))
			return len(address) > 0
		})
		var senders sync.WaitGroup
		for line := range 8 {
			senders.Go(func() {
				for i := 0; ; i++ {
					no := fmt.Sprintf("%d-%d-%d", life, line, i)
					resp, err := client.Get("http://" + string(address) + "/?order=" + no)
					if err != nil {
						return // killed
					}
					resp.Body.Close()
					accepted.Store(no, true)
					count.Add(1)
				}
			})
		}
		before := merchant.Count()
		w.within(readyTime, "notifications flow", func() bool { return merchant.Count() > before+50 })
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		senders.Wait()
	}
	received := map[string]bool{}
	for _, r := range merchant.Requests() {
		received[string(r.Body)] = true
	}
	lost := 0
	accepted.Range(func(no, _ any) bool {
		if !received[no.(string)] {
			lost++
		}
		return true
	})
	t.Logf("5 kills: %d callbacks answered taken, %d merchants' notifications lost for ever", count.Load(), lost)
	if lost == 0 {
		t.Error("the naive service lost nothing: these kills are too gentle to show anything")
	}
}
