package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/report"

	"go.uber.org/goleak"
)

const (
	moodyMerchants = 8
	moodyOrders    = 240 // 30 each
	moodyTimeout   = 300 * time.Millisecond
	moodyTime      = 2 * time.Second // before one node dies, and after it
)

// mood is how a merchant behaves for a while.
type mood int

const (
	well mood = iota
	failing
	silent
	sluggish
	moods
)

// moody answers for merchants whose moods change. It counts by message what it
// took, on which node, and calls of one message that overlap.
type moody struct {
	mu       sync.Mutex
	of       map[int64]mood
	running  map[string]int
	overlaps int
	taken    map[string]map[string]int // by message and node
}

func (w *moody) shake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[1+rand.Int64N(moodyMerchants)] = mood(rand.IntN(int(moods)))
}

// moodyFor changes moods for a while, and does something beside it.
func (w *moody) moodyFor(d time.Duration, beside func()) {
	next, end := time.NewTicker(25*time.Millisecond), time.After(d)
	defer next.Stop()
	for {
		w.shake()
		beside()
		select {
		case <-end:
			return
		case <-next.C:
		}
	}
}

func (w *moody) allHealthy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.of)
}

func (w *moody) enter(m notify.Message) mood {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[m.ID]++; w.running[m.ID] > 1 {
		w.overlaps++
	}
	return w.of[m.To.ID]
}

func (w *moody) leave(m notify.Message, node string, r notify.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[m.ID]--
	if r.Class != notify.OK {
		return
	}
	if w.taken[m.ID] == nil {
		w.taken[m.ID] = map[string]int{}
	}
	w.taken[m.ID][node]++
}

// at is the channel of one node.
func (w *moody) at(node string) notify.Channel { return moodyChannel{w, node} }

type moodyChannel struct {
	*moody
	node string
}

func (c moodyChannel) Send(ctx context.Context, m notify.Message) (r notify.Result) {
	start := time.Now()
	defer func() { r.Took = time.Since(start); c.leave(m, c.node, r) }()
	wait := time.Duration(rand.IntN(5)) * time.Millisecond
	r = notify.Result{Class: notify.OK, Status: 200}
	switch c.enter(m) {
	case failing:
		r = notify.Result{Class: notify.BadStatus, Status: 500, Error: "500"}
	case silent:
		wait, r = m.Timeout, notify.Result{Class: notify.Timeout, Error: "no answer"}
	case sluggish:
		wait = time.Duration(rand.Int64N(int64(m.Timeout)))
	}
	select {
	case <-time.After(wait):
		return r
	case <-ctx.Done():
		return notify.Result{Class: notify.Cancelled}
	}
}

// chaos is one run: merchants whose moods change, and two nodes of which one dies.
type chaos struct {
	*paymenttest.Fixture
	world  *moody
	book   *merchant.Directory
	policy breaker.Policy
}

func newChaos(t *testing.T, d *db.DB) (*chaos, []queue.Nudge) {
	waits := make([]int64, 50)
	for i := range waits {
		waits[i] = 20 + 10*int64(i)
	}
	f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
	nudges := paid(t, f, moodyOrders)
	var merchants []*merchant.Merchant
	for i := range int64(moodyMerchants) {
		m := *f.M1
		m.ID, m.Code = i+1, fmt.Sprintf("moody-%d", i+1)
		m.Settings.TimeoutMS, m.Settings.WaitsMS = moodyTimeout.Milliseconds(), waits
		switch i {
		case 0:
			m.Settings.WaitsMS = waits[:1] // gives up early, and goes to the desk
		case 1, 2:
			m.Settings.RatePerSecond = 60
		}
		m.Settings.URLs = []string{"http://" + m.Code + ".test/n"}
		m.Endpoints = m.Settings.Addresses()
		merchants = append(merchants, &m)
	}
	for i := range nudges {
		nudges[i].Recipient = int64(i%moodyMerchants + 1)
		// They come in over all of the bad time.
		nudges[i].At = d.Now() + rand.Int64N((2 * moodyTime).Microseconds())
		if _, err := d.NewRaw("UPDATE deliveries SET recipient_id = ?, next_at = ?, url = '' WHERE id = ?", nudges[i].Recipient,
			nudges[i].At, nudges[i].Delivery).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The orders have other merchants now than their figures say.
	moved, err := report.Recount(t.Context(), d)
	if err == nil {
		err = report.Repair(t.Context(), d, moved)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &chaos{
		Fixture: f, book: merchant.NewDirectory(merchants, nil),
		world:  &moody{of: map[int64]mood{}, running: map[string]int{}, taken: map[string]map[string]int{}},
		policy: breaker.Policy{Failures: 3, Open: 200 * time.Millisecond, Window: time.Minute, RatePercent: 60, MinSamples: 10},
	}, nudges
}

// node starts a dispatcher with a database handle of its own; stop ends its tick.
func (c *chaos) node(t *testing.T, name string, d *db.DB, ticks bool) (disp *notify.Dispatcher, stop func()) {
	log := slog.New(slog.DiscardHandler)
	book := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return c.policy })
	disp = notify.NewDispatcher(notify.Options{
		DB: d, Breakers: book, Directory: func() *merchant.Directory { return c.book }, Nudger: c.Nudger, Log: log,
		Channels: map[string]notify.Channel{notify.Webhook: c.world.at(name)}, Concurrency: 24, Timeout: moodyTimeout,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ticks && ctx.Err() == nil {
			_ = book.Refresh(ctx)
			if ms, _, err := notify.DueRecipients(ctx, d, 0, 100); err == nil {
				disp.Pull(ms)
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return disp, func() { cancel(); done.Wait() }
}

// wrong lists what is not as it must be once all is over.
func (c *chaos) wrong(t *testing.T, survivor *notify.Dispatcher, died int64) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	var rows []struct {
		EventID, SubjectID, Attempts int64
		EventType, Status            string
		Desk                         int64
	}
	err := c.DB.NewRaw("SELECT event_id, subject_id, event_type, attempts, status, (SELECT count(*) FROM exceptions AS x WHERE x.order_id = d.subject_id AND x.kind = 'notify_exhausted') AS desk"+
		" FROM deliveries AS d").Scan(t.Context(), &rows)
	if err != nil || len(rows) != moodyOrders {
		t.Fatalf("%d deliveries, %v", len(rows), err)
	}
	c.world.mu.Lock() // an attempt whose node was stopped may still come back
	again := int64(0)
	for _, r := range rows {
		taken, sum := c.world.taken[notify.PublicID(r.SubjectID, r.EventType)], 0
		for node, n := range taken {
			if sum += n; n > 1 {
				say("node %s notified %d times of event %d", node, n, r.EventID)
			}
		}
		switch {
		case r.Status == "delivered" && sum == 0:
			say("event %d is delivered, but nobody took it", r.EventID)
		case r.Status == "exhausted" && (r.Desk != 1 || sum > 0):
			say("event %d is exhausted, %d on the desk, taken %d times", r.EventID, r.Desk, sum)
		case r.Status != "delivered" && r.Status != "exhausted":
			say("event %d is %s after %d attempts", r.EventID, r.Status, r.Attempts)
		}
		again += int64(max(0, sum-1))
	}
	if again > died {
		say("%d events were sent twice, the ends of %d attempts were not written when the node died", again, died)
	}
	if c.world.overlaps > 0 {
		say("%d attempts ran beside another of the same delivery", c.world.overlaps)
	}
	c.world.mu.Unlock()
	// A last look at the rows may be on its way.
	if !waittest.Within(time.Minute, func() bool { return notify.Left(survivor) == "" }) {
		say("the dispatcher holds %s", notify.Left(survivor))
	}
	if wrong, err := report.Recount(t.Context(), c.DB); err != nil || len(wrong) > 0 {
		say("figures: %+v, %v", wrong, err)
	}
	return all
}

// runChaos has merchants change their behaviour at random and one node die with attempts in
// flight, then makes all merchants answer well. It returns what is wrong after that. ticks are
// those of the node that is left.
func runChaos(t *testing.T, options db.Options, ticks bool, patience time.Duration) []string {
	c, nudges := newChaos(t, dbtest.Open(t, options))
	second := dbtest.Open(t, options)
	running := goleak.IgnoreCurrent()
	a, stopA := c.node(t, "a", c.DB, ticks)
	b, stopB := c.node(t, "b", second, true)
	a.Offer(nudges[:2*moodyOrders/3])
	b.Offer(nudges[moodyOrders/3:])
	c.world.moodyFor(moodyTime, func() {
		n := rand.IntN(len(nudges) - 20)
		a.Offer(nudges[n : n+20]) // tasks that come twice are normal
	})
	for range 50 { // with something on its way
		if b.InFlight() > 0 {
			break
		}
		c.world.moodyFor(10*time.Millisecond, func() {})
	}
	stopB()
	_ = second.Close() // nothing it does from here on is written down, but what has begun, such as a claim, commits
	waittest.Until(t, "nothing of the dead node is on its way", func() bool {
		return second.Stats().InUse == 0 && second.Read.Stats().InUse == 0
	})
	died := c.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'sending' AND lease_owner = ?", second.Boot())
	c.world.moodyFor(moodyTime, func() {})
	c.world.allHealthy()
	waittest.Within(patience, func() bool {
		return c.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL") == 0 && a.InFlight() == 0
	})
	stopA()
	wrong := c.wrong(t, a, died)
	if n := c.Count(t, "SELECT count(*) FROM breaker_history WHERE to_state = 'open'"); n < 3 {
		t.Errorf("breakers opened %d times: nothing was tested", n)
	}
	stop(a, time.Second)
	stop(b, time.Second)
	goleak.VerifyNone(t, running, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
	return wrong
}

// Merchants change between well, failing, silent and sluggish, with breakers that open soon,
// rates, tasks given twice and a node that dies with attempts in flight. Once all merchants
// answer well, each order has been notified or is on the desk, and the node that is left holds
// nothing.
func TestMoodyMerchantsAreAllNotifiedInTheEnd(t *testing.T) {
	for engine, options := range map[string]db.Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: dbtest.PostgresURL(t)}} {
		t.Run(engine, func(t *testing.T) {
			if testing.Short() && engine == "sqlite" {
				t.Skip("short: under the race detector on PostgreSQL alone")
			}
			if wrong := runChaos(t, options, true, time.Minute); len(wrong) > 0 {
				t.Errorf("wrong:\n%s", strings.Join(wrong, "\n"))
			}
		})
	}
}

// The check above sees what a node without a tick leaves behind.
func TestWithoutATickChaosLeavesSomethingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the check is the same under the race detector")
	}
	if wrong := runChaos(t, db.Options{Dir: t.TempDir()}, false, time.Second); len(wrong) == 0 {
		t.Error("nothing is wrong without a tick: the check sees nothing")
	}
}
