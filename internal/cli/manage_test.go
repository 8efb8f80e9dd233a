package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

// A command that changes something says what is so now.
func TestACommandSaysWhatItChanged(t *testing.T) {
	install(t)
	if code, _, stderr := backstop(t.Context(), "token", "add", "desk", "--scope", "monitor"); code != exitDone {
		t.Fatal(stderr)
	}
	for _, c := range []struct{ args, want string }{
		{"operator add li --role viewer", "operator li is added, with the roles viewer\none-time password: "},
		{"operator add ops2 --role lead", "operator ops2 is added, with the roles lead\none-time password: "},
		{"operator add ops3 --role lead", "operator ops3 is added"},
		{"operator role li ops,finance", "operator li has the roles ops,finance\n"},
		{"operator role li ops,finance", "operator li has the roles ops,finance\n"},
		{"operator merchants li", "operator li sees all merchants\n"},
		{"operator reset-password li", "operator li has a new password, and all sessions are ended\none-time password: "},
		{"operator disable li", "operator li is disabled\n"},
		{"operator enable li", "operator li is enabled\n"},
		{"operator token li --revoke", "operator li has no personal token\n"},
		{"token revoke desk", "token desk is revoked\n"},
		{"token revoke desk", "token desk is revoked\n"},
	} {
		code, out, stderr := backstop(t.Context(), strings.Fields(c.args)...)
		if code != exitDone || !strings.HasPrefix(out, c.want) || strings.HasSuffix(c.want, "\n") && out != c.want {
			t.Errorf("%s: exit %d, %q, %q", c.args, code, out, stderr)
		}
	}
	for _, args := range []string{"operator disable nobody", "token revoke nothing"} {
		if code, out, _ := backstop(t.Context(), strings.Fields(args)...); code != exitFailed || out != "" {
			t.Errorf("%s: exit %d, %q", args, code, out)
		}
	}
}

// What is wrong with the address of a PostgreSQL is one sentence that says what to try.
func TestADatabaseThatCannotBeUsedIsExplained(t *testing.T) {
	server := dbtest.OwnPostgres(t)
	execute(t, server, "", "CREATE ROLE till LOGIN PASSWORD 'right'")
	// The server takes everybody by default.
	execute(t, server, "", `DO $$ BEGIN
		EXECUTE format('COPY (SELECT unnest(ARRAY[%L, %L])) TO %L', 'host all postgres all trust', 'host all all all scram-sha-256',
			current_setting('hba_file'));
		PERFORM pg_reload_conf();
	END $$`)
	host := server[strings.Index(server, "@")+1:]
	host = host[:strings.IndexByte(host, '/')]
	t.Setenv("BACKSTOP_DATA", t.TempDir())
	t.Setenv("BACKSTOP_MASTER_KEY", strings.Repeat("0f", 32))
	if !waittest.Within(time.Minute, func() bool {
		d, err := db.Open(t.Context(), db.Options{URL: "postgres://till@" + host + "/postgres"})
		if err == nil {
			d.Close()
		}
		return err != nil
	}) {
		t.Fatal("the server still takes everybody")
	}
	for address, want := range map[string]string{
		"postgres://till:topsecret@127.0.0.1:1/pay":       "no PostgreSQL answers at 127.0.0.1:1 (connect: connection refused): start it",
		"postgres://till:topsecret@no.invalid/pay":        `the host "no.invalid" has no address here`,
		"postgres://till:right@" + host + "/nowhere":      "has no database \"nowhere\": create it (createdb -O till nowhere)",
		"postgres://nobody:topsecret@" + host + "/pay":    "refuses the user \"nobody\": correct user and password in BACKSTOP_DATABASE_URL",
		"postgres://till:topsecret@" + host + "/postgres": "refuses the user \"till\": correct user and password in BACKSTOP_DATABASE_URL",
	} {
		t.Setenv("BACKSTOP_DATABASE_URL", address)
		for _, command := range []string{"verify", "serve", "migrate up"} {
			code, out, stderr := backstop(t.Context(), strings.Fields(command)...)
			if code != exitFailed || out != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "topsecret") ||
				strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "SQLSTATE") {
				t.Errorf("%s: exit %d, %q, %q, want %q", command, code, out, stderr, want)
			}
		}
	}
}

func TestTheDatabaseOfADemoIsNamed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("BACKSTOP_DATA", data)
	if err := os.Mkdir(data+demoFolder, 0o700); err != nil {
		t.Fatal(err)
	}
	dbtest.WriteSQLite(t, data+demoFolder)
	code, out, stderr := backstop(t.Context(), "operator", "add", "li", "--role", "viewer")
	if code != exitFailed || out != "" || !strings.HasSuffix(stderr, "BACKSTOP_DATA="+data+"-demo\n") {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
}
