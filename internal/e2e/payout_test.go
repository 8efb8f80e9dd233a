package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// payoutPoints are the failpoints between the request for a payout and its stored result.
var payoutPoints = []string{"payout_debiting", "payout_debited", "payout_submitted", "payout_called", "payout_settling", "payout_settled"}

// payoutKills is refundKills for payouts.
func payoutKills() int {
	if full() {
		return 100 * len(payoutPoints)
	}
	return len(payoutPoints)
}

// payoutSuppliers are the simulated suppliers that can make payouts.
var payoutSuppliers = []string{"sim-ali", "sim-till"}

const (
	payoutKey = "sk_pay_0123456789abcdef0123456789"
	payoutsTo = "/api/v1/payouts"
)

// payoutWorld is an installation whose merchant m1 has money, a key for payouts and an account.
type payoutWorld struct {
	*supplierWorld
	maker, checker string // personal tokens
}

// payFrom declares what payouts need: two thousand yuan, answers that are believed after a second,
// and payouts up to 10 yuan without approval.
func (w *world) payFrom() *payoutWorld {
	w.t.Helper()
	p := &payoutWorld{supplierWorld: w.simulate()}
	declared, err := os.ReadFile(filepath.Join(w.folder, "simulate.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	p.apply(regexp.MustCompile(`(?m)^( *)- code: (sim-\w+)$`).ReplaceAllString(string(declared),
		"$1- payout_query_after: 1s\n$1  payout_repeat: true\n$1  code: $2"))
	p.apply(`
merchants:
  - code: m1
    payout_key: ` + payoutKey + `
    payout_ips: [127.0.0.0/8]
    payout_fees: [{ supplier: "*", fixed: 10 }]
    limits: [{ currency: CNY, payout_each: 5000, payout_day: 1000000, payout_auto: 1000 }]
payout_accounts:
  - { merchant: m1, code: main, kind: bank_card, holder: Galaxy Mall, number: "6222000011114711", bank: ICBC }
  - { merchant: m1, code: ali, kind: alipay, holder: Galaxy Mall, number: galaxy@pay.example }
  - { merchant: m1, code: old, kind: bank_card, holder: Galaxy Mall, number: "6222000011110815", bank: ICBC, enabled: false }
accounts:
  - { merchant: m1, currency: CNY, balance: 200000 }
`)
	p.maker, p.checker = p.personal("mo.maker", "finance"), p.personal("chen.checker", "lead")
	return p
}

// eachPayoutWorld runs a test on both engines with a running server.
func eachPayoutWorld(t *testing.T, test func(t *testing.T, w *payoutWorld)) {
	each(t, supplierOptions(), func(t *testing.T, w *world) {
		p := w.payFrom()
		w.start("")
		test(t, p)
	})
}

func payoutOf(out, supplier string, amount int) string {
	account := map[string]string{"sim-ali": "ali"}[supplier]
	if account == "" {
		account = "main"
	}
	return fmt.Sprintf(`{"out_payout_no":%q,"amount":%d,"currency":"CNY","supplier":%q,"account":{"code":%q}}`, out, amount, supplier,
		account)
}

// requestPayout requests a payout.
func (w *payoutWorld) requestPayout(out, supplier string, amount int) answer {
	w.t.Helper()
	a := w.request(http.MethodPost, payoutsTo, payoutKey, payoutOf(out, supplier, amount))
	if a.status != http.StatusCreated {
		w.t.Fatalf("%s: %d %s", out, a.status, a.body)
	}
	return a
}

// script tells the simulator what becomes of a payout.
func (w *payoutWorld) script(supplier, no string, state map[string]any) {
	w.t.Helper()
	raw, _ := json.Marshal(state)
	req, _ := http.NewRequest(http.MethodPut, "http://"+w.simulator+"/_sim/"+supplier+"/payouts/"+no, bytes.NewReader(raw))
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		w.t.Fatalf("PUT %s of %s: %s", raw, no, resp.Status)
	}
}

// approved has two people approve a waiting payout, whose script is set before its call.
func (w *payoutWorld) approved(out, supplier string, script map[string]any) string {
	w.t.Helper()
	a := w.requestPayout(out, supplier, 2000)
	no := a.json("payout_no")
	if a.json("status") != "created" {
		w.t.Fatalf("%s: %s", out, a.body)
	}
	w.script(supplier, no, script)
	w.decide("payout", no)
	return no
}

// decide approves the open proposal about a payout.
func (w *payoutWorld) decide(kind, no string) {
	w.t.Helper()
	list := w.request(http.MethodGet, approvalsPath+"?state=waiting&kind="+kind, w.checker, "")
	if list.json("items", "0", "object_id") != no {
		w.t.Fatalf("waiting: %s", list.body)
	}
	done := w.request(http.MethodPost, approvalsPath+"/"+list.json("items", "0", "id")+"/approve", w.checker,
		fmt.Sprintf(`{"hash":%q,"reason":"as the statement shows"}`, list.json("items", "0", "hash")))
	if done.status != http.StatusOK || done.json("state") != "done" {
		w.t.Fatalf("approve %s: %d %s", no, done.status, done.body)
	}
}

// ends waits until a payout has a status, and checks its steps and how often its money moved.
func (w *payoutWorld) ends(supplier, no, status, steps, moved string) answer {
	w.t.Helper()
	var last answer
	// The waits between queries are fixed: 10 s, 30 s, 1 m. A payout that was recorded and never
	// sent is sent after 10 s.
	w.within(3*time.Minute, "payout "+no+" of "+supplier+" is "+status, func() bool {
		last = w.request(http.MethodGet, payoutsTo+"/"+no, apiKey, "")
		return last.json("status") == status
	})
	if is := last.json("debit") + " " + last.json("credit") + " " + last.json("reversal"); is != steps {
		w.t.Errorf("%s: steps %s, want %s", no, is, steps)
	}
	if m := w.movedOf(supplier, "payouts", no); m != moved {
		w.t.Errorf("%s: the money of %s moved %s times, want %s", supplier, no, m, moved)
	}
	return last
}

// wantNotified waits for the one notification of a payout.
func (w *payoutWorld) wantNotified(no, kind string) {
	w.t.Helper()
	w.within(20*time.Second, "the merchant is notified of "+no, func() bool {
		n := 0
		for _, r := range w.merchant.Requests() {
			a := answer{body: string(r.Body)}
			if a.json("type") == kind && a.json("data", "payout_no") == no {
				n++
			}
		}
		return n == 1
	})
}

// available is the merchant's balance.
func (w *payoutWorld) available() string {
	w.t.Helper()
	return w.request(http.MethodGet, "/api/v1/balance", apiKey, "").json("items", "0", "available")
}

// Both kinds of supplier make a payout: at once, with a lost answer, and not at all. One comes back
// after it had arrived. The money moves once or not at all, and the balance follows.
func TestPayoutsArriveOnceOrComeBack(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		for _, supplier := range payoutSuppliers {
			before := w.available()
			first := w.requestPayout("ok-"+supplier, supplier, 500) // needs no approval
			no := first.json("payout_no")
			masked := map[string]string{"sim-ali": "g•••@pay.example", "sim-till": "•••• 4711"}[supplier]
			if first.json("fee_amount") != "10" || first.json("account", "number") != masked {
				t.Errorf("%s: %s", supplier, first.body)
			}
			if again := w.request(http.MethodPost, payoutsTo, payoutKey,
				payoutOf("ok-"+supplier, supplier, 500)); again.status != http.StatusOK || again.json("payout_no") != no {
				t.Errorf("%s, the same again: %d %s", supplier, again.status, again.body)
			}
			if other := w.request(http.MethodPost, payoutsTo, payoutKey,
				payoutOf("ok-"+supplier, supplier, 501)); other.status != http.StatusConflict ||
				other.json("error", "code") != "idempotency_conflict" {
				t.Errorf("%s, other content: %d %s", supplier, other.status, other.body)
			}
			w.ends(supplier, no, "succeeded", "success success ", "1")
			w.wantNotified(no, "payout.succeeded")
			if late := w.request(http.MethodPost, payoutsTo+"/"+no+"/cancel", payoutKey, ""); late.status != http.StatusConflict ||
				late.json("error", "code") != "payout_started" {
				t.Errorf("%s, cancel: %d %s", supplier, late.status, late.body)
			}
			if found := w.request(http.MethodGet, payoutsTo+"?out_payout_no=ok-"+supplier, payoutKey, ""); found.json("payout_no") != no {
				t.Errorf("%s, by the merchant's number: %s", supplier, found.body)
			}

			lost := w.approved("lost-"+supplier, supplier, map[string]any{"state": "success", "lose_answers": 1})
			w.ends(supplier, lost, "succeeded", "success success ", "1")
			paid := w.available()

			failed := w.approved("failed-"+supplier, supplier, map[string]any{"state": "failed"})
			over := w.ends(supplier, failed, "reversed", "success failed success", "0")
			w.wantNotified(failed, "payout.failed")
			if over.json("failure") == "" || w.available() != paid {
				t.Errorf("%s: %s, the balance is %s, was %s", supplier, over.body, w.available(), paid)
			}

			w.script(supplier, no, map[string]any{"state": "returned", "callback": "now"})
			w.ends(supplier, no, "reversed", "success returned success", "1")
			w.wantNotified(no, "payout.returned")
			t.Logf("%s: %s before, %s after", supplier, before, w.available())
		}
		w.books()
	})
}

// What a merchant may not draw is refused before anything is booked.
func TestPayoutsAreRefusedByTheirRules(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		const free = `{"kind":"bank_card","holder":"Galaxy Mall","number":%q,"bank":"ICBC"}`
		body := func(change ...string) string {
			return strings.NewReplacer(change...).Replace(payoutOf("refused", "sim-till", 500))
		}
		account := func(is string) string { return body(`{"code":"main"}`, is) }
		for what, c := range map[string]struct {
			body   string
			status int
			code   string
			field  string
		}{
			"each":             {body("500", "5001"), 409, "limit_exceeded", "payout_each"},
			"unknown supplier": {body("sim-till", "nobody"), 422, "invalid_field", "supplier"},
			"unable supplier":  {body("sim-till", "sim-wx"), 422, "invalid_field", "supplier"},
			"currency":         {body("CNY", "XXX"), 422, "invalid_field", "currency"},
			"no such account":  {account(`{"code":"none"}`), 422, "invalid_field", "account"},
			"disabled account": {account(`{"code":"old"}`), 422, "invalid_field", "account"},
			"free, other":      {account(fmt.Sprintf(free, "6222000011119999")), 422, "invalid_field", "account"},
			"free, disabled":   {account(fmt.Sprintf(free, "6222000011110815")), 422, "invalid_field", "account"},
			"free, other owner": {
				account(strings.Replace(fmt.Sprintf(free, "6222000011114711"), "Mall", "Hall", 1)), 422, "invalid_field",
				"account",
			},
			"bad notify_url": {body(`"account"`, `"notify_url":"ftp://x.example","account"`), 422, "invalid_field", "notify_url"},
		} {
			a := w.request(http.MethodPost, payoutsTo, payoutKey, c.body)
			if a.status != c.status || a.json("error", "code") != c.code || a.json("error", "field") != c.field ||
				strings.Contains(a.body, "62220000") {
				t.Errorf("%s: %d %s, want %d %s %s", what, a.status, a.body, c.status, c.code, c.field)
			}
		}
		if a := w.request(http.MethodPost, payoutsTo, apiKey, payoutOf("refused", "sim-till", 500)); a.status != 403 ||
			a.json("error", "code") != "payout_key_needed" {
			t.Errorf("with the API key: %d %s", a.status, a.body)
		}
		// An account that is spelt out and equals an allowed one.
		ok := w.request(http.MethodPost, payoutsTo, payoutKey, account(fmt.Sprintf(free, "6222000011114711")))
		if ok.status != http.StatusCreated || ok.json("account", "code") != "main" || ok.json("account", "number") != "•••• 4711" {
			t.Errorf("an allowed account: %d %s", ok.status, ok.body)
		}
		w.ends("sim-till", ok.json("payout_no"), "succeeded", "success success ", "1")
		// One that waits can be cancelled; its money was never taken.
		before := w.available()
		waiting := w.requestPayout("waits", "sim-till", 2000)
		if c := w.request(http.MethodPost, payoutsTo+"/"+waiting.json("payout_no")+"/cancel", payoutKey, ""); c.status != http.StatusOK ||
			c.json("status") != "cancelled" || w.available() != before {
			t.Errorf("cancel: %d %s", c.status, c.body)
		}
		// A changed account does not move what was requested before, and no key of it is shown.
		for _, line := range strings.Split(w.run("config"), "\n") {
			if strings.Contains(line, payoutKey) {
				t.Errorf("the key is shown: %s", line)
			}
		}
		w.books()
	})
}

// Refunds and payouts that are requested at once spend each minor unit of a balance once.
func TestRefundsAndPayoutsShareABalance(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		rounds := 2
		if full() {
			rounds = 50
		}
		w.shortenQueryAfter()
		for round := range rounds {
			// A merchant of its own, with the money of one order and 30.00.
			code, key, drawing := fmt.Sprintf("race-%d", round), fmt.Sprintf("sk_live_race_%020d", round),
				fmt.Sprintf("sk_pay_race_%020d", round)
			w.apply("merchants:\n  - { code: " + code + ", api_key: " + key + ", payout_key: " + drawing +
				", signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=," +
				" limits: [{ currency: CNY, payout_auto: 1000 }], payout_fees: [{ fixed: 10 }] }\n" +
				"payout_accounts:\n  - { merchant: " + code +
				", code: main, kind: bank_card, holder: Race, number: \"6222000011114711\", bank: ICBC }\n" +
				"accounts:\n  - { merchant: " + code + ", currency: CNY, balance: 3000 }\n")
			made := w.request(http.MethodPost, "/api/v1/orders", key,
				`{"out_trade_no":"o-1","amount":1999,"currency":"CNY","supplier":"sim-till","subject":"race"}`)
			no := made.json("order_no")
			w.request(http.MethodPost, "/api/v1/orders/"+no+"/pay", key, `{}`)
			w.set("sim-till", no, map[string]any{"state": "paid", "callback": "now"})
			w.within(20*time.Second, "the order is paid", func() bool {
				return w.request(http.MethodGet, "/api/v1/orders/"+no, key, "").json("status") == "paid"
			})
			var wg sync.WaitGroup
			var mu sync.Mutex
			left, refused := int64(4999), 0
			for i := range 20 {
				path, by, body, takes := payoutsTo, drawing, payoutOf(fmt.Sprintf("p-%d", i), "sim-till", 800), int64(810)
				if i%2 == 1 {
					path, by, body, takes = "/api/v1/orders/"+no+"/refunds", key, refundOf(fmt.Sprintf("r-%d", i), 199), 199
				}
				wg.Go(func() {
					a, err := w.whileBusy(path, by, body)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil && a.status == http.StatusCreated:
						left -= takes
					case err == nil && a.status == http.StatusConflict && a.json("error", "code") == "insufficient_balance":
						refused++
					default:
						t.Errorf("%s: %v %d %s", path, err, a.status, a.body)
					}
				})
			}
			wg.Wait()
			is := w.request(http.MethodGet, "/api/v1/balance", key, "").json("items", "0", "available")
			if is != fmt.Sprint(left) || left < 0 || left >= 810 || refused == 0 {
				t.Errorf("round %d: %s is left, counted %d; %d were refused", round, is, left, refused)
			}
		}
		w.books()
	})
}

// Two payouts of a merchant without any account row cannot both use its overdraft.
func TestTwoPayoutsWithoutAnAccountUseTheOverdraftOnce(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		for round := range 5 {
			code, drawing := fmt.Sprintf("bare-%d", round), fmt.Sprintf("sk_pay_bare_%020d", round)
			w.apply("merchants:\n  - { code: " + code + ", payout_key: " + drawing +
				", signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=, limits: [{ currency: CNY, payout_auto: 1000, overdraft: 1000 }] }\n" +
				"payout_accounts:\n  - { merchant: " + code +
				", code: main, kind: bank_card, holder: Bare, number: \"6222000011114711\", bank: ICBC }\n")
			var wg sync.WaitGroup
			answers := make([]answer, 2)
			for i := range answers {
				wg.Go(func() {
					answers[i], _ = w.whileBusy(payoutsTo, drawing, payoutOf(fmt.Sprintf("p-%d", i), "sim-till", 900))
				})
			}
			wg.Wait()
			if answers[0].status+answers[1].status != http.StatusCreated+http.StatusConflict {
				t.Errorf("round %d: %d %s, %d %s", round, answers[0].status, answers[0].body, answers[1].status, answers[1].body)
			}
		}
		w.books()
	})
}

// The program is killed around each step of payouts: each one moves its money once and ends.
func TestKilledAtAnyPointOfAPayoutItArrivesOnce(t *testing.T) {
	o := supplierOptions()
	o.ownRedis = true
	each(t, o, func(t *testing.T, w *world) {
		a := w.payFrom()
		from := seed(t)
		rng := rand.New(rand.NewPCG(from, 1))
		first := rng.IntN(len(payoutPoints))
		for round := range payoutKills() / 2 { // the other half on the other engine
			point, supplier := payoutPoints[(first+round)%len(payoutPoints)], payoutSuppliers[rng.IntN(len(payoutSuppliers))]
			w.start(point)
			create := func() (answer, error) {
				return w.do(http.MethodPost, payoutsTo, payoutKey, nil, payoutOf(fmt.Sprintf("p-%d", round), supplier,
					600)) // the balance suffices for all
			}
			_, _ = create() // its answer may be lost
			w.died()
			if round%2 == 1 {
				w.redis.Flush()
			}
			w.start("")
			restarted := time.Now()
			tr := newTraffic(w)
			got, ok := tr.insist("payout", create, func(x answer) bool { return x.status == http.StatusOK || x.status == http.StatusCreated })
			if !ok {
				t.Fatalf("killed at %s: %v", point, tr.unexpected)
			}
			a.ends(supplier, got.json("payout_no"), "succeeded", "success success ", "1")
			t.Logf("killed at %s of %s: paid out %s after the restart", point, supplier, time.Since(restarted).Round(time.Millisecond))
			w.books()
			w.terminate()
		}
	})
}
