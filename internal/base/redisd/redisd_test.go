package redisd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
)

// roundtrip sends tasks through asynq, one now and one delayed, and waits for
// both to be handled.
func roundtrip(t *testing.T, r *Redis) {
	t.Helper()
	client := asynq.NewClient(r.Asynq())
	defer client.Close()
	server := asynq.NewServer(r.Asynq(), asynq.Config{
		Concurrency: 2, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond,
		LogLevel: asynq.FatalLevel,
	})
	handled := make(chan string, 2)
	mux := asynq.NewServeMux()
	mux.HandleFunc("echo", func(_ context.Context, task *asynq.Task) error {
		handled <- string(task.Payload())
		return nil
	})
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	for payload, delay := range map[string]time.Duration{"now": 0, "later": time.Second} {
		if _, err := client.EnqueueContext(t.Context(), asynq.NewTask("echo", []byte(payload)), asynq.ProcessIn(delay)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for len(got) < 2 {
		select {
		case payload := <-handled:
			got[payload] = true
		case <-time.After(time.Minute):
			t.Fatalf("handled only %v", got)
		}
	}
}

func openExternal(t *testing.T, url string) (*Redis, *logbook) {
	t.Helper()
	at, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	log, book := logger(slog.LevelWarn)
	r, err := Open(t.Context(), Config{At: &at, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r, book
}

func TestExternalWithNoevictionIsTaken(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t, "--requirepass", "p@ss", "--maxmemory", "64mb")
	r, book := openExternal(t, "redis://:"+url.QueryEscape("p@ss")+"@"+s.Addr+"/2")
	if r.Engine() != External {
		t.Errorf("engine %q", r.Engine())
	}
	if err := r.Verify(t.Context()); err != nil || book.count("\n") != 0 {
		t.Errorf("Verify: %v, warnings %d", err, book.count("\n"))
	}
	if used, limit, err := r.Memory(t.Context()); used <= 0 || limit != 64<<20 || err != nil {
		t.Errorf("memory %d of %d, %v", used, limit, err)
	}
	roundtrip(t, r)
	if n, err := r.Client().DBSize(t.Context()).Result(); n == 0 || err != nil {
		t.Errorf("asynq and the client use another database: %d keys, %v", n, err)
	}
}

func TestEvictingPolicyIsRefused(t *testing.T) {
	t.Parallel()
	for _, forbidden := range [][]string{nil, {"--rename-command", "CONFIG", ""}} {
		s := queuetest.Start(t, append([]string{"--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"}, forbidden...)...)
		r, _ := openExternal(t, s.URL())
		if err := r.Verify(t.Context()); !errors.Is(err, ErrEvicts) || !strings.Contains(err.Error(), "allkeys-lru") {
			t.Errorf("forbidden %q: Verify = %v, want ErrEvicts", forbidden, err)
		}
	}
}

func TestUnreadablePolicyIsAWarning(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t, "--user", "default", "on", "nopass", "~*", "+@all", "-config", "-info")
	r, book := openExternal(t, s.URL())
	if err := r.Verify(t.Context()); err != nil || book.count("does not show its maxmemory-policy") != 1 {
		t.Errorf("Verify = %v, warnings: %s", err, book.text.String())
	}
}

func TestMissingAppendOnlyFileIsOneWarning(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t, "--appendonly", "no")
	r, book := openExternal(t, s.URL())
	for range 3 {
		if err := r.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := book.count("append-only"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

func TestVersionsBelow62AreTooOld(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"5.0.14": true, "6.0.16": true, "6.2.0": false, "6.2": false, "7.0.15": false, "10.1": false, "": false, "x.y": false,
	} {
		if tooOld(version) != want {
			t.Errorf("tooOld(%q) = %v", version, !want)
		}
	}
}

func TestExternalMayBeDownAtStart(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t)
	s.Down()
	r, _ := openExternal(t, s.URL())
	if err := r.Verify(t.Context()); err == nil || errors.Is(err, ErrEvicts) {
		t.Errorf("Verify while down: %v, want an error that is not final", err)
	}
	if err := r.Check(t.Context()); err == nil || Kind(err) != "redis cannot be reached" {
		t.Errorf("Check of a Redis that is down: %v, shown as %q", err, Kind(err))
	}
	s.Up()
	waittest.Until(t, "Verify succeeds", func() bool { return r.Verify(t.Context()) == nil })
}

func TestADatabaseOfANumberThatIsNotThereIsShown(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(queuetest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/99"
	r, _ := openExternal(t, address.String())
	if err := r.Check(t.Context()); err == nil || Kind(err) != "redis has no database with the number in BACKSTOP_REDIS_URL" {
		t.Errorf("Check: %v, shown as %q", err, Kind(err))
	}
}

func TestARefusedPasswordIsShownWithoutIt(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t)
	r, _ := openExternal(t, s.URL())
	if err := r.Client().Do(t.Context(), "acl", "setuser", "default", "resetpass", ">hidden").Err(); err != nil {
		t.Fatal(err)
	}
	other, _ := openExternal(t, s.URL())
	if err := other.Check(t.Context()); err == nil || Kind(err) != "redis requires a password: add it to the URL, redis://:password@host" {
		t.Errorf("Check: %v, shown as %q", err, Kind(err))
	}
}

// Such a Redis answers a ping, but loses nudges.
func TestCheckDetectsARedisThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t)
	r, _ := openExternal(t, s.URL())
	for _, c := range []struct {
		spoil, repair []any
		want          string
	}{
		{[]any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}, "full"},
		{[]any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}, "replica"},
		{
			[]any{"config", "set", "maxmemory-policy", "allkeys-lru"},
			[]any{"config", "set", "maxmemory-policy", "noeviction"},
			"allkeys-lru",
		},
	} {
		if err := r.Check(t.Context()); err != nil {
			t.Errorf("before %v: %v", c.spoil, err)
		}
		if err := r.Client().Do(t.Context(), c.spoil...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context()); err == nil || !strings.Contains(Kind(err), c.want) || strings.Contains(Kind(err), "127.0.0.1") {
			t.Errorf("after %v: %v, shown as %q", c.spoil, err, Kind(err))
		}
		if err := r.Client().Do(t.Context(), c.repair...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A URL that leads to an unusable server is distinguished from one that is unavailable,
// at the start and by /readyz, with what to fix and without the password.
func TestWrongURLsShowWhatToFix(t *testing.T) {
	t.Parallel()
	sentinel, master := queuetest.StartSentinel(t)
	sentinels, _, _ := strings.Cut(strings.TrimPrefix(sentinel, "redis-sentinel://"), "/")
	cluster, _, _ := strings.Cut(strings.TrimPrefix(queuetest.StartCluster(t), "redis-cluster://"), ",")
	locked := queuetest.Start(t, "--requirepass", "s3cret").Addr
	narrow := queuetest.Start(t, "--user", "app", "on", ">s3cret", "~other:*", "+@all").Addr
	slotless := queuetest.Start(t, "--cluster-enabled", "yes").Addr
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	secure.StartTLS()
	defer secure.Close()
	refuses := func(url, want string) {
		t.Helper()
		r, book := openExternal(t, url)
		for what, query := range map[string]func(context.Context) error{"Check": r.Check, "Verify": r.Verify} {
			err := query(t.Context())
			for end := time.Now().Add(time.Minute); errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), want) &&
				time.Now().Before(end); {
				err = query(t.Context()) // on a busy machine one check may take longer than its limit
			}
			if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") ||
				strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s of %s: %v\nwant %q in one line without a password", what, url, err, want)
			}
		}
		if book.count("\n") != 0 {
			t.Errorf("%s warns besides the error: %s", url, book.text.String())
		}
	}
	wantsTLS, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer wantsTLS.Close()
	go func() { // hangs up on what is not TLS
		for {
			conn, err := wantsTLS.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	for url, want := range map[string]string{
		"redis://" + locked:                           "add it to the URL",
		"redis://:s3cretx@" + locked:                  "fix them in the URL",
		"redis://app:s3cret@" + narrow:                "keys and channels asynq:*",
		"redis-cluster://" + master.Addr:              "begin the URL with redis://",
		"redis://" + cluster:                          "begin the URL with redis-cluster://",
		"redis://" + sentinels:                        "redis-sentinel://hosts/master-name",
		"redis-sentinel://" + sentinels + "/s3cret":   "fix the name after the hosts",
		"redis-sentinel://" + master.Addr + "/main":   "is not a sentinel",
		"redis-cluster://" + slotless:                 "slot not served",
		"redis-sentinel://127.0.0.1:1,127.0.0.1:2/m":  "no sentinel names the master: dial tcp",
		"rediss://" + secure.Listener.Addr().String(): "SSL_CERT_FILE",
		"redis://" + wantsTLS.Addr().String():         "if it requires TLS",
	} {
		refuses(url, want)
	}
	client := redis.NewClient(&redis.Options{Addr: sentinels})
	defer client.Close()
	if err := client.Do(t.Context(), "acl", "setuser", "default", "resetpass", ">s3cret").Err(); err != nil {
		t.Fatal(err)
	}
	refuses(sentinel, "sentinel_password")
	refuses(sentinel+"?sentinel_password=s3cretx", "sentinel_password")
	r, _ := openExternal(t, sentinel+"?sentinel_password=s3cret")
	if err := r.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheckIsBounded(t *testing.T) {
	s := queuetest.Start(t)
	r, _ := openExternal(t, s.URL())
	s.Hang()
	began := time.Now()
	if err := r.Check(t.Context()); err == nil || time.Since(began) > 2*checkTimeout {
		t.Errorf("Check of a hanging Redis: %v after %s", err, time.Since(began))
	} else if kind := Kind(err); kind != "redis does not answer in time" {
		t.Errorf("%v is shown as %q", err, kind)
	}
}

func TestWorkersDoNotSpinOnADeadRedis(t *testing.T) {
	t.Parallel()
	s := queuetest.Start(t)
	r, _ := openExternal(t, s.URL())
	s.Down()
	client := r.Asynq().MakeRedisClient().(redis.UniversalClient)
	defer client.Close()
	calls := 0
	for began := time.Now(); time.Since(began) < time.Second; calls++ {
		_ = client.LPop(t.Context(), "k").Err()
	}
	if calls > 12 {
		t.Errorf("%d commands in a second", calls)
	}
}

func TestInProcessStandInWarnsOnceAndWorks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	log, book := logger(slog.LevelInfo)
	r := openEmbedded(t, t.TempDir(), log)
	if err := r.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Engine() != InProcess || book.count("\n") != 1 || book.count("level=WARN") != 1 {
		t.Errorf("engine %q, log: %s", r.Engine(), book.text.String())
	}
	if err := r.Client().Set(t.Context(), "k", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "a key with a lifetime ends", func() bool { return r.Client().Exists(t.Context(), "k").Val() == 0 })
	roundtrip(t, r)
}

func TestStrangersCannotUseTheStandIn(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	log, _ := logger(slog.LevelError)
	r := openEmbedded(t, t.TempDir(), log)
	stranger := redis.NewClient(&redis.Options{Addr: r.opts.Addrs[0]})
	defer stranger.Close()
	if err := stranger.Get(t.Context(), "k").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("without the password: %v", err)
	}
}

func TestClusterCarriesTasks(t *testing.T) {
	t.Parallel()
	r, book := openExternal(t, queuetest.StartCluster(t))
	if err := r.Verify(t.Context()); err != nil || book.count("\n") != 0 {
		t.Fatalf("Verify: %v, log: %s", err, book.text.String())
	}
	if err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if used, limit, err := r.Memory(t.Context()); used <= 0 || limit != 0 || err != nil {
		t.Errorf("memory %d of %d, %v", used, limit, err)
	}
	roundtrip(t, r)
}

func TestSentinelCarriesTasksOverAFailover(t *testing.T) {
	t.Parallel()
	url, master := queuetest.StartSentinel(t)
	r, _ := openExternal(t, url)
	if err := r.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	roundtrip(t, r)
	master.Down()
	waittest.Until(t, "the promoted replica takes writes", func() bool {
		return r.Client().Set(t.Context(), "k", "v", 0).Err() == nil
	})
	roundtrip(t, r)
}
