package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"backstop/internal/alert"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/merchant"
	"backstop/internal/testmode"
)

// Test mode shares nothing with the live application, and sends nothing to people.
func TestTestModeHasNothingOfTheLiveApplication(t *testing.T) {
	t.Parallel()
	const live, redis = "postgres://u:p@127.0.0.1:5432/live", "redis://127.0.0.1:6379/3"
	load := func(environ ...string) config.Config {
		t.Helper()
		c, err := config.Load(config.Source{Environ: append(environ, "BACKSTOP_TEST_LISTEN=127.0.0.1:9", "BACKSTOP_DATA=/d")})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, err := TestConfig(load("BACKSTOP_REDIS_URL="+redis, "BACKSTOP_ALERT_URLS=slack://a@b", "BACKSTOP_ADMIN_LISTEN=127.0.0.1:7"))
	if err != nil || c.Data != "/d/test" || c.DatabaseURL.IsSet() || c.Listen != "127.0.0.1:9" || c.AdminListen != "" ||
		len(c.AlertURLs)+len(c.ReportURLs) != 0 || c.MasterKeyPath() != "/d/master.key" || c.TestListen != "" {
		t.Errorf("%+v, %v", c, err)
	}
	at, err := redisAt(Options{Config: c, Test: true})
	if err != nil || at.DB != 4 {
		t.Errorf("%+v, %v", at, err)
	}
	for _, r := range []struct {
		want    string
		environ []string
	}{
		{"BACKSTOP_TEST_DATABASE_URL", []string{"BACKSTOP_DATABASE_URL=" + live}},
		{"BACKSTOP_TEST_DATABASE_URL", []string{"BACKSTOP_DATABASE_URL=" + live, "BACKSTOP_TEST_DATABASE_URL=" + live}},
		{"BACKSTOP_TEST_URL", []string{
			"BACKSTOP_OIDC_ISSUER=https://id.example.com", "BACKSTOP_OIDC_CLIENT_ID=b", "BACKSTOP_OIDC_ROLES=g=ops",
			"BACKSTOP_ADMIN_URL=https://pay.example.com",
		}},
		{"BACKSTOP_TEST_REDIS_URL", []string{"BACKSTOP_REDIS_URL=redis-cluster://127.0.0.1:7000"}},
		{"BACKSTOP_TEST_REDIS_URL", []string{"BACKSTOP_REDIS_URL=" + redis, "BACKSTOP_TEST_REDIS_URL=" + redis}},
	} {
		if _, err := TestConfig(load(r.environ...)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", r.environ, err)
		}
	}
}

// Two URLs may lead to one database.
func TestTestModeDoesNotRunOnTheLiveDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	err := failing(t, "BACKSTOP_DATABASE_URL="+url, "BACKSTOP_TEST_DATABASE_URL="+url+"&application_name=test",
		"BACKSTOP_MASTER_KEY="+strings.Repeat("0f", 32), "BACKSTOP_TEST_LISTEN=127.0.0.1:0")
	if !errors.Is(err, db.ErrNameTaken) {
		t.Errorf("it is %v", err)
	}
}

// A test mode that cannot run raises an alert, and the live application serves.
func TestALiveApplicationServesWithoutItsTestMode(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := failing(t, "BACKSTOP_TEST_LISTEN="+taken.Addr().String()); !strings.Contains(err.Error(), "BACKSTOP_TEST_LISTEN") {
		t.Errorf("it is %v", err)
	}
}

// The console of the live application gives keys while test mode runs.
func TestARunningTestModeGivesKeys(t *testing.T) {
	t.Parallel()
	a, stop := running(t, "BACKSTOP_TEST_LISTEN=127.0.0.1:0")
	defer stop()
	waittest.Until(t, "test mode runs", func() bool { return a.test.handler()() != nil })
	first, err := a.test.Issue(t.Context(), "m1", "Galaxy")
	again, wrong := a.test.Issue(t.Context(), "m1", "Galaxy")
	if err != nil || wrong != nil || !merchant.IsTestKey(first.APIKey) || first.SigningSecret == "" || again.APIKey == first.APIKey ||
		again.SigningSecret != "" {
		t.Errorf("%+v %v, then %+v %v", first, err, again, wrong)
	}
	var live int
	if err := a.db.Read.NewRaw("SELECT count(*) FROM merchants").Scan(t.Context(), &live); err != nil || live != 0 {
		t.Errorf("%d live merchants, %v", live, err)
	}
}

// failing runs an application and returns why its test mode does not run. The application must go on.
func failing(t *testing.T, environ ...string) error {
	t.Helper()
	a, stop := running(t, environ...)
	defer stop()
	waittest.Until(t, "test mode has failed", func() bool { return a.test.err() != nil })
	raised := slices.ContainsFunc(a.readHere(t.Context()), func(r alert.Reading) bool {
		return r.Rule == alert.TestModeDown && r.Value == 100
	})
	if _, err := a.test.Issue(t.Context(), "m1", "Galaxy"); !raised || a.test.handler()() != nil || !errors.Is(err, testmode.ErrAway) {
		t.Errorf("it raises no alert, or would be given requests: %v", err)
	}
	return a.test.err()
}

// running runs an application; stop fails the test if it has ended before, or ends with an error.
func running(t *testing.T, environ ...string) (a *App, stop func()) {
	t.Helper()
	cfg := configured(t, append(environ, "BACKSTOP_LISTEN=127.0.0.1:0", "BACKSTOP_REDIS_URL=redis://127.0.0.1:1")...)
	a, err := New(t.Context(), Options{Config: cfg, Roles: Roles{true, true, true}, Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return a, func() {
		select {
		case err := <-ended:
			t.Errorf("the live application ended: %v", err)
		default:
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		a.Close()
	}
}
