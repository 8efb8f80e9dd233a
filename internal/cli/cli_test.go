package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
)

// TestMain runs the tests in the folder of the repository, whose files they read.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// backstop runs a command in the environment of the test.
func backstop(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// install creates an installation in its own folder, as the first start does. If the environment
// names a PostgreSQL database, that is migrated already.
func install(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	t.Setenv("BACKSTOP_DATA", folder)
	dbtest.WriteSQLite(t, folder)
	if _, err := seal.LoadOrCreate(filepath.Join(folder, "master.key")); err != nil { // as the first start does
		t.Fatal(err)
	}
	return folder
}

func TestWhatIsTypedWrongIsWrongUsage(t *testing.T) {
	install(t)
	for _, args := range []string{
		"token add x --scope everything", "token add X! --scope monitor", "operator add x --role king", "operator add X! --role viewer",
		"token", "operator", "import", "demo --rate=0", "demo --rate=101", "demo --rate=NaN", "demo --for=-1s",
	} {
		code, out, stderr := backstop(t.Context(), strings.Fields(args)...)
		if code != exitUsage || out != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}

func TestALibrarysManyLinesAreOneError(t *testing.T) {
	t.Setenv("BACKSTOP_DATA", t.TempDir())
	t.Setenv("BACKSTOP_DATABASE_URL", "postgres://nobody:topsecret@127.0.0.1:1/none?connect_timeout=1")
	code, _, stderr := backstop(t.Context(), "verify")
	if code != exitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "BACKSTOP_DATABASE_URL") ||
		strings.Contains(stderr, "topsecret") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	install(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code, _, stderr := backstop(ctx, "token", "list"); code != exitFailed || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// Without the key of the audit its rows cannot be checked: verify says so, still checks
// everything else, and creates no key.
func TestVerifyNeedsTheKeyOfTheAudit(t *testing.T) {
	folder := install(t)
	if code, _, stderr := backstop(t.Context(), "operator", "add", "li", "--role", "viewer"); code != exitDone {
		t.Fatal(stderr)
	}
	if code, out, stderr := backstop(t.Context(), "verify"); code != exitDone || !strings.Contains(out, "in order") {
		t.Errorf("with the key: exit %d, %q, %q", code, out, stderr)
	}
	file := filepath.Join(folder, "master.key")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	code, out, _ := backstop(t.Context(), "verify")
	if code != exitFailed || !strings.Contains(out, "audit: key needed: row 1 was written under master key") ||
		strings.Count(out, "\nI") != 14 {
		t.Errorf("without the key: exit %d, %s", code, out)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("it made a key: %v", err)
	}
}

func TestTokensAreListedWithTheirScopes(t *testing.T) {
	install(t)
	for _, args := range []string{"token add a --scope monitor", "token add b --scope control,monitor"} {
		if code, out, stderr := backstop(t.Context(), strings.Fields(args)...); code != exitDone || !strings.HasPrefix(out, "bst_") {
			t.Fatalf("%s: %d %s", args, code, stderr)
		}
	}
	_, out, _ := backstop(t.Context(), "token", "list")
	lines := strings.Split(out, "\n")
	for i, want := range []string{"a  monitor  ", "b  monitor,control  "} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got+" ", strings.Join(strings.Fields(want), " ")+" ") {
			t.Errorf("listed %q, want %q", lines[i], want)
		}
	}
	if code, _, _ := backstop(t.Context(), "token", "add", "d", "--scope", "everything"); code != exitUsage {
		t.Errorf("a scope that opens nothing: exit %d", code)
	}
}

// A lost key file must not be replaced silently: no stored secret would open, and newly applied
// ones would open nowhere else.
func TestANewMasterKeyBesideOldSecretsIsRefused(t *testing.T) {
	folder := install(t)
	t.Setenv("BACKSTOP_NOTIFY_ALLOW_CIDRS", "127.0.0.0/8")
	t.Setenv("BACKSTOP_LISTEN", "127.0.0.1:0")
	file := filepath.Join(folder, "master.key")
	if err := os.Remove(file); err != nil { // there was no start yet
		t.Fatal(err)
	}
	code, out, errOut := backstop(t.Context(), "apply", "docs/tour/tour.yaml")
	if code != exitDone || strings.Contains(out, "master key") || !strings.Contains(errOut, "master key made: "+file) ||
		!strings.Contains(errOut, "back it up") {
		t.Fatalf("the first apply exits with %d: %s%s", code, out, errOut)
	}
	key, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	refused := func(why string) {
		t.Helper()
		for _, args := range [][]string{{"serve"}, {"apply", "docs/tour/tour.yaml"}, {"reseal"}} {
			if code, _, errOut := backstop(ctx, args...); code != exitFailed || !strings.Contains(errOut, "another master key") ||
				!strings.Contains(errOut, why) || strings.Count(errOut, "\n") != 1 || ctx.Err() != nil {
				t.Errorf("%s exits with %d: %s", args[0], code, errOut)
			}
		}
	}
	refused(file + " is missing")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a key was made: %v", err)
	}
	made := []byte(strings.Repeat("0f", 32) + "\n")
	if err := os.WriteFile(file, made, 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := seal.ParseKeys(string(key))
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.ParseKeys(string(made))
	if err != nil {
		t.Fatal(err)
	}
	refused("in use is the key " + old.ID() + "; this process has " + other.ID())
	// The key in use in addition to the new one is enough.
	if err := os.WriteFile(file, append(made, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := backstop(t.Context(), "apply", "docs/tour/tour.yaml"); code != exitDone || !strings.Contains(out, "unchanged") {
		t.Errorf("with both keys: %d %s%s", code, out, errOut)
	}
}

// Each node would create its own key, and none could read what another has sealed.
func TestADatabaseURLWithoutAMasterKeyIsWrongUsage(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("BACKSTOP_DATA", data)
	t.Setenv("BACKSTOP_DATABASE_URL", "postgres://nobody:topsecret@127.0.0.1:1/none?connect_timeout=1")
	for _, args := range [][]string{{"serve"}, {"apply", "docs/tour/tour.yaml"}, {"reseal"}} {
		code, out, stderr := backstop(t.Context(), args...)
		if code != exitUsage || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "BACKSTOP_MASTER_KEY") ||
			strings.Contains(stderr, "topsecret") {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		}
	}
	t.Setenv("BACKSTOP_MASTER_KEY_FILE", filepath.Join(t.TempDir(), "gone.key"))
	if code, _, stderr := backstop(t.Context(), "serve"); code != exitUsage || !strings.Contains(stderr, "gone.key") {
		t.Errorf("with a named file that is missing: exit %d, %q", code, stderr)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("it made a folder: %v", err)
	}
}
