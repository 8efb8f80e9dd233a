package notify_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/verify"
)

// switchboard is an installation of several nodes whose merchant connects to them.
type switchboard struct {
	*paymenttest.Fixture
	t    *testing.T
	m    merchant.Merchant
	here line // of the node on which it is pinged
}

// eachSwitchboard runs a test on both engines. The pinging process is not alone: another
// process has a heartbeat.
func eachSwitchboard(t *testing.T, test func(t *testing.T, s *switchboard)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &switchboard{Fixture: paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"}), t: t}
		s.m = *s.M1
		s.m.Endpoints = []merchant.Endpoint{{Name: "line", Channel: notify.Websocket, URL: "websocket:", Weight: 1}}
		if _, err := d.NewRaw(
			"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (1000, 'x', 'other', 7, ?, ?)", d.Now(),
			d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// node is one that ticks until the test is over.
func (s *switchboard) node(line notify.Channel) {
	book := merchant.NewDirectory([]*merchant.Merchant{&s.m}, nil)
	d := notify.NewDispatcher(notify.Options{
		DB: s.DB, Breakers: breaker.NewCache(s.DB, func(recipient.Recipient) breaker.Policy { return never }),
		Directory: func() *merchant.Directory { return book },
		Channels:  map[string]notify.Channel{notify.Websocket: line}, Nudger: s.Nudger, Concurrency: 10, Timeout: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(testOut{s.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	var ticks sync.WaitGroup
	over := make(chan struct{})
	s.t.Cleanup(func() {
		close(over)
		ticks.Wait()
		stop(d, 5*time.Second)
	})
	ticks.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if err := d.SendPings(context.Background()); err != nil {
				s.t.Error(err)
			}
		}
	})
}

// once does something to the ping that is created, as soon as it is.
func (s *switchboard) once(query string) {
	if !waittest.Within(time.Minute, func() bool {
		res, err := s.DB.NewRaw(query).Exec(context.Background())
		if err != nil {
			s.t.Error(err)
			return false
		}
		n, _ := res.RowsAffected()
		return n == 1
	}) {
		s.t.Error("no ping was created")
	}
}

// ping creates one on a node to which the merchant is not connected. Its request is
// bounded as those of the console are.
func (s *switchboard) ping(ctx context.Context) (notify.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	p := notify.Pinger{DB: s.DB, Channels: map[string]notify.Channel{notify.Websocket: &s.here}}
	return p.Ping(ctx, &s.m, s.m.Endpoint("line"), s.DB.NewID())
}

// wantKept checks that a ping is stored like any other immediate attempt, and nothing besides
// it.
func (s *switchboard) wantKept(a notify.Answer, class notify.Class, status notify.Status) {
	s.t.Helper()
	if a.Attempt.Class != class {
		s.t.Errorf("answered %s %q, want %s", a.Attempt.Class, a.Attempt.Error, class)
	}
	s.Want(s.t, 1, "SELECT count(*) FROM deliveries AS d JOIN "+notify.AllAttempts+" AS a ON a.delivery_id = d.id JOIN "+notify.AllEvents+
		" AS e ON e.id = d.event_id"+
		" WHERE d.event_type = 'ping' AND d.next_at IS NULL AND d.lease_owner = 0 AND d.finished_at IS NOT NULL AND d.attempts = 1 AND d.status = ? AND a.class = ?", status, class)
	s.Want(s.t, 1, "SELECT count(*) FROM deliveries")
	s.Want(s.t, 1, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
	s.Want(s.t, 0, "SELECT count(*) FROM open_pings")
	s.Want(s.t, 0, "SELECT count(*) FROM exceptions")
	if wrong, err := report.Recount(s.t.Context(), s.DB); err != nil || len(wrong) != 0 {
		s.t.Errorf("counters: %+v, %v", wrong, err)
	}
	if r, err := verify.Run(s.t.Context(), s.DB, new(seal.Keyring), nil); err != nil || !r.OK() {
		s.t.Errorf("the books: %+v, %v", r, err)
	}
}

// Of two nodes with connections one sends it, once; the one without does not.
func TestAPingIsSentWhereTheMerchantIsConnected(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		var here, there, without line
		here.connected.Store(true)
		there.connected.Store(true)
		s.node(&here)
		s.node(&there)
		s.node(&without)
		a, err := s.ping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.wantKept(a, notify.OK, notify.Delivered)
		if n := here.asked.Load() + there.asked.Load(); n != 1 || without.asked.Load() != 0 {
			t.Errorf("sent %d times, and %d times without a connection", n, without.asked.Load())
		}
	})
}

// slowLine answers only when nothing waits any more for the ping to be found.
type slowLine struct{ line }

func (l *slowLine) Send(ctx context.Context, m notify.Message) notify.Result {
	select {
	case <-ctx.Done():
		return notify.Result{Class: notify.Cancelled}
	case <-time.After(notify.FindTime + 500*time.Millisecond):
	}
	return notify.Result{Class: notify.Refused, Error: "the merchant answered nack", ResponseBody: []byte("nack"), ResponseHeader: "A: b"}
}

func TestAPingThatWasFoundIsWaitedFor(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		var l slowLine
		l.connected.Store(true)
		s.node(&l)
		a, err := s.ping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.wantKept(a, notify.Refused, notify.Exhausted)
		if string(a.Attempt.ResponseBody) != "nack" || a.Attempt.ResponseHeader != "A: b" {
			t.Errorf("the merchant's words got lost: %+v", a.Attempt)
		}
	})
}

func TestAPingOfWhoIsNowhereConnectedSaysSo(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		var l line
		s.node(&l)
		a, err := s.ping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.wantKept(a, notify.NotConnected, notify.Exhausted)
		if l.asked.Load() != 0 {
			t.Error("a node without the connection claimed it")
		}
	})
}

// A node that is alone has no other node to wait for.
func TestANodeThatIsAloneAnswersAtOnce(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		if _, err := s.DB.NewRaw("DELETE FROM nodes WHERE boot = 7").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, err := s.ping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.wantKept(a, notify.NotConnected, notify.Exhausted)
		if s.here.asked.Load() != 1 {
			t.Error("it did not look at its own connections")
		}
	})
}

// The node that claimed the ping dies: its requester is answered in time.
func TestAPingWhoseNodeDiesIsAnswered(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		var l line
		s.node(&l)
		var other sync.WaitGroup
		other.Go(func() {
			s.once("UPDATE deliveries SET status = 'sending', lease_owner = 7 WHERE status = 'queued'")
			l.connected.Store(true) // the merchant connects elsewhere; it is not sent twice
		})
		a, err := s.ping(t.Context())
		other.Wait()
		if err != nil {
			t.Fatal(err)
		}
		s.wantKept(a, notify.Internal, notify.Exhausted)
		if l.asked.Load() != 0 {
			t.Error("it was sent by another node")
		}
	})
}

func TestWhoStopsWaitingLeavesNoPingBehind(t *testing.T) {
	t.Parallel()
	eachSwitchboard(t, func(t *testing.T, s *switchboard) {
		ctx, cancel := context.WithCancel(t.Context())
		var other sync.WaitGroup
		other.Go(func() {
			s.once("UPDATE deliveries SET status = 'sending', lease_owner = 7 WHERE status = 'queued'")
			cancel()
		})
		defer other.Wait()
		if _, err := s.ping(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		for _, table := range []string{"open_pings", "deliveries", "events", "notify_attempts"} {
			s.Want(t, 0, "SELECT count(*) FROM "+table)
		}
	})
}
