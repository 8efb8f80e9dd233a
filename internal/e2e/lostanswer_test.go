package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

// stoppedFor is longer than the program waits for a transaction.
const stoppedFor = 11 * time.Second

// storm is an installation whose database loses answers to commits under load.
type storm struct {
	*payoutWorld
	tr      *traffic
	cuts    *dbtest.Cuts
	server  string // URL of the server behind the cuts
	mu      sync.Mutex
	refunds map[string]string // numbers and their suppliers
	payouts map[string]string
	spent   int64 // of the merchant's balance
	// approved counts the payouts that another person approved.
	approved int
}

func newStorm(t *testing.T, from uint64) *storm {
	o := supplierOptions()
	s := &storm{refunds: map[string]string{}, payouts: map[string]string{}, server: dbtest.OwnPostgres(t)}
	o.postgres = true
	o.database, s.cuts = dbtest.CutPostgres(t, s.server, from)
	w := newWorld(t, o)
	s.payoutWorld = w.payFrom()
	s.shortenQueryAfter()
	s.apply("merchants:\n  - { code: m1, limits: [{ currency: CNY, payout_each: 5000, payout_day: 1000000000, payout_auto: 1000 }] }\n")
	s.tr = newTraffic(w)
	return s
}

// begin starts the program; from now on answers are lost.
func (s *storm) begin() {
	s.t.Helper()
	s.start("")
	s.cuts.Every(8)
}

func made(a answer) bool { return a.status == http.StatusCreated || a.status == http.StatusOK }

// paidOrder is an order that its supplier reports as paid when it is queried.
func (s *storm) paidOrder(out, supplier string) (no string, ok bool) {
	if no, ok = s.tr.createAt(out, requestBody{"supplier": supplier}); !ok {
		return "", false
	}
	if _, ok = s.tr.insist("pay", func() (answer, error) {
		return s.do(http.MethodPost, "/api/v1/orders/"+no+"/pay", apiKey, nil, `{}`)
	}, made); !ok {
		return "", false
	}
	s.set(supplier, no, map[string]any{"state": "paid", "callback": "none", "amount": 1999})
	// A claim whose commit lost its answer keeps the order from others until its lease of 30 s ends.
	if ok = waittest.Within(3*time.Minute, func() bool {
		a, err := s.do(http.MethodGet, "/api/v1/orders/"+no, apiKey, nil, "")
		return err == nil && a.json("status") == "paid"
	}); !ok {
		s.tr.addUnexpected("order " + no + " is not paid")
	}
	return no, ok
}

func (s *storm) refund(i int64) {
	out, supplier := fmt.Sprint("r-", i), simulated[i%int64(len(simulated))]
	no, ok := s.paidOrder(out, supplier)
	if !ok {
		return
	}
	a, ok := s.tr.insist("refund", func() (answer, error) {
		return s.do(http.MethodPost, "/api/v1/orders/"+no+"/refunds", apiKey, nil, refundOf("r-"+out, 700))
	}, made)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.refunds[a.json("refund_no")] = supplier
		s.spent += 700
	}
}

// draw requests a payout. Larger ones are approved by another person.
func (s *storm) draw(out string, rng *rand.Rand) {
	supplier, amount := payoutSuppliers[rng.IntN(len(payoutSuppliers))], 500+600*rng.IntN(2)
	a, ok := s.tr.insist("payout", func() (answer, error) {
		return s.do(http.MethodPost, payoutsTo, payoutKey, nil, payoutOf(out, supplier, amount))
	}, made)
	if !ok {
		return
	}
	no := a.json("payout_no")
	s.mu.Lock()
	s.payouts[no] = supplier
	s.spent += int64(amount) + 10
	s.mu.Unlock()
	if amount <= 1000 {
		return
	}
	s.approve(no)
}

// approve is done by the second person.
func (s *storm) approve(no string) {
	var id, hash string
	s.tr.insist("approvals", func() (answer, error) {
		a, err := s.do(http.MethodGet, approvalsPath+"?state=waiting&kind=payout", s.checker, nil, "")
		if id, hash = a.json("items", "0", "id"), a.json("items", "0", "hash"); err == nil && a.json("items", "0", "object_id") != no {
			a.status = http.StatusServiceUnavailable
		}
		return a, err
	}, made)
	if _, ok := s.tr.insist("approval", func() (answer, error) {
		a, err := s.do(http.MethodPost, approvalsPath+"/"+id+"/approve", s.checker, http.Header{"Content-Type": {"application/json"}},
			fmt.Sprintf(`{"hash":%q,"reason":"as the statement shows"}`, hash))
		if a.json("error", "code") == "changed" { // lost a race against its own first request
			a.status = http.StatusServiceUnavailable
		}
		return a, err
	}, func(a answer) bool { return a.status == http.StatusOK && a.json("state") == "done" }); ok {
		s.approved++
	}
}

// lines run f on some lines at once, until the returned function is called.
func lines(n int, f func(i int64)) (stop func()) {
	var wg sync.WaitGroup
	var over atomic.Bool
	var last atomic.Int64
	for range n {
		wg.Go(func() {
			for !over.Load() {
				f(last.Add(1))
			}
		})
	}
	return func() { over.Store(true); wg.Wait() }
}

// settled waits for the end of everything and compares it with what was requested.
func (s *storm) settled() {
	s.t.Helper()
	for _, what := range s.tr.unexpected {
		s.t.Errorf("unexpected answer: %s", what)
	}
	for no := range s.tr.made {
		s.wantOrder(no, time.Minute, map[string]string{"status": "paid", "notify_status": "delivered"})
	}
	ends := func(kind, no, supplier string) {
		// One in thousands loses four answers in a row, and the fifth query is 15 min after the fourth.
		s.within(20*time.Minute, kind+" "+no+" succeeds", func() bool {
			return s.request(http.MethodGet, "/api/v1/"+kind+"/"+no, apiKey, "").json("status") == "succeeded"
		})
		if m := s.movedOf(supplier, kind, no); m != "1" {
			s.t.Errorf("%s: the money of %s moved %s times", supplier, no, m)
		}
	}
	for no, supplier := range s.refunds {
		ends("refunds", no, supplier)
	}
	for no, supplier := range s.payouts {
		ends("payouts", no, supplier)
	}
	if want := strconv.FormatInt(200_000+1999*int64(len(s.tr.made))-s.spent, 10); s.available() != want {
		s.t.Errorf("%s is available, want %s", s.available(), want)
	}
	s.within(10*time.Second, "no money is unnotified", func() bool {
		var n int
		if err := s.own().QueryRow("SELECT count(*) FROM report_unnotified WHERE orders <> 0 OR amount <> 0").Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		return n == 0
	})
	if out, err := s.command("sweep", "--dry-run"); err != nil {
		s.t.Errorf("figures and books: %v\n%s", err, out)
	}
	s.books()
}

// The database commits, or does not, and its answer is lost: everything that was requested
// happens once, and counts once.
func TestLostAnswersOfTheDatabaseChangeNothing(t *testing.T) {
	if !full() {
		t.Skip("on a machine that is busy with other tests it needs minutes: make soak")
	}
	t.Parallel()
	const round = 15 * time.Second
	const rounds = 20
	from := seed(t)
	s := newStorm(t, from)
	s.begin()
	orders := lines(4, func(i int64) { s.tr.buy(fmt.Sprint("o-", i)) })
	refunds := lines(4, s.refund)
	rng := rand.New(rand.NewPCG(from, 4))
	payouts := lines(1, func(i int64) { s.draw(fmt.Sprint("p-", i), rng) })
	for range rounds {
		<-time.After(round / 5)
		resume := dbtest.StopPostgres(s.t, s.server)
		<-time.After(stoppedFor)
		resume()
		<-time.After(round * 4 / 5)
	}
	orders()
	refunds()
	payouts()
	s.cuts.Every(0)
	s.settled()
	if len(s.tr.made) == 0 || len(s.refunds) == 0 || len(s.payouts) == 0 || s.approved == 0 || s.cuts.Made() == 0 {
		t.Error("there was no storm")
	}
	more, ids := 0, map[string]int{}
	for _, r := range s.merchant.Requests() {
		if ids[r.ID]++; ids[r.ID] == 2 {
			more++
		}
	}
	t.Logf("%d orders, %d refunds, %d payouts, %d approvals; %d of %d notifications came more than once; %d commits were cut",
		len(s.tr.made), len(s.refunds), len(s.payouts), s.approved, more, len(ids), s.cuts.Made())
}
