package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/list"
	"backstop/web"
	"backstop/web/webtest"
)

// TestHostileTextsInAddressesDoNothing puts hostile texts into the parameters of every page and of
// every list of the API: the answer is a page or a refusal, and no row comes, goes or changes hands.
func TestHostileTextsInAddressesDoNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		viewer := h.SignIn(t, access.Viewer)
		fields, any := map[string][]string{}, map[string]bool{}
		for _, s := range list.Registered() {
			for _, f := range s.Fields {
				fields["/"+s.Name], any[f.Name] = append(fields["/"+s.Name], f.Name), true
			}
		}
		pages := append(h.details(t), allPages...)
		h.Api(t, webtest.MonitorToken, http.MethodGet, webtest.Monitoring+"merchants", "") // the first use of a key is a row
		const leads = "SELECT count(*) FROM operators WHERE role = '" + access.Lead + "'"
		before, led := dbtest.Counts(t, d), number(t, d, leads)
		try := func(path string, texts, words []string, get func(path string) webtest.Answer) {
			for _, word := range words {
				for _, text := range texts {
					if got := get(path + "?" + word + "=" + url.QueryEscape(text)); got.Status >= http.StatusInternalServerError {
						t.Errorf("%s?%s=%.40q: %d", path, word, text, got.Status)
					}
				}
			}
		}
		page := func(path string) webtest.Answer { return h.Page(t, viewer, path) }
		others := []string{"window", "from", "to", "after", "rows", "columns", "newer", "format", "view", "sort", "q", "day", "currency", "kind"}
		read := map[string]bool{}
		for _, p := range pages {
			path, _, _ := strings.Cut(p.path, "?")
			if !read[path] {
				try(path, dbtest.Hostile, fields[path], page)
				try(path, dbtest.Hostile[1:2], others, page)
			}
			read[path] = true
		}
		words := append(slices.Sorted(maps.Keys(any)), append(others, "maker", "refused", "cursor", "limit")...)
		for _, r := range h.Routes() {
			if r.Method == http.MethodGet && r.Audience == web.ForMonitor {
				path := strings.NewReplacer(":code/lines", "merchant:m1/lines", ":code", "m1").Replace(r.Path)
				try(path, dbtest.Hostile, words, func(path string) webtest.Answer {
					return h.Api(t, webtest.MonitorToken, http.MethodGet, path, "")
				})
			}
		}
		for table, n := range dbtest.Counts(t, d) {
			if n != before[table] {
				t.Errorf("%s has %d rows after the reads, want %d", table, n, before[table])
			}
		}
		if n := number(t, d, leads); n != led {
			t.Errorf("%d operators are leads after the reads, want %d", n, led)
		}
	})
}
