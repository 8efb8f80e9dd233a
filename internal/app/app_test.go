package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/config"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
)

// A start that fails half-way must report what to fix, and not fail in its own clean-up.
func TestAStartThatFailsSaysWhatToMend(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings []string
		want     string
	}{
		"a data folder that cannot be made": {[]string{"BACKSTOP_DATA=" + filepath.Join(file, "data")}, "BACKSTOP_DATA"},
		"a database that is not there": {[]string{
			"BACKSTOP_DATA=" + t.TempDir(),
			"BACKSTOP_DATABASE_URL=postgres://nobody:topsecret@127.0.0.1:1/none?sslmode=disable&connect_timeout=1",
			"BACKSTOP_MASTER_KEY=" + strings.Repeat("0f", 32),
		}, "database"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := config.Load(config.Source{Environ: c.settings})
			if err != nil {
				t.Fatal(err)
			}
			a, err := New(context.Background(), Options{
				Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler),
				Out: io.Discard,
			})
			if err == nil {
				a.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) || strings.Contains(err.Error(), "topsecret") {
				t.Errorf("it is %q", err)
			}
		})
	}
}

// What an operator or a breaker has parked stays parked through a start: nothing is sent before
// this node has read it.
func TestAStartKnowsWhatIsParked(t *testing.T) {
	t.Parallel()
	cfg := configured(t)
	start := func() *App {
		t.Helper()
		a, err := New(t.Context(), Options{
			Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler),
			Out: io.Discard,
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := start()
	_, err := a.db.NewRaw("INSERT INTO breakers (owner_id, state, by_hand, updated_at) VALUES (7, 'open', TRUE, 1)").Exec(t.Context())
	a.Close()
	if err != nil {
		t.Fatal(err)
	}
	a = start()
	defer a.Close()
	if _, ok := a.dispatcher.Lane(7); ok {
		t.Error("a merchant whose breaker is open would be notified")
	}
}

// A process records whether it sends, and reads how many senders there are before it begins.
func TestAProcessSaysWhetherItSends(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "BACKSTOP_REDIS_URL=redis://127.0.0.1:1")
	start := func(r Roles, senders int) {
		t.Helper()
		a, err := New(t.Context(), Options{Config: cfg, Roles: r, Log: slog.New(slog.DiscardHandler), Out: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if n := a.db.Senders(); n != senders {
			t.Errorf("roles %s: %d processes send, want %d", r, n, senders)
		}
		// Two more nodes that keep running beside the next one.
		_, err = a.db.NewRaw(
			"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (7, 'x', '', 7, 1, ?0), (8, 'x', '', 8, 1, ?0)"+
				" ON CONFLICT DO NOTHING", a.db.Now()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	start(Roles{Web: true, Scheduler: true}, 1) // one at least
	start(Roles{Web: true, Scheduler: true}, 2)
	start(Roles{Worker: true}, 3)
}

// configured returns the defaults with the given settings, and a data folder with a migrated
// database.
func configured(t *testing.T, environ ...string) config.Config {
	t.Helper()
	folder := t.TempDir()
	dbtest.WriteSQLite(t, folder)
	cfg, err := config.Load(config.Source{Environ: append(environ, "BACKSTOP_DATA="+folder)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// opened returns the whole program with defaults, in its own folder, with the given settings;
// it does not run yet.
func opened(t *testing.T, environ ...string) *App {
	t.Helper()
	a, err := New(context.Background(), Options{
		Config: configured(t, environ...), Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler),
		Out: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// Alerts link to the console, not to the address for callbacks.
func TestAlertsLeadToTheConsole(t *testing.T) {
	t.Parallel()
	for want, environ := range map[string][]string{
		"https://desk.example.com": {"BACKSTOP_PUBLIC_URL=https://pay.example.com", "BACKSTOP_ADMIN_URL=https://desk.example.com/"},
		"https://pay.example.com":  {"BACKSTOP_PUBLIC_URL=https://pay.example.com", "BACKSTOP_ADMIN_LISTEN=127.0.0.1:0"},
		"the admin listener":       {"BACKSTOP_LISTEN=127.0.0.1:0", "BACKSTOP_ADMIN_LISTEN=127.0.0.1:0"},
	} {
		a := opened(t, append(environ, "BACKSTOP_LISTEN=127.0.0.1:0")...)
		if err := a.listen(); err != nil {
			t.Fatal(err)
		}
		if want == "the admin listener" {
			want = "http://" + a.adminListener.Addr().String()
		}
		alerts, err := a.alerts()
		if err != nil || alerts.Style.Console != want || a.ConsoleURL() != want {
			t.Errorf("alerts lead to %q, the console is at %q, %v; want %q", alerts.Style.Console, a.ConsoleURL(), err, want)
		}
	}
}

// Merchant 7 is unknown: its breaker holds nothing back unless an operator opened it, and what
// is due is late.
func TestMetricsCountAsParkedWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	a := opened(t)
	run := func(query string) {
		t.Helper()
		if _, err := a.db.NewRaw(query).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	count := func(due, parked float64) {
		t.Helper()
		all := a.backlogs(t.Context())
		if len(all) < 2 || all[0].Queue != "due" || all[0].Tasks != due || all[1].Queue != "parked" || all[1].Tasks != parked {
			t.Errorf("%+v, want %v due and %v parked", all, due, parked)
		}
	}
	run("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at) VALUES (1, 1, 7, 1, 'order.paid', 'webhook', '', 'retry_wait', 1, 1)")
	run("INSERT INTO breakers (owner_id, state, by_hand, updated_at) VALUES (7, 'open', FALSE, 1)")
	count(1, 0)
	run("UPDATE breakers SET by_hand = TRUE, generation = 1")
	count(0, 1)
}

// firstWords records the output, and whether a request was served before it.
type firstWords struct {
	a      *App
	text   strings.Builder
	served bool
}

func (f *firstWords) Write(p []byte) (int, error) {
	client := http.Client{Timeout: 200 * time.Millisecond}
	if f.a == nil || f.a.listener == nil {
		return f.text.Write(p) // of the start
	}
	if resp, err := client.Get("http://" + f.a.listener.Addr().String() + "/healthz"); err == nil {
		resp.Body.Close()
		f.served = true
	}
	return f.text.Write(p)
}

// Once /readyz succeeds, the output contains the password.
func TestThePasswordIsPrintedBeforeTheServerIsReady(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "BACKSTOP_LISTEN=127.0.0.1:0", "BACKSTOP_REDIS_URL=redis://127.0.0.1:1")
	out := new(firstWords)
	a, err := New(t.Context(), Options{Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler), Out: out})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	out.a = a
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-a.Ready()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.text.String(), "admin one-time password: ") || out.served {
		t.Errorf("printed %q, served before = %v", out.text.String(), out.served)
	}
}

func TestAWrongRedisURLIsWrongUsageAndNamed(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	cfg, err := config.Load(config.Source{Environ: []string{"BACKSTOP_DATA=" + data, "BACKSTOP_REDIS_URL=redis://:topsecret@127.0.0.1/x"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), Options{Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "BACKSTOP_REDIS_URL") || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("it is %v", err)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Error("a wrong usage has made a data folder or migrated a database")
	}
}

// A Redis that accepts connections and never answers must not delay the stop.
func TestAStopDoesNotWaitForARedisThatHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan struct{}, 1000)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			// Whatever is sent is read, and nothing is answered.
			go func() {
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					polled <- struct{}{}
				}
			}()
		}
	}()
	defer silent.Close()
	cfg := configured(t, "BACKSTOP_LISTEN=127.0.0.1:0", "BACKSTOP_SHUTDOWN_TIMEOUT=3s", "BACKSTOP_REDIS_URL=redis://"+silent.Addr().String())
	a, err := New(t.Context(), Options{Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx); a.Close() }()
	<-a.Ready()
	for range len(queue.Groups) { // the workers have begun to poll
		select {
		case <-polled:
		case <-time.After(20 * time.Second):
			t.Fatal("the workers do not poll")
		}
	}
	start := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 15*time.Second { // workers that stop one after the other take more than 25 s
		t.Errorf("the stop took %s", took)
	}
}

// Servers that accept connections and never answer must not keep callbacks out: the client
// tries one after the other, six seconds each.
func TestAStartDoesNotWaitForARedisThatHangs(t *testing.T) {
	t.Parallel()
	var addrs []string
	for range 20 {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close() // the kernel accepts the connections
		addrs = append(addrs, silent.Addr().String())
	}
	began := time.Now()
	opened(t, "BACKSTOP_REDIS_URL=redis-cluster://"+strings.Join(addrs, ","))
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the start took %s", took)
	}
}

func TestTheFirstPasswordComesFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	cfg := configured(t, "BACKSTOP_ADMIN_PASSWORD_FILE="+file)
	var out strings.Builder
	a, err := New(t.Context(), Options{Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler), Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, want := range []string{"no such file", "bad password"} {
		if err := a.greet(t.Context()); err == nil || !strings.Contains(err.Error(), "BACKSTOP_ADMIN_PASSWORD_FILE: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const password = "given by a file 1"
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.greet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), password) {
		t.Errorf("it is printed: %s", out.String())
	}
	op, err := access.NewOperators(a.db, a.audit).Login(t.Context(), "admin", password)
	if err != nil || !op.MustChange {
		t.Errorf("%+v, %v", op, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := a.greet(t.Context()); err != nil {
		t.Errorf("a later start without the file: %v", err)
	}
}

// A new key must be reported: a backup without it is worthless.
func TestAKeyThatIsMadeSaysWhereToBackItUp(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "BACKSTOP_REDIS_URL=redis://127.0.0.1:1")
	for _, want := range []bool{true, false} {
		var out, log bytes.Buffer
		a, err := New(t.Context(), Options{
			Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Out: &out,
		})
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		for where, text := range map[string]string{"standard output": out.String(), "log": log.String()} {
			if strings.Contains(text, "master key made: "+filepath.Join(cfg.Data, "master.key")) != want ||
				strings.Contains(text, "back it up") != want {
				t.Errorf("the %s, a key was made = %t: %q", where, want, text)
			}
		}
	}
}

// A demo's password is not kept: each start prints one that works. A real installation prints
// it once.
func TestEachStartOfADemoPrintsItsLogin(t *testing.T) {
	t.Parallel()
	for _, demo := range []bool{true, false} {
		cfg := configured(t)
		for start := range 2 {
			var output strings.Builder
			a, err := New(t.Context(), Options{
				Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler),
				Out: &output, Demo: demo,
			})
			if err != nil {
				t.Fatal(err)
			}
			err = a.greet(t.Context())
			_, password, printed := strings.Cut(output.String(), "admin one-time password: ")
			if err != nil || printed != (demo || start == 0) {
				t.Errorf("demo %t, start %d: it prints %q, %v", demo, start+1, output.String(), err)
			}
			if printed {
				password, _, _ = strings.Cut(password, "\n")
				if _, err := access.NewOperators(a.db, a.audit).Login(t.Context(), access.FirstAdmin, password); err != nil {
					t.Errorf("demo %t, start %d: %v", demo, start+1, err)
				}
			}
			a.Close()
		}
	}
}
