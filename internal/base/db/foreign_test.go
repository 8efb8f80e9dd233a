package db_test

import (
	"net/url"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// TestWhatTheServerSetsForOthersDoesNotReachUs: a shared PostgreSQL may have settings for a user
// or a database. Some would lose acknowledged data, or make correct statements fail.
func TestWhatTheServerSetsForOthersDoesNotReachUs(t *testing.T) {
	t.Parallel()
	address := dbtest.PostgresURL(t)
	admin := dbtest.Open(t, db.Options{URL: address})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	role := u.Query().Get("search_path") + "_owner" // roles belong to the whole server
	for _, s := range []string{
		"CREATE ROLE " + role + " SUPERUSER LOGIN PASSWORD 'x'",
		"ALTER ROLE " + role + " SET synchronous_commit = off",
		"ALTER ROLE " + role + " SET default_transaction_isolation = serializable",
		"ALTER ROLE " + role + " SET standard_conforming_strings = off",
	} {
		if _, err := admin.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP ROLE " + role) })
	u.User = url.UserPassword(role, "x")
	settings := func(u *url.URL) map[string]string {
		t.Helper()
		d, err := db.Open(t.Context(), db.Options{URL: u.String()})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var rows []struct{ Name, Setting string }
		err = d.NewRaw("SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_commit', 'default_transaction_isolation')").Scan(
			t.Context(), &rows)
		if err != nil {
			t.Fatal(err)
		}
		is := map[string]string{}
		for _, r := range rows {
			is[r.Name] = r.Setting
		}
		return is
	}
	is := settings(u)
	if is["synchronous_commit"] != "on" {
		t.Errorf("synchronous_commit is %s: a crash of PostgreSQL loses what was acknowledged", is["synchronous_commit"])
	}
	if is["default_transaction_isolation"] != "read committed" {
		t.Errorf("transactions are %s: they fail where ours wait", is["default_transaction_isolation"])
	}
	if _, err := admin.ExecContext(t.Context(), "ALTER ROLE "+role+" SET synchronous_commit = remote_apply"); err != nil {
		t.Fatal(err)
	}
	if is := settings(u); is["synchronous_commit"] != "remote_apply" {
		t.Errorf("synchronous_commit is %s: the server waits for its standby", is["synchronous_commit"])
	}
}
