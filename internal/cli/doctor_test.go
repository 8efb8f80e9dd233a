package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/seal"
)

// doctorFault is something wrong with an installation, and how the doctor names it.
type doctorFault struct {
	name, want string
	plant      func(t *testing.T, folder string)
}

func TestTheDoctorNamesEachFault(t *testing.T) {
	closed := fmt.Sprintf("127.0.0.1:%d", queuetest.FreePort(t))
	for _, f := range []doctorFault{
		{"a setting", "wrong  settings", func(t *testing.T, _ string) { t.Setenv("BACKSTOP_DRAIN", "soon") }},
		{"no folder", "wrong  data folder", func(t *testing.T, folder string) { t.Setenv("BACKSTOP_DATA", filepath.Join(folder, "none")) }},
		{"a file for a folder", "is no folder", func(t *testing.T, folder string) { t.Setenv("BACKSTOP_DATA", filepath.Join(folder, db.File)) }},
		{"a folder for all", "chmod 700", func(t *testing.T, folder string) { change(t, os.Chmod(folder, 0o755)) }},
		{"a key for all", "chmod 600", func(t *testing.T, folder string) { change(t, os.Chmod(filepath.Join(folder, "master.key"), 0o644)) }},
		{"a key that is none", "wrong  master key", func(t *testing.T, folder string) {
			change(t, os.WriteFile(filepath.Join(folder, "master.key"), []byte("short"), 0o600))
		}},
		{"a key file that is missing", "BACKSTOP_MASTER_KEY_FILE is missing", func(t *testing.T, folder string) {
			t.Setenv("BACKSTOP_MASTER_KEY_FILE", filepath.Join(folder, "mounted.key"))
		}},
		{"another key", "wrong  secrets", func(t *testing.T, folder string) {
			change(t, os.Remove(filepath.Join(folder, "master.key")))
			_, err := seal.LoadOrCreate(filepath.Join(folder, "master.key"))
			change(t, err)
		}},
		{"no database", "there is no database", func(t *testing.T, folder string) { change(t, os.Remove(filepath.Join(folder, db.File))) }},
		{"a database that is none", "wrong  database", func(t *testing.T, folder string) {
			change(t, os.WriteFile(filepath.Join(folder, db.File), []byte(strings.Repeat("no database ", 400)), 0o600))
		}},
		{"an empty database", "the database is empty", func(t *testing.T, folder string) {
			change(t, os.WriteFile(filepath.Join(folder, db.File), nil, 0o600))
		}},
		{"no Redis", "correct BACKSTOP_REDIS_URL", func(t *testing.T, _ string) { t.Setenv("BACKSTOP_REDIS_URL", "redis://"+closed) }},
		{"an address of another machine", "set BACKSTOP_LISTEN to an address of this machine", func(t *testing.T, _ string) {
			t.Setenv("BACKSTOP_LISTEN", "192.0.2.1:8080")
		}},
		{"a port of another program", "is this server Backstop?", func(t *testing.T, _ string) {
			other := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(other.Close)
			t.Setenv("BACKSTOP_LISTEN", other.Listener.Addr().String())
		}},
		{"a port that does not answer", "taken by another program", func(t *testing.T, _ string) {
			mute, err := net.Listen("tcp", "127.0.0.1:0")
			change(t, err)
			t.Cleanup(func() { mute.Close() })
			t.Setenv("BACKSTOP_LISTEN", mute.Addr().String())
		}},
		{"an endpoint that is away", "wrong  endpoints", func(t *testing.T, folder string) {
			declare(t, folder, "merchants: [{code: m2, signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=, notify: {urls: [\"http://"+closed+"/n\"]}}]\n")
		}},
		{"a supplier that is away", "wrong  suppliers", func(t *testing.T, folder string) {
			t.Setenv("BACKSTOP_SUPPLIER_ALLOW_CIDRS", "127.0.0.0/8")
			declare(t, folder, "suppliers: [{code: st, kind: stripe, config: {webhook_secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw], "+
				"api_key: sk_test_51Mxyz0123456789, base_url: \"http://"+closed+"\"}}]\n")
		}},
		{"a node of another version", "they have 2 versions", func(t *testing.T, folder string) {
			node(t, folder, 1, "v1 a", "k")
			node(t, folder, 2, "v2 b", "k")
		}},
		{"a node with other keys", "has other master keys", func(t *testing.T, folder string) {
			node(t, folder, 1, "v1 a", "k")
			node(t, folder, 2, "v1 a", "other")
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			folder := installed(t)
			if code, out, stderr := backstop(t.Context(), "doctor"); code != exitDone || strings.Contains(out, wrongState) {
				t.Fatalf("before: exit %d, %s%s", code, out, stderr)
			}
			f.plant(t, folder)
			code, out, _ := backstop(t.Context(), "doctor")
			if !strings.Contains(out, f.want) || strings.Contains(out, "\nwrong") && code != exitFailed {
				t.Errorf("exit %d, want %q:\n%s", code, f.want, out)
			}
		})
	}
}

// installed is an installation with a merchant and a supplier, on ports of its own.
func installed(t *testing.T) (folder string) {
	t.Helper()
	folder = install(t)
	change(t, os.Chmod(folder, 0o700))
	t.Setenv("BACKSTOP_LISTEN", fmt.Sprintf("127.0.0.1:%d", queuetest.FreePort(t)))
	t.Setenv("BACKSTOP_NOTIFY_ALLOW_CIDRS", "127.0.0.0/8")
	merchant := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(merchant.Close)
	declare(t, folder, "merchants: [{code: m1, signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=, notify: {urls: [\""+merchant.URL+"/n\"]}}]\n")
	return folder
}

// declare applies a file.
func declare(t *testing.T, folder, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "apply.yaml")
	change(t, os.WriteFile(file, []byte(text), 0o600))
	if code, out, stderr := backstop(t.Context(), "apply", file); code != exitDone {
		t.Fatalf("apply: exit %d, %s%s", code, out, stderr)
	}
}

// node adds a running server.
func node(t *testing.T, folder string, slot int, build, keys string) {
	t.Helper()
	d, err := db.Open(context.Background(), db.Options{Dir: folder, Pool: 1})
	change(t, err)
	defer d.Close()
	_, err = d.NewRaw("INSERT INTO nodes (slot, name, boot, build, key_ids, started_at, seen_at, newest_migration) VALUES (?, ?, ?, ?, ?, 0, ?, '')",
		500+slot, fmt.Sprintf("node-%d", slot), 9000+slot, build, keys, time.Now().Add(time.Minute).UnixMicro()).Exec(t.Context())
	change(t, err)
}

func change(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
