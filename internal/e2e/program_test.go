// Package e2e drives the whole program through its outside: commands, HTTP and
// signals, and never through its tables.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/seal"
	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"
	"backstop/internal/ledger"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
	"backstop/migrations"
)

// program is the path of the binary under test, built with its failpoints, in a folder
// that goes with the tests. It is the program's temporary folder too: one that is killed
// leaves the folder of its queue's socket there.
var program string

func TestMain(m *testing.M) {
	if folder := os.Getenv(naiveEnv); folder != "" {
		naive(folder)
		return
	}
	if servertest.None() {
		fmt.Println("every test of this package starts the program")
		return
	}
	flag.Parse()
	if !given("test.parallel") { // the tests wait more than they compute
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(build(m))
}

// given reports whether the command line has a flag.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func build(m *testing.M) int {
	folder, err := os.MkdirTemp("", "backstop-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "backstop")
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	args := []string{"build", "-buildvcs=false", "-ldflags", "-w " + failpoint.LinkFlag, "-o", program}
	if trimmed() {
		args = append(args, "-trimpath")
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, "backstop")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// trimmed reports whether the tests were built with -trimpath: otherwise nothing that was compiled
// for them could be used for the program.
func trimmed() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-trimpath", Value: "true"})
}

// full selects the numbers of a release.
func full() bool { return os.Getenv("E2E_FULL") == "1" }

const (
	apiKey = "sk_live_e2e_merchant_one_0123456789"
	// readyTime bounds a start, stopTime is what SIGTERM may take.
	readyTime = time.Minute
	stopTime  = 15 * time.Second
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// world is one installation: a data folder, a database, a merchant, and at most
// one running server.
type world struct {
	t        *testing.T
	program  string // of another release; empty = the one under test
	folder   string
	address  string
	database string            // URL; empty = SQLite in the folder
	db       *sql.DB           // see own
	key      string            // master key; empty = the folder's own, made at the first start
	redis    *queuetest.Server // nil = embedded
	merchant *fakemerchant.Merchant
	token    string // of the admin API
	server   *server
	starts   int
	more     []string // of the environment
	args     []string // of serve
	stderr   *os.File // where the server logs; nil = a file
}

// options of a world.
type options struct {
	postgres, ownRedis bool
	database           string   // URL of an empty one; empty = by postgres
	before             string   // the program of another release, which makes the database; empty = the one under test
	environ            []string // beside what every installation gets
}

// each runs a test on both engines, beside other tests.
func each(t *testing.T, o options, test func(t *testing.T, w *world)) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := o
			o.postgres = engine == "postgres"
			test(t, newWorld(t, o))
		})
	}
}

// newWorld installs everything and starts nothing yet.
func newWorld(t *testing.T, o options) *world {
	t.Helper()
	merchant, err := fakemerchant.Open(fakemerchant.Options{Keep: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = merchant.Close() })
	w := &world{t: t, folder: t.TempDir(), program: o.before, merchant: merchant, more: o.environ}
	t.Cleanup(w.checkNotifications)
	w.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	if o.postgres {
		w.key = newKey()
	}
	if o.ownRedis {
		w.redis = queuetest.Start(t)
	}
	switch {
	case o.before != "":
		if o.postgres {
			w.database = dbtest.PostgresURL(t)
		}
		w.run("migrate", "up")
		w.apply(w.config(""))
		w.token = strings.TrimSpace(w.run("token", "add", "e2e", "--scope", "monitor,control,compensate"))
		return w
	case o.database != "":
		w.database = o.database
		w.run("migrate", "up")
	case o.postgres:
		w.database = dbtest.PostgresMigratedURL(t)
	default:
		dbtest.WriteSQLite(t, w.folder)
	}
	w.install()
	return w
}

// install does in this process what the commands apply and token add do to a migrated database:
// each of them is a process of a second on a busy machine.
func (w *world) install() {
	w.t.Helper()
	ctx := w.t.Context()
	d, err := db.Open(ctx, db.Options{URL: w.database, Dir: w.folder, Pool: 4})
	if err != nil {
		w.t.Fatal(err)
	}
	defer d.Close()
	var keys *seal.Keyring
	if w.key != "" {
		keys, err = seal.ParseKeys(w.key)
	} else {
		keys, err = seal.LoadOrCreate(filepath.Join(w.folder, "master.key"))
	}
	if err == nil {
		_, err = d.RegisterNode(ctx, migrations.Files)
	}
	if err == nil {
		keys, err = settings.UseKeys(ctx, d, keys)
	}
	schedule, wrong := apply.ParseSchedule("day")
	if err = errors.Join(err, wrong); err != nil {
		w.t.Fatal(err)
	}
	err = apply.Apply(ctx, apply.Env{
		DB: d, Keys: keys, Kinds: supplier.Kinds{sortedparams.Kind}, Ledger: ledger.New(d),
		CheckURL: func(string) error { return nil },
		Defaults: settings.Defaults{Schedule: schedule, Timeout: 10 * time.Second, MaxInFlight: 10}, Out: io.Discard,
	}, apply.File{Name: "apply.yaml", Dir: w.folder, Text: []byte(w.config(""))})
	if err == nil {
		w.token, err = access.NewTokens(d, keys).Add(ctx, "e2e", "monitor,control,compensate")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// config is the file that apply gets; more is added to its suppliers.
func (w *world) config(more string) string {
	return `
suppliers:
  - code: sp-main
    kind: sortedparams
    enabled: true
    config: ` + supplierConfig("sp-main") + `
  - code: sp-listed
    kind: sortedparams
    enabled: true
    allow_ips: [203.0.113.0/24]
    config: ` + supplierConfig("sp-listed") + more + `
merchants:
  - code: m1
    name: Galaxy Mall
    api_key: ` + apiKey + `
    signing_secret: ` + signingSecret() + `
    notify: {urls: ["` + w.merchant.URL() + `"], schedule: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s], timeout: 2s, max_in_flight: 20}
skus:
  - {sku: tea, stock: 5}
`
}

func signingSecret() string { return "whsec_" + base64.StdEncoding.EncodeToString(secret) }

func supplierConfig(code string) string {
	return `{format: form, algorithm: md5, key: "` + supplierKey(code) + `", key_append: "&key={key}", sign_field: sign, account: ` + code +
		`, account_field: account,
      order_field: order, trade_field: trade, amount_field: amount, amount_unit: minor, currency: CNY, status_field: status,
      paid_values: [OK], failed_values: ["NO"], reply: {content_type: text/plain, success: success, failure: fail}}`
}

// environ is a clean environment: what the developer has set must not leak in.
func (w *world) environ(more ...string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + filepath.Dir(program),
		"BACKSTOP_DATA=" + w.folder, "BACKSTOP_LISTEN=" + w.address,
		"BACKSTOP_NOTIFY_ALLOW_CIDRS=127.0.0.0/8,::1/128", "BACKSTOP_DATABASE_URL=" + w.database,
		// Many servers beside each other: at most 8 worlds of 3 nodes share 300 connections.
		"BACKSTOP_DATABASE_POOL=10",
		// A commit that takes longer than usual on a busy machine is not answered 503.
		"BACKSTOP_CALLBACK_WAIT=9s",
	}
	if w.key != "" {
		env = append(env, "BACKSTOP_MASTER_KEY="+w.key)
	}
	if w.redis != nil {
		env = append(env, "BACKSTOP_REDIS_URL="+w.redis.URL())
	}
	return slices.Concat(env, w.more, more)
}

// binary is the file of the program that the world runs.
func (w *world) binary() string { return cmp.Or(w.program, program) }

// newKey makes a master key.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return base64.StdEncoding.EncodeToString(key)
}

// command runs one command of the program beside whatever serves.
func (w *world) command(args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binary(), args...)
	cmd.Env, cmd.Dir = w.environ(), w.folder
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("backstop %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), err
}

func (w *world) run(args ...string) string {
	w.t.Helper()
	out, err := w.command(args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) apply(config string) string {
	w.t.Helper()
	file := filepath.Join(w.folder, "apply.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.run("apply", file)
}

// server is one life of the program.
type server struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when it has exited
}

// launch begins a life and waits for nothing; out is where it greets.
func (w *world) launch(point string) (s *server, greeting string) {
	w.t.Helper()
	w.starts++
	log, err := os.Create(filepath.Join(w.folder, fmt.Sprintf("server-%d.log", w.starts)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	out, err := os.Create(filepath.Join(w.folder, fmt.Sprintf("server-%d.out", w.starts)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	s = &server{
		cmd: exec.Command(w.binary(), append([]string{"serve"}, w.args...)...), log: log.Name(),
		ended: make(chan struct{}),
	}
	s.cmd.Env, s.cmd.Dir = w.environ("FAILPOINT="+point), w.folder
	s.cmd.Stdout, s.cmd.Stderr = out, log
	if w.stderr != nil {
		s.cmd.Stderr = w.stderr
	}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	w.server = s
	if w.starts == 1 {
		w.t.Cleanup(w.end)
	}
	return s, out.Name()
}

// startUnready begins a life that is not going to be ready.
func (w *world) startUnready() {
	w.t.Helper()
	w.launch("")
}

// start begins a life, with a failpoint armed or "", and waits until it is ready.
func (w *world) start(point string) {
	w.t.Helper()
	s, greeted := w.launch(point)
	w.within(readyTime, "the server is ready", func() bool {
		select {
		case <-s.ended:
			w.t.Fatalf("the server ended: %s\n%s", s.cmd.ProcessState, s.tail())
		default:
		}
		resp, err := client.Get("http://" + w.address + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		// The greeting is the last step of a start.
		greeting, _ := os.ReadFile(greeted)
		return resp.StatusCode == http.StatusOK && bytes.Contains(greeting, []byte("console: "))
	})
}

// end stops what a test has left running.
func (w *world) end() {
	_ = w.server.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.server.ended:
	case <-time.After(stopTime):
		_ = w.server.cmd.Process.Kill()
		<-w.server.ended
	}
	if w.t.Failed() {
		w.t.Logf("the last server's log ends with:\n%s", w.server.tail())
	}
}

// kill is kill -9.
func (w *world) kill() {
	w.t.Helper()
	_ = w.server.cmd.Process.Kill()
	w.died()
}

// died waits until the process has ended by SIGKILL, whoever sent it.
func (w *world) died() {
	w.t.Helper()
	select {
	case <-w.server.ended:
	case <-time.After(readyTime):
		w.t.Fatalf("the server did not die\n%s", w.server.tail())
	}
	if status, ok := w.server.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		w.t.Fatalf("the server ended by itself: %s\n%s", w.server.cmd.ProcessState, w.server.tail())
	}
}

// terminate is SIGTERM; it returns how long the server took to leave with 0.
func (w *world) terminate() time.Duration {
	w.t.Helper()
	start := time.Now()
	w.signal(syscall.SIGTERM)
	w.left(stopTime)
	return time.Since(start)
}

func (w *world) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.server.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// left waits until the server has ended with status 0.
func (w *world) left(most time.Duration) {
	w.t.Helper()
	select {
	case <-w.server.ended:
	case <-time.After(most):
		w.t.Fatalf("the server still runs %s after SIGTERM\n%s", most, w.server.tail())
	}
	if code := w.server.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Fatalf("SIGTERM: %s\n%s", w.server.cmd.ProcessState, w.server.tail())
	}
}

func (s *server) tail() string {
	raw, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-4000):])
}

// within waits for a condition, at most as long as given or, on a busy machine, patience.
func (w *world) within(most time.Duration, what string, holds func() bool) {
	w.t.Helper()
	if !waittest.Within(max(most, patience), holds) {
		w.t.Fatalf("not within %s: %s", max(most, patience), what)
	}
}

// books verifies the books with the program itself.
func (w *world) books() {
	w.t.Helper()
	out, err := w.command("verify")
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		w.t.Errorf("the books have violations (exit %d): %v", exit.ExitCode(), err)
	case err != nil:
		w.t.Error(err)
	case !strings.Contains(out, "examined"):
		w.t.Errorf("verify printed %q", out)
	}
}
