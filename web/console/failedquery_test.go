package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/webtest"
)

// A query that fails leaves its values neither in the log nor in an answer. On PostgreSQL, the
// server's message would quote the value that is no number; SQLite's quotes the column.
func TestTheValuesOfAFailedQueryAreShownNowhere(t *testing.T) {
	t.Parallel()
	const secret = "sEcReT4711"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		lead := h.SignIn(t, access.Lead)
		breaks := "ALTER TABLE merchants RENAME COLUMN code TO " + secret
		if d.IsPostgres() {
			breaks = "ALTER TABLE merchants ALTER COLUMN code TYPE BIGINT USING id"
		}
		if _, err := d.ExecContext(t.Context(), breaks); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{
			"/orders?merchant=" + secret, "/notifications?recipient=" + secret, "/search?q=" + secret, "/orders?format=csv&merchant=" + secret,
		} {
			got := h.Page(t, lead, path)
			others := strings.NewReplacer("="+secret, "", `"`+secret+`"`, "").Replace(got.Body) // links and the search field repeat the address
			if got.Status < http.StatusInternalServerError || strings.Contains(others, secret) {
				t.Errorf("%s: %d\n%s", path, got.Status, others)
			}
		}
		got := h.Api(t, webtest.MonitorToken, http.MethodGet, webtest.Monitoring+"logs?merchant="+secret, "")
		if got.Status < http.StatusInternalServerError || strings.Contains(got.Body, secret) {
			t.Errorf("the API: %d %s", got.Status, got.Body)
		}
		logged := h.Logged()
		if strings.Contains(logged, secret) || strings.Contains(logged, "SELECT") {
			t.Errorf("the log:\n%s", logged)
		}
		if !strings.Contains(logged, ", statement ") {
			t.Errorf("the log does not name what failed:\n%s", logged)
		}
	})
}
