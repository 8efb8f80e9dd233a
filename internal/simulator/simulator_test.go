package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"backstop/internal/base/waittest"
	"backstop/internal/supplier"
	alipayadapter "backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	stripeadapter "backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// adapter is the real one, with the settings that callbacks are checked with.
func adapter(t *testing.T, a *Account) supplier.Adapter {
	t.Helper()
	raw, err := json.Marshal(a.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []supplier.Kind{wechatpay.Kind, alipayadapter.Kind, stripeadapter.Kind, sortedparams.Kind} {
		if kind.Name == a.Kind {
			made, err := kind.New(a.Code, raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
	}
	t.Fatalf("no kind %s", a.Kind)
	return nil
}

func TestAPaymentIsStartedAskedForAndClosed(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		if got := k.query("ORDER_1"); got.state == StatePaid || got.state == StateUnpaid {
			k.t.Errorf("before the start: %+v", got)
		}
		first := k.pay("ORDER_1")
		if first.status != 200 || !first.genuine || first.value == "" {
			k.t.Fatalf("the start: %+v", first)
		}
		if again := k.pay("ORDER_1"); again.status != 200 || again.value != first.value {
			k.t.Errorf("the same start again: %+v, first %+v", again, first)
		}
		if other := k.do(ask{op: opPay, ref: "ORDER_1", amount: 2000}); other.value != "" {
			k.t.Errorf("another amount with the same reference: %+v", other)
		}
		if k.a.Kind == "alipay" {
			if got := k.query("ORDER_1"); got.word != "ACQ.TRADE_NOT_EXIST" || !got.genuine {
				k.t.Errorf("precreated and never scanned: %+v", got)
			}
		}
		k.set("ORDER_1", Script{State: StateUnpaid})
		if got := k.query("ORDER_1"); !got.genuine || got.state != StateUnpaid && got.state != StatePaying || got.ref != "ORDER_1" ||
			got.amount != 1999 {
			k.t.Errorf("unpaid: %+v", got)
		}
		k.set("ORDER_1", Script{State: StatePaid})
		paid := k.query("ORDER_1")
		if !paid.genuine || paid.state != StatePaid || paid.ref != "ORDER_1" || paid.amount != 1999 || paid.tradeNo == "" {
			k.t.Errorf("paid: %+v", paid)
		}
		if got := k.close("ORDER_1"); !got.genuine || got.status == http.StatusNoContent || got.state == StateClosed {
			k.t.Errorf("the closing of a paid one: %+v", got)
		}
		if n := k.Moved("ORDER_1"); n != 1 {
			k.t.Errorf("money moved %d times", n)
		}
		k.pay("ORDER_2")
		k.set("ORDER_2", Script{State: StatePaying})
		if got := k.close("ORDER_2"); !got.genuine || got.status > 299 || got.word != "" && got.state != StateClosed {
			k.t.Errorf("the closing: %+v", got)
		}
		if got := k.query("ORDER_2"); got.state != StateClosed || k.Moved("ORDER_2") != 0 {
			k.t.Errorf("closed: %+v", got)
		}
	})
}

func TestEveryStateHasItsWord(t *testing.T) {
	t.Parallel()
	missing := map[string]string{
		"wechatpay": "ORDER_NOT_EXIST", "alipay": "ACQ.TRADE_NOT_EXIST", "stripe": "resource_missing",
		"sortedparams": "NONE",
	}
	each(t, func(k *kit) {
		for _, state := range stateNames {
			report, err := k.Set(k.a.Code, "ORDER_1", Script{State: state, Amount: 500})
			if state == StateRefunded && err != nil && k.a.Kind == "sortedparams" {
				continue
			}
			if err != nil || report.State != state {
				k.t.Fatalf("%s: %v %+v", state, err, report)
			}
			got := k.query("ORDER_1")
			want := []State{state}
			switch state {
			case StateUnpaid, StateFailed:
				want = append(want, StatePaying, StateUnpaid)
			case StateNotFound:
				want = append(want, "")
			}
			ok := false
			for _, w := range want {
				ok = ok || got.state == w
			}
			if !got.genuine || !ok || state == StateNotFound && got.word != missing[k.a.Kind] {
				k.t.Errorf("%s is answered %+v", state, got)
			}
		}
	})
}

func TestAWrongSignatureIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		got := k.do(ask{op: opPay, ref: "ORDER_1", alter: k.flip})
		if k.a.Kind == "alipay" && got.word != "isv.invalid-signature" || k.a.Kind != "alipay" && got.status != http.StatusUnauthorized {
			k.t.Errorf("answered %+v", got)
		}
		if r := k.Order(k.a.Code, "ORDER_1"); r.Started {
			k.t.Errorf("it was started: %+v", r)
		}
		calls := k.Calls("")
		if len(calls) != 1 || !strings.HasPrefix(calls[0].Spoilt, "refused") {
			k.t.Errorf("calls: %+v", calls)
		}
	})
}

func TestALostAnswerIsOfACallThatActed(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		k.set("ORDER_1", Script{State: StateNotFound, LoseAnswers: 2})
		for range 2 {
			if got := k.pay("ORDER_1"); got.err == nil {
				k.t.Fatalf("answered: %+v", got)
			}
		}
		if r := k.Order(k.a.Code, "ORDER_1"); !r.Started || r.State != StateUnpaid {
			k.t.Errorf("after the lost answers: %+v", r)
		}
		if got := k.pay("ORDER_1"); got.status != 200 || got.value == "" {
			k.t.Errorf("the third: %+v", got)
		}
		calls := k.Calls("ORDER_1")
		if len(calls) != 3 || calls[0].Spoilt != "lost" || calls[0].Repeated || !calls[1].Repeated || !calls[2].Repeated ||
			calls[2].Spoilt != "" || calls[0].Op != opPay {
			k.t.Errorf("calls: %+v", calls)
		}
		k.set("ORDER_1", Script{State: StatePaid})
		if n := k.Moved("ORDER_1"); n != 1 {
			k.t.Errorf("money moved %d times", n)
		}
	})
}

// The negative control of money_moved: without a key Stripe makes a payment per call.
func TestTwoPaymentsOfOneReferenceAreCounted(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	k.a = k.of("stripe")
	one, two := k.do(ask{op: opPay, ref: "ORDER_1", keyless: true}), k.do(ask{op: opPay, ref: "ORDER_1", keyless: true})
	if one.tradeNo == two.tradeNo {
		t.Fatalf("%+v %+v", one, two)
	}
	if r := k.set("ORDER_1", Script{State: StatePaid}); r.MoneyMoved != 2 || k.Moved("ORDER_1") != 2 {
		t.Errorf("%+v", r)
	}
	if got := k.do(ask{op: opQuery, ref: "ORDER_1"}); got.state != StatePaid || got.ref != "ORDER_1" {
		t.Errorf("a search: %+v", got)
	}
	if got := k.do(ask{op: opQuery, ref: "ORDER_2"}); got.status != 200 || got.tradeNo != "" {
		t.Errorf("a search for nothing: %+v", got)
	}
}

func TestAnswersAreSpoilt(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		k.pay("ORDER_1")
		for _, answer := range []string{Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder} {
			if _, err := k.Set(k.a.Code, "ORDER_1", Script{State: StatePaid, Answer: answer}); err != nil {
				if k.a.Kind == "stripe" && answer == AnswerBadSignature {
					continue
				}
				k.t.Fatal(err)
			}
			got := k.query("ORDER_1")
			ok := false
			switch answer {
			case Answer500:
				ok = got.status == 500
			case AnswerGarbage:
				ok = got.status == 200 && got.state == "" && got.word == ""
			case AnswerBadSignature:
				ok = got.status == 200 && !got.genuine && got.state == StatePaid
			case AnswerWrongOrder:
				ok = got.status == 200 && got.genuine && got.state == StatePaid && got.ref == "ORDER_1X"
			}
			if !ok {
				k.t.Errorf("%s: %+v", answer, got)
			}
		}
		k.set("ORDER_1", Script{State: StatePaid, Amount: 1, TradeNo: k.Order(k.a.Code, "ORDER_1").TradeNo})
		if got := k.query("ORDER_1"); !got.genuine || got.amount != 1 {
			k.t.Errorf("another amount: %+v", got)
		}
		k.set("ORDER_1", Script{State: StatePaid, Answer: AnswerHang})
		ctx, cancel := context.WithTimeout(k.t.Context(), 50*time.Millisecond)
		defer cancel()
		id := k.Order(k.a.Code, "ORDER_1").TradeNo
		if got := k.do(ask{op: opQuery, ref: "ORDER_1", id: id, alter: func(r *http.Request) { *r = *r.WithContext(ctx) }}); !errors.Is(
			got.err, context.DeadlineExceeded) {
			k.t.Errorf("hang: %+v", got)
		}
		k.set("ORDER_1", Script{State: StatePaid, DelayMS: 60})
		start := time.Now()
		if got := k.query("ORDER_1"); got.state != StatePaid || time.Since(start) < 60*time.Millisecond {
			k.t.Errorf("a delay: %+v after %s", got, time.Since(start))
		}
	})
}

func TestAClosingIsRefusedOrComesTooLate(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		k.pay("ORDER_1")
		k.set("ORDER_1", Script{State: StatePaying, Close: CloseRefused})
		if got := k.close("ORDER_1"); !got.genuine || got.status == 204 || got.state == StateClosed {
			k.t.Errorf("refused: %+v", got)
		}
		if r := k.Order(k.a.Code, "ORDER_1"); r.State != StatePaying {
			k.t.Errorf("after it: %+v", r)
		}
		k.set("ORDER_1", Script{State: StatePaying, Close: ClosePaid})
		if got := k.close("ORDER_1"); !got.genuine || got.status == 204 || got.state == StateClosed {
			k.t.Errorf("paid meanwhile: %+v", got)
		}
		if got := k.query("ORDER_1"); got.state != StatePaid || k.Moved("ORDER_1") != 1 {
			k.t.Errorf("after it: %+v", got)
		}
	})
}

func TestAScriptThatFailedRefusesTheStart(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		k.set("ORDER_1", Script{State: StateFailed})
		if got := k.pay("ORDER_1"); !got.genuine || got.value != "" {
			k.t.Errorf("answered %+v", got)
		}
	})
}

// inbox keeps callbacks.
type inbox struct {
	mu  sync.Mutex
	got []*supplier.Request
	url string
}

func newInbox(t *testing.T) *inbox {
	b := &inbox{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got = append(b.got, &supplier.Request{
			Method: r.Method, Path: r.URL.Path, RawQuery: r.URL.RawQuery, Header: r.Header, Body: body,
			RemoteAddr: netip.MustParseAddr("127.0.0.1"), ReceivedAt: time.Now(),
		})
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

func (b *inbox) parse(t *testing.T, a supplier.Adapter, i int) supplier.Callback {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	got, err := a.Parse(b.got[i], &supplier.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCallbacksAreTakenByTheAdapters(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		b, a := newInbox(k.t), adapter(k.t, k.a)
		k.options.Callbacks = b.url + "/callback"
		k.do(ask{op: opPay, ref: "ORDER_1", notifyURL: b.url + "/callback/" + k.a.Code})
		k.set("ORDER_1", Script{State: StatePaid, Callback: CallbackTwice})
		waittest.Until(k.t, "two callbacks", func() bool { return b.count() == 2 && len(k.Order(k.a.Code, "ORDER_1").Callbacks) == 2 })
		answered := k.query("ORDER_1")
		got := b.parse(k.t, a, 0)
		if got.OrderRef != "ORDER_1" || got.Amount != 1999 || got.Currency != k.a.Currency || got.Status != supplier.Paid ||
			got.TradeNo != answered.tradeNo {
			k.t.Errorf("read %+v, the query returned %+v", got, answered)
		}
		if again := b.parse(k.t, a, 1); again.EventKey != got.EventKey {
			k.t.Errorf("the repeat is another event: %q and %q", got.EventKey, again.EventKey)
		}
		for name, want := range a.Identity() {
			if want != "" && got.Identity[name] != want {
				k.t.Errorf("identity %s is %q, want %q", name, got.Identity[name], want)
			}
		}
		if sent := k.Order(k.a.Code, "ORDER_1").Callbacks[0]; sent.Status != 200 || sent.URL != b.url+"/callback/"+k.a.Code {
			k.t.Errorf("sent %+v", sent)
		}
		k.pay("ORDER_2")
		k.set("ORDER_2", Script{State: StateClosed, Callback: CallbackNow})
		if k.a.Kind == "wechatpay" || k.a.Kind == "stripe" { // these starts named an address of their own, or none
			k.set("ORDER_3", Script{State: StateClosed, Callback: CallbackNow, Amount: 1})
		}
		waittest.Until(k.t, "the callback of a closing", func() bool { return b.count() >= 3 })
		if got := b.parse(k.t, a, 2); got.Status != supplier.Closed {
			k.t.Errorf("read %+v", got)
		}
	})
}

func TestACallbackComesBeforeTheAnswerOrLate(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		b, a := newInbox(k.t), adapter(k.t, k.a)
		k.options.Callbacks = b.url
		k.set("ORDER_1", Script{State: StatePaid, Amount: 1999, Callback: CallbackBeforeAnswer})
		if n := b.count(); n != 0 {
			k.t.Fatalf("%d callbacks before the start", n)
		}
		if got := k.do(ask{op: opPay, ref: "ORDER_1", notifyURL: b.url}); got.value == "" || b.count() != 1 {
			k.t.Errorf("%+v, %d callbacks", got, b.count())
		}
		if got := b.parse(k.t, a, 0); got.Status != supplier.Paid || got.OrderRef != "ORDER_1" {
			k.t.Errorf("read %+v", got)
		}
		start := time.Now()
		k.set("ORDER_2", Script{State: StatePaid, Amount: 1999, Callback: "late_80"})
		waittest.Until(k.t, "the late callback", func() bool { return b.count() == 2 })
		if time.Since(start) < 80*time.Millisecond {
			k.t.Errorf("it arrived after %s", time.Since(start))
		}
	})
}

// A reference that is set to call back before any address was given does so once its start
// gives one.
func TestACallbackWaitsForItsAddress(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	k.a = k.of("alipay")
	b := newInbox(t)
	k.set("ORDER_1", Script{State: StatePaid, Amount: 1999, Callback: CallbackNow})
	k.do(ask{op: opPay, ref: "ORDER_1", notifyURL: b.url})
	waittest.Until(t, "the callback", func() bool { return b.count() == 1 })
}

func TestCallbacksGoToThisMachineOnly(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	k.a = k.of("alipay")
	k.do(ask{op: opPay, ref: "ORDER_1", notifyURL: "http://192.0.2.1/callback/x"})
	k.set("ORDER_1", Script{State: StatePaid, Callback: CallbackNow})
	waittest.Until(t, "the refusal", func() bool { return len(k.Order("sim-ali", "ORDER_1").Callbacks) == 1 })
	if sent := k.Order("sim-ali", "ORDER_1").Callbacks[0]; sent.Status != 0 || !strings.Contains(sent.Error, "not a loopback address") {
		t.Errorf("%+v", sent)
	}
}

func TestPaymentsArePaidByThemselves(t *testing.T) {
	t.Parallel()
	b := newInbox(t)
	refs := make([]string, 60)
	for i := range refs {
		refs[i] = fmt.Sprintf("ORDER_%d", i)
	}
	lots := func(seed uint64) string {
		k := newKit(t, Options{Seed: seed, Paid: 50, SilentEvery: 4, Callbacks: b.url})
		k.a = k.of("stripe")
		for _, ref := range refs {
			k.pay(ref)
		}
		var got string
		calm := 0 // rounds without a change
		waittest.Until(t, "the payments", func() bool {
			now := ""
			for _, ref := range refs {
				switch r := k.Order("sim-st", ref); {
				case r.State != StatePaid:
					now += "."
				case len(r.Callbacks) == 0:
					now += "s"
				default:
					now += "c"
				}
			}
			if calm++; now != got {
				calm, got = 0, now
			}
			return calm == 50
		})
		if called, silent, unpaid := strings.Count(got, "c"), strings.Count(got, "s"), strings.Count(got, "."); called < 10 || silent < 2 ||
			silent > 20 || unpaid < 10 {
			t.Errorf("seed %d: %s", seed, got)
		}
		return got
	}
	if one, two, three := lots(1), lots(1), lots(2); one != two || one == three {
		t.Errorf("seed 1: %s and %s, seed 2: %s", one, two, three)
	}
}

func TestTheSameSeedGivesTheSameNumbers(t *testing.T) {
	t.Parallel()
	say := func(seed uint64) string {
		text := ""
		k := newKit(t, Options{Seed: seed})
		for _, kind := range []string{"wechatpay", "alipay", "stripe", "sortedparams"} {
			k.a = k.of(kind)
			text += k.pay("ORDER_1").value + " " + k.set("ORDER_1", Script{State: StatePaid}).TradeNo + "\n"
		}
		return text
	}
	if one, two, three := say(1), say(1), say(2); one != two || one == three {
		t.Errorf("%s\n%s\n%s", one, two, three)
	}
}

func TestTheDeclarationNamesEverySupplier(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{Codes: map[string]string{"stripe": "st-main"}})
	text, err := k.Declaration("http://127.0.0.1:9090")
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Suppliers []struct {
			Code, Kind string
			Config     map[string]any
		}
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	wants := map[string][]string{
		"sim-wx": {"merchant_serial", "merchant_private_key", "base_url"}, "sim-ali": {"app_private_key", "gateway_url"},
		"st-main": {"api_key", "base_url"}, "sim-till": {
			"query_url", "close_url", "pay_url", "pay_kind", "pay_value_field",
			"answer_format",
		},
	}
	for _, s := range read.Suppliers {
		for _, field := range wants[s.Code] {
			if s.Config[field] == nil {
				t.Errorf("%s names no %s", s.Code, field)
			}
		}
		delete(wants, s.Code)
	}
	if len(wants) > 0 {
		t.Errorf("missing: %v", wants)
	}
	if _, err := New(Options{Codes: map[string]string{"paypal": "x"}}); err == nil {
		t.Error("a kind that is not simulated is accepted")
	}
}

// ctl calls the control API.
func ctl(k *kit, method, path, body string) (status int, answer map[string]any) {
	k.t.Helper()
	resp, err := k.http.Do(k.new(method, path, []byte(body)))
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		k.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func TestTheControlAPI(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	k.a = k.of("wechatpay")
	for _, c := range []struct {
		body   string
		status int
		field  string
	}{
		{
			`{"state":"paid","amount":1999,"trade_no":"T-1","callback":"none","delay_ms":0,"lose_answers":1,"answer":"ok","close":"ok"}`, 200,
			"",
		},
		{`{"state":"paid","amount":1999,"callback":"late_ms"}`, 200, ""},
		{`{"state":"paid"}`, 200, ""}, // the amount is known by now
		{`{"state":"gone"}`, 422, "state"},
		{`{"state":"paid","callback":"later"}`, 422, "callback"},
		{`{"state":"paid","callback":"late_x"}`, 422, "callback"},
		{`{"state":"paid","answer":"404"}`, 422, "answer"},
		{`{"state":"paid","close":"no"}`, 422, "close"},
		{`{"state":"paid","delay_ms":-1}`, 422, "delay_ms"},
		{`{"state":"paid","amount":-1}`, 422, "amount"},
		{`{"state":"paid","lose_answers":-1}`, 422, "lose_answers"},
		{`{"state":"paid","colour":"red"}`, 400, ""},
	} {
		status, answer := ctl(k, http.MethodPut, "/_sim/sim-wx/orders/ORDER_1", c.body)
		wrong, _ := answer["error"].(map[string]any)
		if status != c.status || c.field != "" && wrong["field"] != c.field {
			t.Errorf("%s: %d %v", c.body, status, answer)
		}
		if status == 200 && (answer["money_moved"] != 1.0 || answer["trade_no"] != "T-1" || answer["amount"] != 1999.0) {
			t.Errorf("%s: %v", c.body, answer)
		}
	}
	if status, answer := ctl(k, http.MethodPut, "/_sim/sim-wx/orders/ORDER_9", `{"state":"paid"}`); status != 422 {
		t.Errorf("paid without an amount: %d %v", status, answer)
	}
	if status, _ := ctl(k, http.MethodPut, "/_sim/nobody/orders/ORDER_1", `{"state":"paid"}`); status != 404 {
		t.Errorf("no such supplier: %d", status)
	}
	if status, answer := ctl(k, http.MethodGet, "/_sim/sim-wx/orders/ORDER_5", ""); status != 200 || answer["state"] != "not_found" ||
		answer["money_moved"] != 0.0 {
		t.Errorf("never named: %d %v", status, answer)
	}
	for _, path := range []string{"/_sim/sim-wx/payouts/P-1"} {
		if status, _ := ctl(k, http.MethodPut, path, `{"state":"success"}`); status != http.StatusNotImplemented {
			t.Errorf("%s: %d", path, status)
		}
	}
	k.query("ORDER_1")
	k.query("ORDER_2")
	k.query("ORDER_1")
	status, answer := ctl(k, http.MethodGet, "/_sim/calls?ref=ORDER_1&limit=1", "")
	items := answer["items"].([]any)
	moved := answer["money_moved"].(map[string]any)
	if status != 200 || len(items) != 1 || answer["next"] == nil || moved["ORDER_1"] != 1.0 {
		t.Fatalf("calls: %d %v", status, answer)
	}
	_, answer = ctl(k, http.MethodGet, "/_sim/calls?ref=ORDER_1&cursor="+url.QueryEscape(answer["next"].(string)), "")
	items = answer["items"].([]any)
	if len(items) != 1 || answer["next"] != nil {
		t.Fatalf("the second page: %v", answer)
	}
	one := items[0].(map[string]any)
	for name, want := range map[string]any{
		"op": "query", "ref": "ORDER_1", "number": "ORDER_1", "repeated": true, "supplier": "sim-wx",
		"money_moved": 1.0, "body": "/v3/pay/transactions/out-trade-no/ORDER_1?mchid=1900000001",
	} {
		if one[name] != want {
			t.Errorf("%s is %v, want %v", name, one[name], want)
		}
	}
}

func TestReferencesAndCallsAreBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	k.a = k.of("sortedparams")
	k.mu.Lock()
	for i := range MaxReferences {
		k.orders[orderKey{"x", strings.Repeat("x", i%7) + time.Duration(i).String()}] = &order{}
	}
	for len(k.orders) < MaxReferences {
		k.orders[orderKey{"y", time.Duration(len(k.orders)).String()}] = &order{}
	}
	k.mu.Unlock()
	if got := k.pay("ORDER_1"); got.status != http.StatusServiceUnavailable {
		t.Errorf("one too many: %+v", got)
	}
	if _, err := k.Set(k.a.Code, "ORDER_1", Script{State: StateUnpaid}); !errors.Is(err, ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	k.rate.SetBurst(2)
	k.rate.SetLimit(0)
	k.rate.AllowN(time.Now(), k.rate.Burst())
	if got := k.query("ORDER_1"); got.status != http.StatusTooManyRequests {
		t.Errorf("too fast: %+v", got)
	}
}
