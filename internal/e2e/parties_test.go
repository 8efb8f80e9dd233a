package e2e

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/notify/fakemerchant"
	"backstop/web/api/apitest"
)

// client is used for suppliers, merchants and monitors.
var client = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
	last   bool // of its connection
}

// json reads one field of the answer; a number leads into a list, texts come
// without quotes.
func (a answer) json(path ...string) string {
	raw := json.RawMessage(a.body)
	for _, name := range path {
		var list []json.RawMessage
		if i, err := strconv.Atoi(name); err == nil && json.Unmarshal(raw, &list) == nil && i < len(list) {
			raw = list[i]
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return ""
		}
		raw = fields[name]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// do makes one request. With an error its effect is unknown.
func (w *world) do(method, path, key string, header http.Header, body string) (answer, error) {
	req, err := http.NewRequest(method, "http://"+w.address+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(req.Header, header)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a := answer{resp.StatusCode, resp.Header, string(text), resp.Close}
	if err == nil {
		w.isAsDescribed(method, path, body, a)
	}
	return a, err
}

// contract is the description of the API that the program under test serves, with how many answers of each kind
// were held against it.
var contract struct {
	sync.Mutex
	*apitest.Contract
	held map[string]int
}

// heldEach bounds the answers of one kind that are held against the description: there are thousands.
const heldEach = 20

var digits = regexp.MustCompile(`[0-9]+`)

// isAsDescribed holds an answer of the API against /openapi.yaml.
func (w *world) isAsDescribed(method, path, body string, a answer) {
	if !strings.HasPrefix(path, "/api/") || w.program != "" || a.status == http.StatusBadGateway { // of a balancer
		return
	}
	contract.Lock()
	defer contract.Unlock()
	if contract.Contract == nil {
		resp, err := client.Get("http://" + w.address + "/openapi.yaml")
		if err != nil {
			return // it was killed meanwhile
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return
		}
		if contract.Contract, err = apitest.Read(context.Background(), text); err != nil {
			w.t.Error(err)
			return
		}
		contract.held = map[string]int{}
	}
	kind := fmt.Sprint(method, " ", digits.ReplaceAllString(path, "0"), " ", a.status)
	if contract.held[kind]++; contract.held[kind] > heldEach {
		return
	}
	for _, problem := range contract.Contradictions(context.Background(), apitest.Exchange{
		Method: method, Path: path, Body: body, Status: a.status, Header: a.header, Answer: a.body,
	}) {
		w.t.Errorf("%s %s: not as described: %v\n%s", method, path, problem, a.body)
	}
}

// whileBusy posts again, as clients do, while the server says that it is too busy: on a slow
// machine a transaction that waits too long for a lock ends so.
func (w *world) whileBusy(path, key, body string) (a answer, err error) {
	waittest.Within(20*time.Second, func() bool {
		a, err = w.do(http.MethodPost, path, key, nil, body)
		return err != nil || a.status != http.StatusServiceUnavailable || a.json("error", "code") != "busy"
	})
	return a, err
}

// request makes a request that must get a response.
func (w *world) request(method, path, key, body string) answer {
	w.t.Helper()
	a, err := w.do(method, path, key, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", method, path, err, w.server.tail())
	}
	return a
}

// requestBody is the JSON object of a request.
type requestBody map[string]any

// newOrder is the body of an order with what every order needs.
func newOrder(out string, more requestBody) requestBody {
	o := requestBody{"out_trade_no": out, "amount": 1999, "currency": "CNY", "supplier": "sp-main", "subject": "tea"}
	maps.Copy(o, more)
	return o
}

func (o requestBody) text() string {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // only literals of these tests
	}
	return string(raw)
}

// create makes an order that must be granted, and returns its number.
func (w *world) create(out string, more requestBody) string {
	w.t.Helper()
	a := w.request(http.MethodPost, "/api/v1/orders", apiKey, newOrder(out, more).text())
	if a.status != http.StatusCreated {
		w.t.Fatalf("create: %d %s", a.status, a.body)
	}
	return a.json("order_no")
}

func (w *world) order(no string) answer {
	w.t.Helper()
	return w.request(http.MethodGet, "/api/v1/orders/"+no, apiKey, "")
}

// exceptions lists what kinds the exception desk has of an order, or of all ("").
func (w *world) exceptions(no string) []string {
	w.t.Helper()
	a := w.request(http.MethodGet, "/api/v1/admin/exceptions?order_no="+no, w.token, "")
	var page struct {
		Items []struct {
			Kind string `json:"kind"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		w.t.Fatalf("exceptions: %d %s", a.status, a.body)
	}
	kinds := make([]string, 0, len(page.Items))
	for _, item := range page.Items {
		kinds = append(kinds, item.Kind)
	}
	return kinds
}

// callbackForm is a signed message of success about an order.
func callbackForm(supplier, no, trade string, amount int64) url.Values {
	form := url.Values{
		"account": {supplier}, "order": {no}, "trade": {trade}, "amount": {strconv.FormatInt(amount, 10)}, "status": {"OK"},
	}
	sign(supplier, form)
	return form
}

// sign signs a message as its supplier does.
func sign(supplier string, form url.Values) {
	form.Del("sign")
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		pairs = append(pairs, name+"="+form.Get(name))
	}
	sum := md5.Sum([]byte(strings.Join(pairs, "&") + "&key=" + supplierKey(supplier)))
	form.Set("sign", hex.EncodeToString(sum[:]))
}

func supplierKey(code string) string { return "key-of-" + code + "-0123456789" }

// postCallback sends a callback once.
func (w *world) postCallback(supplier string, form url.Values, header http.Header) (answer, error) {
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	maps.Copy(h, header)
	return w.do(http.MethodPost, "/callback/"+supplier, "", h, form.Encode())
}

// mustPostCallback sends a callback that must be answered.
func (w *world) mustPostCallback(supplier string, form url.Values) answer {
	w.t.Helper()
	a, err := w.postCallback(supplier, form, nil)
	if err != nil {
		w.t.Fatalf("callback: %v\n%s", err, w.server.tail())
	}
	return a
}

func (a answer) accepted() bool { return a.status == http.StatusOK && a.body == "success" }

// traffic is a merchant and a supplier who repeat themselves until they are
// answered, as they do, and remember what they were answered.
type traffic struct {
	w          *world
	mu         sync.Mutex
	made       map[string]bool // orders granted; true once the callback was accepted
	unexpected []string        // answers that are always wrong
}

func newTraffic(w *world) *traffic { return &traffic{w: w, made: map[string]bool{}} }

// patience bounds what takes a moment on a quiet machine, such as one request with its repeats.
const patience = 60 * time.Second

// insist repeats a request until it is answered by something other than "come
// again".
func (tr *traffic) insist(what string, try func() (answer, error), good func(answer) bool) (answer, bool) {
	var a answer
	switch answered := waittest.Within(patience, func() bool {
		var err error
		a, err = try()
		return err == nil && a.status < 500
	}); {
	case !answered:
		tr.addUnexpected(what + ": no answer for " + patience.String())
		return answer{}, false
	case !good(a):
		tr.addUnexpected(what + ": " + strconv.Itoa(a.status) + " " + a.body)
		return a, false
	}
	return a, true
}

func (tr *traffic) addUnexpected(what string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.unexpected = append(tr.unexpected, what)
}

// buy is one order from its creation to the answer to its callback.
func (tr *traffic) buy(out string) {
	if no, ok := tr.create(out); ok {
		tr.pay(no)
	}
}

func (tr *traffic) create(out string) (no string, ok bool) { return tr.createAt(out, nil) }

func (tr *traffic) createAt(out string, change requestBody) (no string, ok bool) {
	a, ok := tr.insist("create", func() (answer, error) {
		return tr.w.do(http.MethodPost, "/api/v1/orders", apiKey, nil, newOrder(out, change).text())
	}, func(a answer) bool { return a.status == http.StatusCreated || a.status == http.StatusOK })
	if !ok {
		return "", false
	}
	no = a.json("order_no")
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.made[no] = false
	return no, true
}

func (tr *traffic) pay(no string) {
	_, ok := tr.insist("callback", func() (answer, error) {
		return tr.w.postCallback("sp-main", callbackForm("sp-main", no, "T"+no, 1999), nil)
	}, answer.accepted)
	if ok {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.made[no] = true
	}
}

// settle waits until the merchant was notified of every payment that was answered
// taken, and holds both sides' books against each other. It returns how many
// notifications came more than once.
func (tr *traffic) settle(most time.Duration) (repeated int) {
	w := tr.w
	w.t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, what := range tr.unexpected {
		w.t.Errorf("unexpected answer: %s", what)
	}
	deadline := time.Now().Add(most)
	var late []string
	for no, accepted := range tr.made {
		if !accepted {
			w.t.Errorf("order %s: its callback was never accepted", no)
			continue
		}
		var a answer
		if !waittest.Within(time.Until(deadline), func() bool {
			a = w.order(no)
			return a.json("status") == "paid" && a.json("version") == "2" && a.json("notify_status") == "delivered"
		}) {
			late = append(late, a.body)
		}
	}
	if len(late) > 0 {
		w.t.Errorf("LOST: %d of %d orders are not paid and delivered after %s, such as %s", len(late), len(tr.made), most, late[0])
	}
	if kinds := w.exceptions(""); len(kinds) > 0 {
		w.t.Errorf("honest suppliers, and yet exceptions: %v", kinds)
	}
	repeated = checkNotified(w.t, w.merchant, tr.made)
	w.books()
	return repeated
}

// checkNotified compares the notifications with the orders: each at least
// once, signed, and under one id.
func checkNotified(t *testing.T, m *fakemerchant.Merchant, orders map[string]bool) (repeated int) {
	t.Helper()
	ids := map[string]string{}
	times := map[string]int{}
	for _, r := range m.Requests() {
		if err := fakemerchant.Verify(r, secret); err != nil {
			t.Errorf("notification %s: %v", r.ID, err)
		}
		a := answer{body: string(r.Body)}
		no := a.json("data", "order_no")
		if _, ours := orders[no]; !ours {
			t.Errorf("the merchant was notified of an unknown order: %s", r.Body)
		}
		if a.json("type") != "order.paid" || a.json("data", "status") != "paid" || a.json("data", "paid_amount") != "1999" {
			t.Errorf("the merchant received %s", r.Body)
		}
		if ids[no] != "" && ids[no] != r.ID {
			t.Errorf("order %s: notified under %s and %s", no, ids[no], r.ID)
		}
		ids[no] = r.ID
		times[no]++
	}
	for no := range orders {
		switch n := times[no]; {
		case n == 0:
			t.Errorf("LOST: the merchant was never notified of order %s", no)
		case n > 1:
			repeated++
		}
	}
	return repeated
}

// notifications are what the merchant received about one order.
func (w *world) notifications(no string) (list []fakemerchant.Request) {
	for _, r := range w.merchant.Requests() {
		if bytes.Contains(r.Body, []byte(strconv.Quote(no))) {
			list = append(list, r)
		}
	}
	return list
}
