package suppliercall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/egress"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/supplier"
)

func loopback(timeout time.Duration) *Client {
	return NewClient(egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), timeout)
}

func TestEachEndOfARequestHasItsClass(t *testing.T) {
	t.Parallel()
	var redirected atomic.Int32
	free := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s", r.Method, body)
		case "/500":
			w.WriteHeader(500)
		case "/redirect":
			http.Redirect(w, r, "/target", http.StatusFound)
		case "/target":
			redirected.Add(1)
		case "/long":
			_, _ = w.Write([]byte(strings.Repeat("x", supplier.MaxAnswer+1)))
		case "/full":
			_, _ = w.Write([]byte(strings.Repeat("x", supplier.MaxAnswer)))
		case "/drop":
			panic(http.ErrAbortHandler)
		case "/slow":
			select {
			case <-free:
			case <-r.Context().Done():
			}
		case "/drip":
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			select {
			case <-free:
			case <-r.Context().Done():
			}
		}
	}))
	defer server.Close()
	defer close(free)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	c := loopback(400 * time.Millisecond)
	for _, x := range []struct {
		url    string
		class  supplier.Class
		status int
		body   int
	}{
		{server.URL + "/ok", "", 200, len("POST hello")},
		{server.URL + "/500", "", 500, 0},
		{server.URL + "/redirect", "", 302, 0},
		{server.URL + "/full", "", 200, supplier.MaxAnswer},
		{server.URL + "/long", supplier.ClassBadAnswer, 200, supplier.MaxAnswer},
		{server.URL + "/drop", supplier.ClassBadAnswer, 0, 0},
		{server.URL + "/slow", supplier.ClassTimeout, 0, 0},
		{server.URL + "/drip", supplier.ClassTimeout, 200, 1},
		{secure.URL, supplier.ClassTLS, 0, 0},
		{"http://" + nobody.Addr().String(), supplier.ClassConnect, 0, 0},
		{"http://[::1]:9/", supplier.ClassConnect, 0, 0}, // not in the ranges
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.url, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Do(r)
		if got.Class != x.class || got.Status != x.status || len(got.Body) != x.body {
			t.Errorf("%s: class %q, status %d, %d bytes", x.url, got.Class, got.Status, len(got.Body))
		}
	}
	if redirected.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// If a server closes an idle connection just as a request is sent, Go's transport repeats the
// request if the headers allow it.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	send := func(c interface {
		Do(*http.Request) supplier.Exchange
	},
	) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("pay"))
		r.Header.Set("Idempotency-Key", "k")
		c.Do(r)
	}
	c := loopback(5 * time.Second)
	send(c)
	send(c)
	if n := calls.Load(); n != 2 {
		t.Errorf("two requests were sent %d times", n)
	}
	calls.Store(0)
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	for range 2 { // the control: the transport alone repeats
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("pay"))
		r.Header.Set("Idempotency-Key", "k")
		if a, err := plain.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
		}
	}
	if n := calls.Load(); n < 3 {
		t.Errorf("the transport alone sent two requests %d times: the test shows nothing", n)
	}
}

func caller(t *testing.T, d *db.DB, inFlight int) *Caller {
	b := breaker.NewSupplierCache(d, breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute})
	c := New(Options{DB: d, Breakers: b, InFlight: inFlight, Timeout: 8 * time.Second, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(c.Close)
	return c
}

func entry(t *testing.T, d *db.DB, code string, rate int) supplier.Entry {
	t.Helper()
	id := d.NewID()
	for _, q := range []string{
		"INSERT INTO supplier_accounts (id, name) VALUES (?0, ?1)",
		"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (?0, ?1, 'x', ?0, TRUE, '[]', '{}', 0, 0)",
	} {
		if _, err := d.NewRaw(q, id, code).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return supplier.Entry{ID: id, Code: code, QueryRate: rate}
}

func said(class supplier.Class, status string) func(context.Context) (Said, error) {
	return func(context.Context) (Said, error) {
		return Said{Status: status, Exchange: supplier.Exchange{Class: class, Status: 200, Request: []byte("GET /q"), Body: []byte("{}")}},
			nil
	}
}

func count(t *testing.T, d *db.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := d.NewRaw(query, args...).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The row is committed while the call runs, and no transaction is open: SQLite has one writer,
// which the call itself needs.
func TestTheRowIsCommittedBeforeTheCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c, e := caller(t, d, 8), entry(t, d, "s1", 1000)
		done, err := c.Do(t.Context(), Call{To: e, Op: Query, OrderID: 7, Reference: "R1"}, func(ctx context.Context) (Said, error) {
			if n := count(t, d,
				"SELECT count(*) FROM supplier_calls WHERE state = 'begun' AND reference = 'R1' AND took_us IS NULL"); n != 1 {
				t.Errorf("%d rows while the call runs", n)
			}
			if err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
				_, err := tx.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(ctx)
				return err
			}); err != nil {
				t.Error(err)
			}
			return said(supplier.ClassOK, "paying")(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, d, "SELECT count(*) FROM supplier_calls WHERE state = 'begun'"); n != 1 {
			t.Errorf("%d rows before the end is written", n)
		}
		if err := c.Keep(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		if n := count(t, d,
			"SELECT count(*) FROM supplier_calls WHERE state = 'ended' AND class = 'ok' AND status = 'paying' AND http_status = 200 AND took_us IS NOT NULL AND request = 'GET /q'"); n != 1 {
			t.Error("the end is not stored")
		}
		if was, err := WasKnown(t.Context(), d, 7, "R1"); err != nil || !was {
			t.Errorf("known %v, %v", was, err)
		}
		if was, err := WasKnown(t.Context(), d, 7, "R1_2"); err != nil || was {
			t.Errorf("another reference is known: %v, %v", was, err)
		}
	})
}

func TestFiveFailuresInARowOpenTheBreakerOfASupplierAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c, e, other := caller(t, d, 8), entry(t, d, "s1", 1000), entry(t, d, "s2", 1000)
		call := func(e supplier.Entry, class supplier.Class) error {
			done, err := c.Do(t.Context(), Call{To: e, Op: Query, Reference: "R"}, said(class, "unknown"))
			if err == nil {
				err = c.Keep(t.Context(), done)
			}
			return err
		}
		for i, class := range []supplier.Class{
			supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS, supplier.ClassBadSignature, supplier.ClassRefused,
			supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassUnknown, supplier.ClassBadAnswer, supplier.ClassBadSignature,
		} {
			if err := call(e, class); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if err := call(e, supplier.ClassOK); !errors.Is(err, ErrDown) {
			t.Errorf("after five failures: %v", err)
		}
		if n := count(t, d, "SELECT count(*) FROM supplier_calls WHERE supplier_id = ?", e.ID); n != 10 {
			t.Errorf("%d rows: an open breaker wrote one", n)
		}
		if err := call(other, supplier.ClassOK); err != nil {
			t.Errorf("another supplier: %v", err)
		}
		if n := count(t, d, "SELECT count(*) FROM breaker_history WHERE owner_id = ? AND to_state = 'open' AND failures = 5",
			e.ID); n != 1 {
			t.Errorf("%d rows of its history", n)
		}
		if recipients := breaker.NewCache(d, nil); recipients.Refresh(t.Context()) != nil || len(recipients.All()) != 0 {
			t.Error("it is among the breakers of recipients")
		}
		if again := caller(t, d, 8); again.o.Breakers.Refresh(t.Context()) != nil || !again.Down(e.ID) {
			t.Error("another node has not seen it")
		}
		// After its open time, one call of one node is the probe.
		if _, err := d.NewRaw("UPDATE breakers SET open_until = 1, updated_at = updated_at + 1 WHERE owner_id = ?",
			e.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.o.Breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		done, err := c.Do(t.Context(), Call{To: e, Op: Query, Reference: "R"}, func(ctx context.Context) (Said, error) {
			if err := call(e, supplier.ClassOK); !errors.Is(err, ErrDown) {
				t.Errorf("a second call during the probe: %v", err)
			}
			return said(supplier.ClassRefused, "unknown")(ctx)
		})
		if err == nil {
			err = c.Keep(t.Context(), done)
		}
		if err != nil || c.Down(e.ID) {
			t.Errorf("after the probe: %v, down %v", err, c.Down(e.ID))
		}
	})
}

func TestNoMoreCallsAreInFlightThanAllowed(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	c, e := caller(t, d, 3), entry(t, d, "s1", 100000)
	var now, most atomic.Int32
	ended := make(chan error)
	for range 30 {
		go func() {
			done, err := c.Do(t.Context(), Call{To: e, Op: Query, Reference: "R"}, func(ctx context.Context) (Said, error) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				waittest.Within(5*time.Millisecond, func() bool { return most.Load() > 3 }) // while it lasts, a fourth may begin
				return said(supplier.ClassOK, "paying")(ctx)
			})
			if err == nil {
				err = c.Keep(context.Background(), done)
			}
			ended <- err
		}()
	}
	for range 30 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 3 {
		t.Errorf("%d calls were in flight", most.Load())
	}
}

func TestWhatWasNotMadeCountsForNothing(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	c, e := caller(t, d, 1), entry(t, d, "s1", 1000)
	running, hold := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = c.Do(t.Context(), Call{To: e, Op: Query, Reference: "first"}, func(ctx context.Context) (Said, error) {
			close(running)
			<-hold
			return said(supplier.ClassOK, "paying")(ctx)
		})
	}()
	<-running // its row is there before it has the only slot
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, Call{To: e, Op: Query, Reference: "late"}, said(supplier.ClassOK, "paid"))
		ended <- err
	}()
	waittest.Until(t, "its row is written", func() bool {
		return count(t, d, "SELECT count(*) FROM supplier_calls WHERE reference = 'late'") == 1
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(hold)
	field := &supplier.FieldError{Field: "order_no", Problem: "too long"}
	if _, err := c.Do(t.Context(), Call{To: e, Op: Pay, Reference: "bad"}, func(context.Context) (Said, error) {
		return Said{},
			field
	}); !errors.Is(err, error(field)) {
		t.Error(err)
	}
	if n := count(t, d, "SELECT count(*) FROM supplier_calls WHERE state = 'ended' AND status = ? AND class = ''", NotMade); n != 2 {
		t.Errorf("%d rows say that they were not made", n)
	}
	if n := count(t, d, "SELECT count(*) FROM breakers"); n != 0 {
		t.Error("the breaker counted them")
	}
	done, err := c.Do(t.Context(), Call{To: e, Op: Query, Reference: "panic"}, func(context.Context) (Said, error) { panic("adapter") })
	if err != nil || done.Class != supplier.ClassBadAnswer || done.Status != "unknown" {
		t.Errorf("a panic: %+v, %v", done, err)
	}
}

// The commit of the ends of calls is not confirmed, and they are committed again: each counts
// once, for the figures and for the supplier's breaker.
func TestAnEndStoredTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c, e := caller(t, d, 8), entry(t, d, "s1", 1000)
		var all []*Done
		for range 2 {
			done, err := c.Do(t.Context(), Call{To: e, Op: Query, Reference: "R"}, said(supplier.ClassTimeout, "unknown"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, done)
		}
		for range 2 {
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				_, err := c.End(ctx, tx, all...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, d, "SELECT failures FROM breakers WHERE owner_id = ?", e.ID); n != 2 {
			t.Errorf("the breaker counts %d failures of 2", n)
		}
		if n := count(t, d, "SELECT count(*) FROM report_deltas"); n != 1 {
			t.Errorf("%d transactions counted the calls, want the first", n)
		}
	})
}
