package cli

import (
	"bytes"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"backstop/internal/base/config"
	"backstop/internal/base/db/dbtest"
)

// besideServer are the commands that use a server's database.
var besideServer = [][]string{
	{"apply", "docs/tour/tour.yaml"},
	{"apply", "docs/tour/tour.yaml", "--dry-run"},
	{"export"},
	{"import", "orders", "go.mod"},
	{"token", "add", "desk", "--scope", "monitor"},
	{"token", "list"},
	{"operator", "add", "li", "--role", "viewer"},
	{"operator", "role", "li", "ops"},
	{"operator", "token", "li"},
	{"compensate", "list"},
	{"compensate", "redrive", "--reason", "the supplier is back"},
	{"reseal"},
	{"sweep"},
	{"sweep", "--dry-run"},
	{"verify"},
	{"migrate", "down", "--yes"},
	{"migrate", "status"},
}

// A command on a database created by mistake would report success without any effect.
func TestCommandsBesideAServerMakeNoDatabase(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("BACKSTOP_DATA", data)
	t.Setenv("BACKSTOP_NOTIFY_ALLOW_CIDRS", "127.0.0.0/8")
	for _, args := range besideServer {
		code, out, stderr := backstop(t.Context(), args...)
		if code != exitFailed || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, data) ||
			!strings.Contains(stderr, "backstop serve") || !strings.Contains(stderr, "BACKSTOP_DATA") {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Fatalf("%s made a folder: %v", args, err)
		}
	}
}

func TestCommandsBesideAServerMakeNoSchema(t *testing.T) {
	address := dbtest.PostgresURL(t)
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("BACKSTOP_DATA", data)
	t.Setenv("BACKSTOP_DATABASE_URL", address)
	t.Setenv("BACKSTOP_MASTER_KEY", strings.Repeat("0f", 32))
	t.Setenv("BACKSTOP_NOTIFY_ALLOW_CIDRS", "127.0.0.0/8")
	own, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, args := range besideServer {
		code, out, stderr := backstop(t.Context(), args...)
		switch {
		case args[0] != "migrate" && (code != exitFailed || out != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "backstop serve")):
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		case args[0] == "migrate" && code != exitDone:
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		case args[len(args)-1] == "status" && (!strings.Contains(out, "base pending") || strings.Contains(out, "Z")):
			t.Errorf("the status is %q", out)
		}
		var tables int
		if err := own.QueryRow("SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace").Scan(
			&tables); err != nil || tables != 0 {
			t.Fatalf("%s made %d tables, %v", args, tables, err)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("they made a folder: %v", err)
	}
}

func TestVerifyOverNothingFails(t *testing.T) {
	for _, address := range []string{"", dbtest.PostgresMigratedURL(t)} {
		t.Setenv("BACKSTOP_DATABASE_URL", address)
		folder := install(t)
		if code, out, stderr := backstop(t.Context(), "verify"); code != exitFailed || out != "" ||
			!strings.Contains(stderr, "nothing to verify") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		if code, _, stderr := backstop(t.Context(), "operator", "add", "li", "--role", "viewer"); code != exitDone {
			t.Fatal(stderr)
		}
		if code, out, stderr := backstop(t.Context(), "verify"); code != exitDone || !strings.Contains(out, "in order") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		execute(t, address, folder, "DELETE FROM schema_migrations")
		for _, args := range besideServer[:13] {
			if code, _, stderr := backstop(t.Context(), args...); code != exitFailed || !strings.Contains(stderr, "backstop migrate up") {
				t.Errorf("%s with an older schema: exit %d, %q", args, code, stderr)
			}
		}
	}
}

func TestTheFirstSchemaIsNotTakenBack(t *testing.T) {
	install(t)
	code, out, stderr := backstop(t.Context(), "migrate", "down", "--yes")
	for strings.HasPrefix(out, "rolled back 20") { // what came after it
		code, out, stderr = backstop(t.Context(), "migrate", "down", "--yes")
	}
	if code != exitFailed || out != "" || !strings.Contains(stderr, "base cannot be reverted") {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
}

func TestADatabaseFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	for _, address := range []string{"", dbtest.PostgresMigratedURL(t)} {
		t.Setenv("BACKSTOP_DATABASE_URL", address)
		execute(t, address, install(t), "UPDATE schema_migrations SET name = '20261121000001_core' WHERE name = 'base'")
		for _, args := range [][]string{{"serve"}, {"migrate", "up"}, {"migrate", "status"}, {"verify"}} {
			code, out, stderr := backstop(t.Context(), args...)
			if code != exitFailed || out != "" || !strings.Contains(stderr, "start with an empty database") {
				t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
			}
		}
	}
}

func TestMigrateDownIsNotDoneByMistake(t *testing.T) {
	for _, address := range []string{"", dbtest.PostgresMigratedURL(t)} {
		t.Setenv("BACKSTOP_DATABASE_URL", address)
		folder := install(t)
		_, before, _ := backstop(t.Context(), "migrate", "status")
		if code, out, stderr := backstop(t.Context(), "migrate", "down"); code != exitUsage || out != "" ||
			!strings.Contains(stderr, "--yes") {
			t.Errorf("without a terminal: exit %d, %q, %q", code, out, stderr)
		}
		execute(t, address, folder, "INSERT INTO schema_migrations (name, applied_at) VALUES ('20990101000000_later', 1)")
		if code, out, stderr := backstop(t.Context(), "migrate", "down", "--yes"); code != exitFailed || out != "" ||
			!strings.Contains(stderr, "20990101000000_later") {
			t.Errorf("of a newer schema: exit %d, %q, %q", code, out, stderr)
		}
		if _, after, _ := backstop(t.Context(), "migrate", "status"); after != before || strings.Contains(after, "pending") {
			t.Errorf("the status is %s", after)
		}
	}
}

// execute changes a database without the program.
func execute(t *testing.T, address, folder, statement string) {
	t.Helper()
	driver := "pgx"
	if address == "" {
		driver, address = "sqlite", filepath.Join(folder, "backstop.db")
	}
	own, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyAPlainYesIsOne(t *testing.T) {
	for answer, yes := range map[string]bool{
		"yes\n": true, " yes \r\n": true, "y\n": false, "\n": false, "": false, "no\n": false,
		"yes": false,
	} {
		if err := answeredYes(streams{strings.NewReader(answer), io.Discard, io.Discard}, "?"); (err == nil) != yes {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestTheVersionHasTwoNames(t *testing.T) {
	_, out, _ := backstop(t.Context(), "version")
	if code, flag, stderr := backstop(t.Context(), "--version"); code != exitDone || flag != out || stderr != "" {
		t.Errorf("exit %d, %q, %q; the command says %q", code, flag, stderr, out)
	}
	if !regexp.MustCompile(`^backstop dev commit \S+ date \S+ `).MatchString(out) || !strings.HasSuffix(out, " "+runtime.Version()+"\n") {
		t.Errorf("output %q", out)
	}
}

func TestHealthIsReadinessInOneLine(t *testing.T) {
	answer := `{"status":"ready","checks":[{"name":"redis","ok":true}]}`
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	check := func(args []string, wantCode int, want string) {
		t.Helper()
		code, out, stderr := backstop(t.Context(), append([]string{"health"}, args...)...)
		if code != wantCode || !strings.Contains(out+stderr, want) || strings.Count(out+stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q; want %q", args, code, out, stderr, want)
		}
	}
	for _, listen := range []string{"0.0.0.0:" + port, ":" + port, "127.0.0.1:" + port} {
		t.Setenv("BACKSTOP_LISTEN", listen)
		check(nil, exitDone, "ready\n")
	}
	check([]string{"--url", server.URL + "/"}, exitDone, "ready\n")
	answer = `{"status":"degraded","checks":[{"name":"redis","ok":true},{"name":"settings","ok":false,"error":"cannot be read: merchant m1"}]}`
	check(nil, exitDone, "degraded: settings: cannot be read: merchant m1\n")
	status, answer = http.StatusServiceUnavailable,
		`{"status":"not ready","checks":[{"name":"database","ok":true},{"name":"redis","ok":false,"error":"it is away"}]}`
	check(nil, exitFailed, "not ready: redis: it is away\n")
	answer = "<html>"
	check(nil, exitFailed, "503")
	status = http.StatusFound
	check(nil, exitFailed, "302")
	server.Close()
	check(nil, exitFailed, "no server answers")
	t.Setenv("BACKSTOP_LISTEN", "127.0.0.1:0")
	check(nil, exitUsage, "--url")
}

// The demo's orders must never be mixed with real ones.
func TestTheDemoPlaysInAFolderOfItsOwn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("BACKSTOP_DATA", data)
	t.Setenv("BACKSTOP_DATABASE_URL", "postgres://nobody:topsecret@127.0.0.1:1/none")
	if code, out, stderr := backstop(t.Context(), "serve", "--demo"); code != exitUsage || out != "" ||
		!strings.Contains(stderr, "BACKSTOP_DATABASE_URL") || strings.Contains(stderr, "topsecret") {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	for _, given := range []string{data, data + "/"} {
		c, err := config.Load(config.Source{Environ: []string{
			"BACKSTOP_DATA=" + given, "BACKSTOP_REDIS_URL=redis://127.0.0.1:1/0", "BACKSTOP_MASTER_KEY=" + strings.Repeat("0f", 32),
		}})
		if err == nil {
			err = demoConfig(&c)
		}
		if err != nil || c.Data != data+"-demo" || c.RedisURL.IsSet() || c.MasterKey.IsSet() || c.MasterKeyPath() != data+
			"-demo/master.key" {
			t.Errorf("%v: %+v", err, c)
		}
	}
}

func TestApplyReadsStandardInput(t *testing.T) {
	install(t)
	var out, stderr bytes.Buffer
	code := run(t.Context(), []string{"apply", "-"}, strings.NewReader("skus: [{ sku: tea, stock: 3 }]"), &out, &stderr)
	if code != exitDone || out.String() != "sku tea created\nno server is running\n" || stderr.Len() > 0 {
		t.Errorf("exit %d, %q, %q", code, out.String(), stderr.String())
	}
	out.Reset()
	code = run(t.Context(), []string{"apply", "-", "--wait", "0"}, strings.NewReader("skus: [{ sku: tea, stick: 3 }]"), &out, &stderr)
	if code != exitFailed || out.Len() > 0 || !strings.Contains(stderr.String(), "standard input:1: skus[0].stick: unknown field") {
		t.Errorf("exit %d, %q, %q", code, out.String(), stderr.String())
	}
	out.Reset()
	code = run(t.Context(), []string{"apply", "-", "--wait=0s"}, strings.NewReader("skus: [{ sku: tea, stock: 3 }]"), &out, &stderr)
	if code != exitDone || out.String() != "sku tea unchanged\n" {
		t.Errorf("exit %d, %q, %q", code, out.String(), stderr.String())
	}
	if code, _, stderr := backstop(t.Context(), "apply", "-", "--wait=-1s"); code != exitUsage {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestADryRunSaysWhatWouldChangeAndChangesNothing(t *testing.T) {
	for _, address := range []string{"", dbtest.PostgresMigratedURL(t)} {
		t.Setenv("BACKSTOP_DATABASE_URL", address)
		install(t)
		apply := func(file string, args ...string) (code int, out, stderr string) {
			var o, e bytes.Buffer
			code = run(t.Context(), append([]string{"apply", "-", "--wait=0s"}, args...), strings.NewReader(file), &o, &e)
			return code, o.String(), e.String()
		}
		const one = "skus: [{ sku: tea, stock: 3 }]\nmerchants: [{ code: m1, signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE= }]"
		code, out, stderr := apply(one, "--dry-run")
		if code != exitDifferent || stderr != "" || !strings.Contains(out, "merchant m1 created\n") ||
			!strings.Contains(out, "  signing_secret: unset → set\n") || !strings.Contains(out, "sku tea created\n  stock: none → 3\n") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		if code, out, _ := apply(one); code != exitDone || out != "merchant m1 created\nsku tea created\n" {
			t.Errorf("exit %d, %q: the dry run has written it", code, out)
		}
		if code, out, stderr := apply(one, "--dry-run"); code != exitDone || stderr != "" ||
			out != "merchant m1 unchanged\nsku tea unchanged\n" {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		const two = "merchants: [{ code: m1, notify: { timeout: 5s } }]"
		if code, out, _ := apply(two, "--dry-run"); code != exitDifferent || out != "merchant m1 changed\n  notify.timeout: 10s → 5s\n" {
			t.Errorf("exit %d, %q", code, out)
		}
		if code, out, stderr := apply("skus: [{ sku: tea }]", "--dry-run"); code != exitUsage || out != "" ||
			!strings.Contains(stderr, "standard input:1: skus[0].stock: missing") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		if code, _, _ := backstop(t.Context(), "apply", "nowhere.yaml", "--dry-run"); code != exitUsage {
			t.Errorf("a file that is not there: exit %d", code)
		}
		if code, _, _ := apply(one, "--dry-run", "--force"); code != exitUsage {
			t.Errorf("with --force: exit %d", code)
		}
		code, out, stderr = backstop(t.Context(), "export")
		if code != exitDone || stderr != "" || !strings.Contains(out, "signing_secret: file:secrets/merchant-m1.signing_secret\n") ||
			strings.Contains(out, "whsec") {
			t.Errorf("export: exit %d, %q, %q", code, out, stderr)
		}
	}
}

// A personal token is printed once, and has the permissions of its owner's current role.
func TestOperatorsGetTokensAndRolesByCommand(t *testing.T) {
	install(t)
	run := func(code int, args ...string) (out, stderr string) {
		t.Helper()
		got, out, stderr := backstop(t.Context(), append([]string{"operator"}, args...)...)
		if got != code {
			t.Errorf("%s: exit %d, %q, %q", args, got, out, stderr)
		}
		return out, stderr
	}
	run(exitDone, "add", "li", "--role", "lead")
	first, _ := run(exitDone, "token", "li")
	second, _ := run(exitDone, "token", "li", "--expires", "1h")
	for _, out := range []string{first, second} {
		if !strings.HasPrefix(out, "bso_") || strings.Count(out, "\n") != 1 || len(out) < 40 {
			t.Errorf("printed %q", out)
		}
	}
	if first == second {
		t.Error("two tokens are one")
	}
	if out, _ := run(exitDone, "token", "li", "--revoke"); out != "operator li has no personal token\n" {
		t.Errorf("printed %q", out)
	}
	run(exitFailed, "token", "nobody")
	run(exitFailed, "token", "li", "--expires", "1s")
	for _, args := range [][]string{{"disable", "li"}, {"role", "li", "ops"}} {
		if _, stderr := run(exitFailed, args...); !strings.Contains(stderr, "last operator who may approve") {
			t.Errorf("%s: %q", args, stderr)
		}
	}
	run(exitDone, "add", "wang", "--role", "lead")
	run(exitDone, "role", "li", "ops")
	if out, _ := run(exitDone, "list"); !strings.Contains(out, "li    ops") {
		t.Errorf("the list is %q", out)
	}
}
