package web_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/web"
	"backstop/web/webtest"

	"github.com/uptrace/bun"
)

// queries counts what goes to a database.
type queries struct{ n atomic.Int64 }

func (q *queries) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }
func (q *queries) AfterQuery(context.Context, *bun.QueryEvent)                        { q.n.Add(1) }

// A stranger must not be able to make the database work by sending keys.
func TestForgedKeysCostNoQuery(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		count := new(queries)
		d.DB, d.Read = d.DB.WithQueryHook(count), d.Read.WithQueryHook(count)
		h := openOn(t, d)
		session := webtest.BearerOf(h.SignIn(t, access.Viewer))
		service, err := access.NewTokens(h.DB, h.Keys).Add(t.Context(), "board", access.Monitor)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(key string) int { return h.Api(t, key, "GET", "/api/v1/admin/exceptions", "").Status }
		for _, key := range []string{session, service, webtest.MonitorToken} {
			if got := ask(key); got != http.StatusOK {
				t.Fatalf("a valid key: %d", got)
			}
		}
		before := count.n.Load()
		for i := range 200 {
			last := string("ABCDEFGHIJ"[i%10])
			for _, key := range []string{
				seal.NewToken(""), seal.NewToken("") + strings.Repeat(last, 13), seal.NewToken("bst_"), seal.NewToken("bst_") + strings.Repeat(last, 13),
				session[:20] + last + last + session[22:], service[:20] + last + last + service[22:], "bso_" + session, "x",
			} {
				if key == session || key == service {
					continue
				}
				if got := ask(key); got != http.StatusUnauthorized {
					t.Fatalf("%q: %d", key, got)
				}
			}
			if got := h.Page(t, h.CookieName()+"="+seal.NewToken("")+strings.Repeat(last, 13),
				"/orders"); got.Status != http.StatusSeeOther {
				t.Fatalf("a forged cookie: %d", got.Status)
			}
		}
		if n := count.n.Load() - before; n != 0 {
			t.Errorf("2,000 forged keys cost %d queries", n)
		}
	})
}

// Each route of the admin API has a scope, and opens to tokens that have it.
func TestEveryRouteOfTheAdminAPIHasAScope(t *testing.T) {
	t.Parallel()
	h := open(t)
	keys := map[string]string{}
	for name, scopes := range map[string]string{
		"reader": "monitor", "actor": "control", "both": "monitor,control",
		"compensator": "compensate", "all": "monitor,control,compensate",
	} {
		key, err := access.NewTokens(h.DB, h.Keys).Add(t.Context(), name, scopes)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	keys["of another scope"] = webtest.OddToken
	seen := map[string]int{}
	for _, r := range h.Routes() {
		if r.Audience != web.ForMonitor {
			if r.Scope != "" {
				t.Errorf("%s %s has the scope %q, which nothing checks", r.Method, r.Path, r.Scope)
			}
			continue
		}
		want := access.Control
		if slices.Contains(forPersons, r.Method+" "+r.Path) {
			want = ""
		} else if r.Method == http.MethodGet || r.Method == http.MethodHead {
			want = access.Monitor
		} else if !strings.Contains(r.Path, "/merchant") && !strings.Contains(r.Path, "/subscriptions/") {
			want = access.Compensate // of orders and of what is to be done again
		}
		refusal := "403 forbidden scope"
		if r.Person {
			refusal = "403 person_needed"
		}
		if seen[r.Scope]++; r.Scope != want {
			t.Errorf("%s %s needs the scope %q, want %q", r.Method, r.Path, r.Scope, want)
		}
		path := regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(r.Path, "m1")
		for name, key := range keys {
			may := want != "" && name == "all" || want != "" && want != access.Compensate && name == "both" ||
				name == "reader" && want == access.Monitor || name == "actor" && want == access.Control || name == "compensator" &&
				want == access.Compensate
			got := h.Api(t, key, r.Method, path, "").Problem()
			if refused := got == refusal; refused == may || strings.HasPrefix(got, "401") || !refused && strings.HasPrefix(got, "403") {
				t.Errorf("%s %s with the token %s: %s", r.Method, path, name, got)
			}
		}
	}
	if seen[access.Monitor] < 7 || seen[access.Control] < 5 || seen[access.Compensate] < 2 || seen[""] != len(forPersons) {
		t.Errorf("looked at %v", seen)
	}
	// A role without the right is refused without naming a scope: it has none.
	viewer := webtest.BearerOf(h.SignIn(t, access.Viewer))
	if got := h.Api(t, viewer, "POST", webtest.Monitoring+"breakers/m1/open", "").Body; !strings.Contains(got, "this needs the permission "+
		string(access.ControlBreakers)) {
		t.Errorf("a viewer: %s", got)
	}
	if got := h.Api(t, viewer, "POST", webtest.Monitoring+"breakers/m1/open", "").Problem(); got != "403 forbidden" {
		t.Errorf("a viewer: %s", got)
	}
}

// A new token can be used at once: the cache of existing tokens must not refuse it for a
// quarter of a second.
func TestATokenWorksAsSoonAsItIsMade(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		for i := range 20 {
			secret, err := access.NewTokens(d, h.Keys).Add(t.Context(), fmt.Sprintf("t%d", i), access.Monitor)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Call(t, http.MethodGet, "/api/v1/admin/exceptions", "", "Authorization",
				"Bearer "+secret); got.Status != http.StatusOK {
				t.Fatalf("token %d: %d %s", i, got.Status, got.Body)
			}
		}
	})
}
