package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
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
)

// supplierWorld is an installation whose suppliers can be called: `backstop simulate` plays them.
type supplierWorld struct {
	*world
	simulator string // its address
}

// simulated are the suppliers of the simulator, one of each kind.
var simulated = []string{"sim-wx", "sim-ali", "sim-st", "sim-till"}

// supplierOptions are steps of seconds instead of minutes.
func supplierOptions(more ...string) options {
	return options{environ: append([]string{
		"BACKSTOP_SUPPLIER_ALLOW_CIDRS=127.0.0.0/8", "BACKSTOP_SUPPLIER_TIMEOUT=1s",
		"BACKSTOP_QUERY_STEPS=" + strings.Repeat("1s,", 16) + strings.Repeat("2s,", 15) + "5s", "BACKSTOP_CLOSE_STEPS=0s,1s",
	}, more...)}
}

// simulate starts the suppliers, with more options, and declares them.
func (w *world) simulate(more ...string) *supplierWorld {
	w.t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(w.t)))
	file := filepath.Join(w.folder, "simulate.yaml")
	out, err := os.Create(file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(program, append([]string{"simulate", "--listen", address, "--seed", "7", "--callbacks", "http://" + w.address +
		"/callback"}, more...)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.environ(), w.folder, out, &stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if w.t.Failed() {
			w.t.Logf("the simulator said: %s", stderr.String())
		}
	})
	a := &supplierWorld{world: w, simulator: address}
	w.within(readyTime, "the simulator answers", func() bool {
		resp, err := client.Get("http://" + address + "/_sim/calls")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	w.run("apply", file)
	return a
}

// eachSupplierWorld runs a test on both engines with simulated suppliers and a running server.
func eachSupplierWorld(t *testing.T, o options, test func(t *testing.T, w *supplierWorld)) {
	each(t, o, func(t *testing.T, w *world) {
		a := w.simulate()
		w.start("")
		test(t, a)
	})
}

// set tells the simulator what is true of a reference.
func (w *supplierWorld) set(supplier, ref string, state map[string]any) {
	w.t.Helper()
	w.setAs(supplier, "orders", ref, state)
}

// setAs is set for one of the orders, refunds or payouts, and returns the report.
func (w *supplierWorld) setAs(supplier, what, ref string, state map[string]any) answer {
	w.t.Helper()
	raw, _ := json.Marshal(state)
	req, _ := http.NewRequest(http.MethodPut, "http://"+w.simulator+"/_sim/"+supplier+"/"+what+"/"+ref, bytes.NewReader(raw))
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	if resp.StatusCode/100 != 2 {
		w.t.Fatalf("PUT %s of %s: %s %s", raw, ref, resp.Status, body.String())
	}
	return answer{body: body.String()}
}

// calls are the requests that the simulator got about a reference, by operation.
func (w *supplierWorld) calls(ref string) (ops []string) {
	w.t.Helper()
	resp, err := client.Get("http://" + w.simulator + "/_sim/calls?ref=" + ref)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Items []struct {
			Op string `json:"op"`
		} `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range page.Items {
		ops = append(ops, c.Op)
	}
	return ops
}

// moved is how often money moved under an order's reference.
func (w *supplierWorld) moved(supplier, ref string) string { return w.movedOf(supplier, "orders", ref) }

// movedOf is how often money moved under the number of one of the orders or refunds.
func (w *supplierWorld) movedOf(supplier, what, no string) string {
	w.t.Helper()
	resp, err := client.Get("http://" + w.simulator + "/_sim/" + supplier + "/" + what + "/" + no)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	return answer{body: body.String()}.json("money_moved")
}

// pay starts a payment as the merchant does.
func (w *supplierWorld) pay(no, body string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/api/v1/orders/"+no+"/pay", apiKey, body)
}

// queryNow queries the supplier by the admin API.
func (w *supplierWorld) queryNow(no, reason string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/api/v1/admin/orders/"+no+"/query", w.token, `{"reason":`+strconv.Quote(reason)+`}`)
}

// wantOneNotification checks that the merchant was notified once of an order.
func (w *supplierWorld) wantOneNotification(no, kind string) {
	w.t.Helper()
	list := w.notifications(no)
	if len(list) != 1 || (answer{body: string(list[0].Body)}).json("type") != kind {
		w.t.Errorf("order %s: %d notifications, want one %s: %d", no, len(list), kind, len(list))
	}
}

func TestAPaymentWhoseCallbackNeverComesIsFound(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		for _, supplier := range simulated {
			no := w.create("lost-"+supplier, requestBody{"supplier": supplier})
			p := w.pay(no, `{}`)
			if p.status != http.StatusOK || p.json("payment", "status") != "submitted" || p.json("payment", "value") == "" ||
				p.json("payment", "reference") != no {
				t.Fatalf("%s pay: %d %s", supplier, p.status, p.body)
			}
			if again := w.pay(no, `{}`); again.json("payment", "attempt") != p.json("payment", "attempt") ||
				again.json("payment", "value") != p.json("payment", "value") {
				t.Errorf("%s pay again: %s, first %s", supplier, again.body, p.body)
			}
			w.set(supplier, no, map[string]any{"state": "paid", "callback": "none"})
			w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "paid_amount": "1999", "notify_status": "delivered"})
			w.wantOneNotification(no, "order.paid")
			if m := w.moved(supplier, no); m != "1" {
				t.Errorf("%s: money moved %s times", supplier, m)
			}
			calls := w.request(http.MethodGet, "/api/v1/admin/supplier-calls?order_no="+no, w.token, "")
			if calls.json("items", "0", "op") == "" || calls.json("items", "0", "class") != "ok" ||
				calls.json("items", "0", "reference") != no {
				t.Errorf("%s calls: %s", supplier, calls.body)
			}
		}
		w.books()
	})
}

func TestAnUnpaidOrderIsClosedAtItsSupplierFirst(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		// A code that nobody scanned is unknown to Alipay: it is believed after query_after.
		declared, err := os.ReadFile(filepath.Join(w.folder, "simulate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		w.apply(regexp.MustCompile(`(?m)^( *)- code: sim-ali$`).ReplaceAllString(string(declared),
			"$1- query_after: 2s\n$1  code: sim-ali"))
		for _, supplier := range []string{"sim-ali", "sim-st", "sim-till"} { // WeChat Pay takes no close in the first five minutes
			no := w.create("unpaid-"+supplier, requestBody{"supplier": supplier, "expires_in": 3})
			if p := w.pay(no, `{}`); p.json("payment", "status") != "submitted" {
				t.Fatalf("%s pay: %d %s", supplier, p.status, p.body)
			}
			closed := w.wantOrder(no, 25*time.Second, map[string]string{"status": "closed", "close_reason": "timeout"})
			if expires, at := moments(w.world, closed, "expires_at", "closed_at"); at.Before(expires) || at.Sub(expires) > 5*time.Second {
				t.Errorf("%s: closed %s after its timeout", supplier, at.Sub(expires))
			}
			if ops := w.calls(no); !strings.Contains(strings.Join(ops, " "), "close") {
				t.Errorf("%s got no request to close: %s", supplier, ops)
			}
			// The buyer was faster than the close.
			no = w.create("faster-"+supplier, requestBody{"supplier": supplier, "expires_in": 3})
			w.pay(no, `{}`)
			w.set(supplier, no, map[string]any{"state": "unpaid", "callback": "none", "close": "paid"})
			w.wantOrder(no, 25*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
			w.wantOneNotification(no, "order.paid")
		}
		// No payment was started through the API: the supplier is queried all the same.
		no := w.create("silent", requestBody{"supplier": "sim-till", "expires_in": 2})
		w.set("sim-till", no, map[string]any{"state": "paid", "amount": 1999, "callback": "none"})
		w.wantOrder(no, 25*time.Second, map[string]string{"status": "paid"})
		w.books()
	})
}

func TestAnUnknownAnswerMovesNothing(t *testing.T) {
	eachSupplierWorld(t, supplierOptions("BACKSTOP_SUPPLIER_TIMEOUT=300ms"), func(t *testing.T, w *supplierWorld) {
		for _, said := range []string{"500", "garbage", "bad_signature", "wrong_order", "hang"} {
			no := w.create("unknown-"+said, requestBody{"supplier": "sim-till", "expires_in": 2})
			w.pay(no, `{}`)
			w.set("sim-till", no, map[string]any{"state": "paid", "callback": "none", "answer": said})
			// The call that starts the payment, and a second query: the answer to the first one was read.
			w.within(20*time.Second, "it is queried twice", func() bool { return w.queries(no) >= 2 })
			if s := w.order(no).json("status"); s != "paying" && s != "closing" {
				t.Errorf("%s: the order is %s", said, s)
			}
			a := w.queryNow(no, "the buyer asks for it")
			if a.status != http.StatusServiceUnavailable && a.json("answer") != "unknown" {
				t.Errorf("%s: %d %s", said, a.status, a.body)
			}
			// Five of these open the supplier's breaker: a person closes it by an answer.
			w.set("sim-till", no, map[string]any{"state": "paid", "callback": "now", "answer": "ok"})
			w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
			w.wantOneNotification(no, "order.paid")
		}
		w.books()
	})
}

func TestALostAnswerToPayStartsNothingTwice(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		for _, supplier := range simulated {
			no := w.create("lose-"+supplier, requestBody{"supplier": supplier})
			w.set(supplier, no, map[string]any{"state": "not_found", "lose_answers": 1})
			p := w.pay(no, `{}`)
			if p.status != http.StatusOK || p.json("payment", "status") != "unknown" || p.json("status") != "paying" {
				t.Errorf("%s pay whose answer is lost: %d %s", supplier, p.status, p.body)
			}
			if other := w.pay(no, `{"supplier":"sp-main"}`); other.status != http.StatusConflict ||
				other.json("error", "code") != "attempt_open" {
				t.Errorf("%s another supplier: %d %s", supplier, other.status, other.body)
			}
			if p = w.pay(no, `{}`); p.json("payment", "status") != "submitted" || p.json("payment", "reference") != no {
				t.Errorf("%s pay again: %d %s", supplier, p.status, p.body)
			}
			w.set(supplier, no, map[string]any{"state": "paid", "callback": "twice"})
			w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
			w.wantOneNotification(no, "order.paid")
			if m := w.moved(supplier, no); m != "1" {
				t.Errorf("%s: money moved %s times", supplier, m)
			}
		}
		w.books()
	})
}

func TestAnOperatorQueriesASupplier(t *testing.T) {
	eachSupplierWorld(t, supplierOptions("BACKSTOP_QUERY_STEPS=1h"), func(t *testing.T, w *supplierWorld) {
		no := w.create("person", requestBody{"supplier": "sim-till"})
		w.pay(no, `{}`)
		w.set("sim-till", no, map[string]any{"state": "paid", "callback": "none"})
		for _, c := range []struct {
			what         string
			no, reason   string
			status       int
			code, field  string
			tokenOfScope string
		}{
			{what: "no such order", no: "nothing", reason: "the buyer called us", status: 404, code: "not_found"},
			{what: "short reason", no: no, reason: "short", status: 422, field: "reason"},
			{
				what: "scope", no: no, reason: "the buyer called us", status: 403, code: "forbidden", field: "scope",
				tokenOfScope: "monitor,control",
			},
			{what: "cannot be queried", no: w.create("no-query", nil), reason: "the buyer called us", status: 409, code: "cannot_be_asked"},
		} {
			token := w.token
			if c.tokenOfScope != "" {
				token = strings.TrimSpace(w.run("token", "add", "narrow", "--scope", c.tokenOfScope))
			}
			a := w.request(http.MethodPost, "/api/v1/admin/orders/"+c.no+"/query", token, `{"reason":`+strconv.Quote(c.reason)+`}`)
			if a.status != c.status || c.code != "" && a.json("error", "code") != c.code || a.json("error", "field") != c.field {
				t.Errorf("%s: %d %s", c.what, a.status, a.body)
			}
		}
		a := w.queryNow(no, "the buyer called us")
		if a.status != http.StatusOK || a.json("answer") != "paid" || a.json("amount") != "1999" || a.json("order", "status") != "paid" ||
			a.json("trade_no") == "" {
			t.Errorf("query: %d %s", a.status, a.body)
		}
		w.waitOneNotification(no)
		w.books()
	})
}

// waitOneNotification waits for the notification of a payment.
func (w *supplierWorld) waitOneNotification(no string) {
	w.t.Helper()
	w.wantOrder(no, 20*time.Second, map[string]string{"notify_status": "delivered"})
	w.wantOneNotification(no, "order.paid")
}

// TestAnswerAndCallbackRace has the callback come before, with and after the answer that
// says the same.
func TestAnswerAndCallbackRace(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		rounds := 20
		if full() {
			rounds = 200
		}
		nos := make([]string, rounds)
		var wg sync.WaitGroup
		for i := range nos {
			nos[i] = w.create(fmt.Sprintf("race-%d", i), requestBody{"supplier": "sim-till"})
			w.pay(nos[i], `{}`)
			callback := []string{"before_answer", "now", "twice"}[i%3]
			w.set("sim-till", nos[i], map[string]any{"state": "paid", "callback": callback})
			wg.Go(func() { w.queryNow(nos[i], "the race of callback and answer") })
		}
		wg.Wait()
		for _, no := range nos {
			w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "version": "3", "notify_status": "delivered"})
			w.wantOneNotification(no, "order.paid")
		}
		if kinds := w.exceptions(""); len(kinds) > 0 {
			t.Errorf("exceptions: %v", kinds)
		}
		w.books()
	})
}
