package config

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// load reads the given variables and an optional file; a backstop.yaml in the working
// directory is not read.
func load(t *testing.T, file string, env ...string) (Config, error) {
	t.Helper()
	src := Source{Environ: env}
	if file != "" {
		src.File = filepath.Join(t.TempDir(), "backstop.yaml")
		if err := os.WriteFile(src.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(src)
}

func value(c Config, name string) (string, Origin) {
	for _, row := range c.Effective() {
		if row.Name == name {
			return row.Value, row.Origin
		}
	}
	return "no such row", ""
}

func TestDocsAreCurrent(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != Markdown() {
		t.Fatalf("%s is stale: run go generate ./internal/base/config", path)
	}
}

// TestDefaultsAreThePromisedOnes has the names and defaults that users rely on.
func TestDefaultsAreThePromisedOnes(t *testing.T) {
	t.Parallel()
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"LISTEN": "127.0.0.1:8080", "DATA": "./data", "DATABASE_URL": "", "REDIS_URL": "",
		"PUBLIC_URL": "http://127.0.0.1:8080", "MASTER_KEY": "", "MASTER_KEY_FILE": "",
		"TRUSTED_PROXIES": "", "NOTIFY_ALLOW_CIDRS": "", "NOTIFY_CONCURRENCY": "50",
		"NOTIFY_SCHEDULE": "day", "NOTIFY_TIMEOUT": "10s", "NOTIFY_MAX_IN_FLIGHT": "10",
		"BREAKER_OPEN": "5m", "CLOSING_GRACE": "15m", "ALERT_URLS": "", "SWEEP_AT": "03:30",
		"TIMEZONE": "Asia/Shanghai", "LOG_LEVEL": "info", "LOG_FORMAT": "auto",
		"CALLBACK_BODY_LIMIT": "256KiB", "API_BODY_LIMIT": "64KiB", "CALLBACK_WAIT": "4s",
		"CALLBACK_QUEUE": "4096", "COMMIT_BATCH": "64", "COMMIT_WRITERS": "4",
		"ORDER_EXPIRY": "30m", "ORDER_EXPIRY_MAX": "720h", "API_RATE": "2000/s",
		"CALLBACK_RATE": "2000/s", "RETENTION_CALLBACKS": "2160h", "RETENTION_ATTEMPTS": "2160h",
		"RETENTION_HISTORY": "17520h", "RETENTION_NOTIFICATIONS": "17520h", "REFUSED_RATE": "10/s", "REFUSED_ROWS": "100000",
		"CLEANUP_EVERY": "5m", "SHUTDOWN_TIMEOUT": "15s", "DATABASE_POOL": "16", "NODE_NAME": "",
	} {
		if got, origin := value(c, "BACKSTOP_"+name); got != want || origin != FromDefault {
			t.Errorf("%s = %q (%s), want %q by default", name, got, origin, want)
		}
	}
	if c.MasterKeyPath() != filepath.Join("data", "master.key") {
		t.Errorf("master key in %s", c.MasterKeyPath())
	}
}

func TestEverySettingIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range settings {
		f := reflect.TypeFor[Config]().Field(s.field)
		if s.Name == "" || s.Doc == "" || s.Group == "" || s.Accepts() == "" {
			t.Errorf("%s: name, doc, group or accepted values are missing: %+v", f.Name, s)
		}
		if !strings.EqualFold(f.Name, strings.ReplaceAll(s.Name, "_", "")) {
			t.Errorf("field %s is called %s outside", f.Name, s.Name)
		}
		if s.Default == "" && s.Empty == "" {
			t.Errorf("%s does not describe an empty value", s.Name)
		}
		if _, ok := units[f.Type]; ok && s.min >= s.max {
			t.Errorf("%s accepts nothing: min %d, max %d", s.Name, s.min, s.max)
		}
		if seen[s.Name] {
			t.Errorf("%s is declared twice", s.Name)
		}
		seen[s.Name] = true
		if form := f.Tag.Get("form"); form != "" && forms[form].holds == nil {
			t.Errorf("%s has the unknown form %q", s.Name, form)
		}
	}
}

func TestEnvironmentWinsOverFileOverDefault(t *testing.T) {
	t.Parallel()
	c, err := load(t, "notify_timeout: 7s\nbreaker_open: 60s\n", "BACKSTOP_NOTIFY_TIMEOUT=3s", "PATH=/bin")
	if err != nil {
		t.Fatal(err)
	}
	if c.NotifyTimeout != 3*time.Second || c.BreakerOpen != time.Minute || c.BreakerFailures != 5 {
		t.Errorf("timeout %s, open %s, failures %d", c.NotifyTimeout, c.BreakerOpen, c.BreakerFailures)
	}
	for name, want := range map[string]Origin{
		"BACKSTOP_NOTIFY_TIMEOUT": FromEnv, "BACKSTOP_BREAKER_OPEN": FromFile, "BACKSTOP_BREAKER_FAILURES": FromDefault,
	} {
		if _, origin := value(c, name); origin != want {
			t.Errorf("%s comes from %s, want %s", name, origin, want)
		}
	}
}

func TestEmptyCountsAsNotSet(t *testing.T) {
	t.Parallel()
	c, err := load(t, "notify_timeout:\nbreaker_open: \"\"\nclosing_grace: 1m\n", "BACKSTOP_LISTEN=", "BACKSTOP_CLOSING_GRACE=")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.NotifyTimeout != 10*time.Second || c.BreakerOpen != 5*time.Minute ||
		c.ClosingGrace != time.Minute {
		t.Errorf("listen %q, timeout %s, open %s, grace %s", c.Listen, c.NotifyTimeout, c.BreakerOpen, c.ClosingGrace)
	}
}

func TestListsReadTheSameFromBothPlaces(t *testing.T) {
	t.Parallel()
	fromEnv, err := load(t, "", "BACKSTOP_TRUSTED_PROXIES=10.0.0.0/8, fd00::/8", "BACKSTOP_NOTIFY_SCHEDULE=1s,3s,5s",
		"BACKSTOP_ALERT_URLS=telegram://t@telegram?chats=1,2,slack://a/b")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := load(t,
		"trusted_proxies: [10.0.0.0/8, 'fd00::/8']\nnotify_schedule: \"1s,3s,5s\"\nalert_urls:\n  - telegram://t@telegram?chats=1,2\n  - slack://a/b\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{fromEnv, fromFile} {
		if !slices.Equal(c.TrustedProxies, fromEnv.TrustedProxies) || len(c.TrustedProxies) != 2 {
			t.Errorf("proxies %v", c.TrustedProxies)
		}
		if len(c.AlertURLs) != 2 || c.AlertURLs[0].Reveal() != "telegram://t@telegram?chats=1,2" ||
			c.AlertURLs[1].Reveal() != "slack://a/b" {
			t.Errorf("alert URLs %q and the rest of %d", c.AlertURLs[0].Reveal(), len(c.AlertURLs))
		}
	}
}

func TestAZoneAndTimeAreRead(t *testing.T) {
	t.Parallel()
	c, err := load(t, "sweep_at: 04:05\ntimezone: Europe/Berlin\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.SweepAt != (TimeOfDay{4, 5}) || c.Timezone.String() != "Europe/Berlin" {
		t.Errorf("sweep at %s in %s", c.SweepAt, c.Timezone)
	}
}

func TestPercentagesAreExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Percent{"": 99500, "99%": 99000, "99.5%": 99500, "99.999%": 99999, "50%": 50000, "95.050%": 95050} {
		c, err := load(t, "", "BACKSTOP_NOTIFY_OBJECTIVE="+text)
		if err != nil || c.NotifyObjective != want {
			t.Errorf("%q: %d, %v, want %d", text, c.NotifyObjective, err, want)
		}
	}
	if c, err := load(t, "notify_objective: 99.95%\n"); err != nil || c.NotifyObjective.String() != "99.95%" ||
		c.NotifyObjective.Share() != 0.9995 {
		t.Errorf("%s, %v, %v", c.NotifyObjective, c.NotifyObjective.Share(), err)
	}
	for _, text := range []string{"99.5", "100%", "49.9%", "99.9999%", "0.995", "-1%", "99,5%", ".5%", "99.%"} {
		if c, err := load(t, "", "BACKSTOP_NOTIFY_OBJECTIVE="+text); err == nil ||
			!strings.Contains(err.Error(), "BACKSTOP_NOTIFY_OBJECTIVE") {
			t.Errorf("%q is accepted as %s: %v", text, c.NotifyObjective, err)
		}
	}
}

func TestThePublicURLFollowsTheListener(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, public, want string }{
		{"0.0.0.0:9000", "", "http://localhost:9000"},
		{":9000", "", "http://localhost:9000"},
		{"[::]:9000", "", "http://localhost:9000"},
		{"[::1]:9000", "", "http://[::1]:9000"},
		{"127.0.0.1:0", "", ""},
		{"127.0.0.1:9000", "https://pay.example.com/", "https://pay.example.com"},
	} {
		got, err := load(t, "", "BACKSTOP_LISTEN="+c.listen, "BACKSTOP_PUBLIC_URL="+c.public)
		if err != nil || got.PublicURL != c.want {
			t.Errorf("listen %q, public %q: %q, %v; want %q", c.listen, c.public, got.PublicURL, err, c.want)
		}
	}
}

func TestTheConsolesURLFollowsWhatIsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, public, adminListen, admin, want string }{
		{"127.0.0.1:9000", "", "", "", "http://127.0.0.1:9000"},
		{"127.0.0.1:9000", "", "0.0.0.0:9001", "", "http://localhost:9001"},
		{"127.0.0.1:9000", "", "127.0.0.1:0", "", ""},
		{"127.0.0.1:9000", "https://pay.example.com/", "127.0.0.1:9001", "", "https://pay.example.com"},
		{"127.0.0.1:9000", "https://pay.example.com", "127.0.0.1:9001", "https://desk.example.com/", "https://desk.example.com"},
		{"127.0.0.1:9000", "https://pay.example.com", "", "https://desk.example.com", "https://desk.example.com"},
	} {
		got, err := load(t, "", "BACKSTOP_LISTEN="+c.listen, "BACKSTOP_PUBLIC_URL="+c.public, "BACKSTOP_ADMIN_LISTEN="+c.adminListen,
			"BACKSTOP_ADMIN_URL="+c.admin)
		if err != nil || got.AdminURL != c.want {
			t.Errorf("%+v: %q, %v", c, got.AdminURL, err)
		}
	}
	if _, err := load(t, "", "BACKSTOP_LISTEN=127.0.0.1:9000", "BACKSTOP_ADMIN_LISTEN=127.0.0.1:9000"); err == nil ||
		!strings.Contains(err.Error(), "BACKSTOP_ADMIN_LISTEN") {
		t.Errorf("one address for both: %v", err)
	}
}

func TestEmbeddedUntilAnAddressIsGiven(t *testing.T) {
	t.Parallel()
	c, err := load(t, "", "BACKSTOP_DATABASE_URL=postgres://u:p@127.0.0.1:5432/backstop")
	if err != nil {
		t.Fatal(err)
	}
	if database, redis := c.Embedded(); database || !redis {
		t.Errorf("embedded database %v, redis %v; want only redis", database, redis)
	}
}
