package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/base/queue/queuetest"
)

// TestTheConsoleHasAnAddressOfItsOwn: what operators and monitors read is not there for
// those who pay and are paid, and the other way round.
func TestTheConsoleHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	w := newWorld(t, options{environ: []string{"BACKSTOP_ADMIN_LISTEN=" + address}})
	w.start("")
	desk := *w
	desk.address = address
	greeting, err := os.ReadFile(filepath.Join(w.folder, "server-1.out"))
	if err != nil || !strings.Contains(string(greeting), "console: http://"+address+"\n") {
		t.Errorf("it greets with %q, %v", greeting, err)
	}
	paidAndNotified(w)
	for path, key := range map[string]string{
		"/login": "", "/metrics": "", "/evidence-keys": "", "/api/v1/admin/exceptions": w.token,
		"/api/v1/admin/merchant-callback-monitor/health": w.token,
	} {
		if a := w.request(http.MethodGet, path, key, ""); a.status != http.StatusNotFound {
			t.Errorf("%s at the public address: %d", path, a.status)
		}
		if a := desk.request(http.MethodGet, path, key, ""); a.status != http.StatusOK {
			t.Errorf("%s at the console's address: %d %s", path, a.status, a.body)
		}
	}
	if a := desk.request(http.MethodGet, "/api/v1/orders?out_trade_no=paid-1", apiKey, ""); a.status != http.StatusNotFound {
		t.Errorf("the merchants' API at the console's address: %d", a.status)
	}
	if a := desk.request(http.MethodPost, "/callback/sp-main", "", ""); a.status != http.StatusNotFound {
		t.Errorf("callbacks at the console's address: %d", a.status)
	}
	w.terminate()
}
