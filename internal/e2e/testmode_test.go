package e2e

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	merchants "backstop/client"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue/queuetest"
)

// Tables of the live database that change while nothing happens.
var restless = []string{"nodes", "leases", "settings", "report_backlog", "report_risk"}

// tableCounts counts the rows of every table of the live database.
func (w *world) tableCounts() map[string]int {
	w.t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if w.database != "" {
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	names, err := w.own().Query(query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer names.Close()
	counts := map[string]int{}
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			w.t.Fatal(err)
		}
		if !slices.Contains(restless, name) {
			counts[name] = 0
		}
	}
	for name := range counts {
		var n int
		if err := w.own().QueryRow(`SELECT count(*) FROM "` + name + `"`).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		counts[name] = n
	}
	return counts
}

// TestTestModeIsApart goes from a key of test mode over a payment page to the merchant's own machine, by the
// live address. Nothing of it is in the live database.
func TestTestModeIsApart(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			o := options{postgres: engine == "postgres", environ: []string{"BACKSTOP_TEST_LISTEN=" + address}}
			if o.postgres {
				o.environ = append(o.environ, "BACKSTOP_TEST_DATABASE_URL="+dbtest.PostgresMigratedURL(t))
			}
			w := newWorld(t, o)
			w.start("")
			w.within(readyTime, "test mode is ready", func() bool {
				resp, err := client.Get("http://" + address + "/readyz")
				if err != nil {
					return false
				}
				resp.Body.Close()
				return resp.StatusCode == http.StatusOK
			})
			w.order("none") // notes the use of the live key
			before := w.tableCounts()

			made := w.run("testmode", "key", "m1")
			key := regexp.MustCompile(`sk_test_\w+`).FindString(made)
			signing := regexp.MustCompile(`whsec_\S+`).FindString(made)
			if again := w.run("testmode", "key", "m1"); strings.Contains(again, key) || strings.Contains(again, "whsec_") {
				t.Errorf("a second key is printed as %q", again)
			} else {
				key = regexp.MustCompile(`sk_test_\w+`).FindString(again)
			}
			var received atomic.Int64
			laptop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if n, err := merchants.VerifyNotification(r.Header, body, signing); err != nil || n.Type != "order.paid" {
					t.Errorf("%v: %s", err, body)
				}
				received.Add(1)
			}))
			defer laptop.Close()
			listening := w.listen(key, signing, laptop.URL+"/notify")

			out := w.run("trigger", "order.paid", "--key", key, "--url", "http://"+w.address)
			triggered := regexp.MustCompile(`order (\d+) is paid`).FindStringSubmatch(out)
			if triggered == nil {
				t.Fatalf("trigger printed %q", out)
			}
			order := func(no string) answer { return w.request(http.MethodGet, "/api/v1/orders/"+no, key, "") }
			a := w.request(http.MethodPost, "/api/v1/orders", key, newOrder("page", requestBody{"supplier": "sandbox"}).text())
			no := a.json("order_no")
			page := w.request(http.MethodPost, "/api/v1/orders/"+no+"/pay", key, "{}").json("payment", "value")
			if a.header.Get("X-Backstop-Test") != "true" || page != "http://"+address+"/test/pay/"+no {
				t.Errorf("an order of test mode: %d %s %v, paid at %q", a.status, a.body, a.header, page)
			}
			payOnPage(t, page, "twice")
			for _, no := range []string{triggered[1], no} {
				w.within(5*time.Second, "the merchant is notified", func() bool { return order(no).json("notify_status") == "delivered" })
				if live := w.order(no); live.status != http.StatusNotFound || live.header.Get("X-Backstop-Test") != "" {
					t.Errorf("with a live key: %d %s", live.status, live.body)
				}
			}
			if printed := listening(); received.Load() != 2 || !strings.Contains(printed, "2 received, 2 forwarded") ||
				!strings.Contains(printed, "order.paid  "+no+"  200") {
				t.Errorf("%d notifications, printed\n%s", received.Load(), printed)
			}
			if after := w.tableCounts(); !maps.Equal(before, after) {
				t.Errorf("the live database had %v\nand has %v", before, after)
			}
			w.terminate()
			w.testDatabaseIsReadable()
		})
	}
}

// testDatabaseIsReadable runs a command on the database of test mode, as on any other.
func (w *world) testDatabaseIsReadable() {
	w.t.Helper()
	if w.database != "" {
		return
	}
	cmd := exec.Command(program, "export")
	cmd.Env = w.environ("BACKSTOP_DATA="+filepath.Join(w.folder, "test"), "BACKSTOP_MASTER_KEY_FILE="+filepath.Join(w.folder, "master.key"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "code: sandbox") {
		w.t.Errorf("export of test mode: %v\n%s", err, out)
	}
}

// listen begins to forward notifications; the result ends it and returns what it printed.
func (w *world) listen(key, secret, to string) (end func() string) {
	w.t.Helper()
	cmd := exec.Command(program, "listen", "--key", key, "--secret", secret, "--forward", to, "--url", "http://"+w.address)
	cmd.Env = w.environ()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := false
	wait := func() error {
		ended = true
		_ = cmd.Process.Signal(syscall.SIGINT)
		return cmd.Wait()
	}
	w.t.Cleanup(func() {
		if !ended {
			_ = wait()
		}
	})
	return func() string {
		if err := wait(); err != nil {
			w.t.Errorf("listen: %v", err)
		}
		return out.String()
	}
}

// payOnPage presses a button of a payment page, in both languages.
func payOnPage(t *testing.T, page, scenario string) {
	t.Helper()
	for lang, want := range map[string]string{"zh": "支付另一金额", "en": "Pay another amount"} {
		if _, body := visit(t, http.MethodGet, page+"?lang="+lang, nil); !strings.Contains(body, want) {
			t.Errorf("the page in %s:\n%s", lang, body)
		}
	}
	status, body := visit(t, http.MethodPost, page+"?lang=en", url.Values{"scenario": {scenario}})
	if status != http.StatusOK || strings.Count(body, "200 success") != 2 || !strings.Contains(body, ">Paid<") {
		t.Errorf("the payment: %d\n%s", status, body)
	}
	if status, _ := visit(t, http.MethodPost, page, url.Values{"scenario": {"other"}}); status != http.StatusNotFound {
		t.Errorf("an unknown scenario: %d", status)
	}
}

func visit(t *testing.T, method, page string, form url.Values) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, page, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
