package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backstop runs a command in the environment of the test.
func backstop(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// install makes an installation in a folder of its own, as the first start does.
func install(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	t.Setenv("BACKSTOP_DATA", folder)
	if code, _, said := backstop(t.Context(), "migrate", "up"); code != exitDone {
		t.Fatal(said)
	}
	return folder
}

func TestWhatIsTypedWrongIsWrongUsage(t *testing.T) {
	install(t)
	for _, args := range []string{
		"token add x --scope everything", "token add X! --scope monitor", "operator add x --role king", "operator add X! --role viewer",
		"token", "operator", "import", "demo --rate=0", "demo --rate=101", "demo --rate=NaN", "demo --for=-1s",
	} {
		code, out, said := backstop(t.Context(), strings.Fields(args)...)
		if code != exitUsage || out != "" || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, said)
		}
	}
}

func TestALibrarysManyLinesAreOneError(t *testing.T) {
	t.Setenv("BACKSTOP_DATA", t.TempDir())
	t.Setenv("BACKSTOP_DATABASE_URL", "postgres://nobody:topsecret@127.0.0.1:1/none?connect_timeout=1")
	code, _, said := backstop(t.Context(), "verify")
	if code != exitFailed || strings.Count(said, "\n") != 1 || !strings.Contains(said, "BACKSTOP_DATABASE_URL") || strings.Contains(said, "topsecret") {
		t.Errorf("exit %d, %q", code, said)
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	install(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code, _, said := backstop(ctx, "token", "list"); code != exitFailed || !strings.Contains(said, "interrupted") {
		t.Errorf("exit %d, %q", code, said)
	}
}

// A key file that was lost must not be replaced in silence: nothing would open, and
// what is applied then would open nowhere else.
func TestANewMasterKeyBesideOldSecretsIsRefused(t *testing.T) {
	folder := install(t)
	t.Setenv("BACKSTOP_NOTIFY_ALLOW_CIDRS", "127.0.0.0/8")
	t.Setenv("BACKSTOP_LISTEN", "127.0.0.1:0")
	if code, _, errOut := backstop(t.Context(), "apply", "docs/tour/tour.yaml"); code != exitDone {
		t.Fatal(errOut)
	}
	file := filepath.Join(folder, "master.key")
	key, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, args := range [][]string{{"serve"}, {"apply", "docs/tour/tour.yaml"}, {"reseal"}} {
		if code, _, errOut := backstop(ctx, args...); code != exitFailed || !strings.Contains(errOut, "another master key") || ctx.Err() != nil {
			t.Errorf("%s exits with %d: %s", args[0], code, errOut)
		}
	}
	// An older key beside the new one is enough.
	made, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(made, key...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := backstop(t.Context(), "apply", "docs/tour/tour.yaml"); code != exitDone || !strings.Contains(out, "unchanged") {
		t.Errorf("with both keys: %d %s%s", code, out, errOut)
	}
}
