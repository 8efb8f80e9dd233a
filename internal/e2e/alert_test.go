package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPeopleHearOfAnException has money arrive that belongs to no order, with a chat service
// that is down at first.
func TestPeopleHearOfAnException(t *testing.T) {
	var mu sync.Mutex
	var received []string
	refused := 0
	chat := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if refused == 0 {
			refused++
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		received = append(received, string(body))
	}))
	t.Cleanup(func() { // after the parallel tests below
		chat.Close()
		if refused != 1 {
			t.Error("the chat service was never down: the repeat is not tested")
		}
	})
	each(t, options{environ: []string{
		"BACKSTOP_ALERT_URLS=generic+" + chat.URL + "/room?template=json", "BACKSTOP_ALERT_LANGUAGE=en",
	}}, func(t *testing.T, w *world) {
		w.start("")
		w.wantAccepted(callbackForm("sp-main", "NO-SUCH-"+t.Name()[strings.LastIndex(t.Name(), "/")+1:], "t1", 100))
		w.within(30*time.Second, "the alert arrives", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(received, func(text string) bool {
				return strings.Contains(text, "1 payment for an unknown order (CNY 1.00)") &&
					strings.Contains(text, w.address+"/exceptions")
			})
		})
	})
}
