package console

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/analytics"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/views/ui"
)

// spanOf is the length in seconds of the rows that a range is read from.
var spanOf = map[string]int{"24h": 300, "7d": 3600, "30d": 86400, "90d": 86400, "400d": 86400}

var titleForm = regexp.MustCompile(`(?s)<title>(.*?)</title>`)

// column adds up a column of counts of a figure's export.
func column(t *testing.T, rows [][]string, i int) (n int64) {
	t.Helper()
	for _, row := range rows[2:] {
		count, err := strconv.ParseInt(row[i], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", row, err)
		}
		n += count
	}
	return n
}

// bars adds up what the columns of a chart say by a form with one group.
func (h *harness) bars(t *testing.T, cookie, path string, form *regexp.Regexp) (n int64) {
	t.Helper()
	for _, title := range titleForm.FindAllStringSubmatch(h.fragment(t, cookie, path).Body, -1) {
		if said := form.FindStringSubmatch(html.UnescapeString(title[1])); said != nil {
			n += plainCount(t, said[1])
		}
	}
	return n
}

// TestTheNumbersOfAnalyticsAddUp compares what each figure says in its tiles, in the columns of its chart and
// in its export with the database, over each range.
func TestTheNumbersOfAnalyticsAddUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		past(t, d, h.Config.Timezone, 36, 5)
		cookie := h.SignIn(t, access.Viewer)
		for _, r := range analytics.Ranges {
			read, err := analytics.Read(t.Context(), d, h.Config.Timezone, r)
			if err != nil {
				t.Fatal(err)
			}
			inSQL := func(what, table string) int64 {
				span := spanOf[r.Name]
				if table == "report_volume" { // which has no finer rows
					span = max(span, 3600)
				}
				return number(t, d, fmt.Sprintf("SELECT COALESCE(CAST(sum(%s) AS BIGINT), 0) FROM %s WHERE span_s = %d AND start >= %d", what, table, span,
					read.Starts[0]))
			}
			export := func(figure string) [][]string {
				return cells(t, h.Page(t, cookie, "/analytics/"+figure+"?format=csv&lang=en&range="+r.Name).Body)
			}
			body := h.Page(t, cookie, "/analytics?lang=en&range="+r.Name).Body
			page := body + strings.Join(strings.Fields(tagForm.ReplaceAllString(body, " ")), " ")
			says := func(text string) {
				t.Helper()
				if !strings.Contains(page, text) {
					t.Errorf("%s: the page does not say %q", r.Name, text)
				}
			}
			same := func(what string, all ...int64) {
				t.Helper()
				if all[0] == 0 || len(slices.Compact(slices.Clone(all))) != 1 {
					t.Errorf("%s: %s are %v", r.Name, what, all)
				}
			}
			raised, notified := inSQL("raised", "report_orders"), inSQL("notified", "report_orders")
			table := export("notified")
			same("the orders to notify", raised, column(t, table, 1),
				h.bars(t, cookie, "/analytics/notified/_chart?lang=en&range="+r.Name, regexp.MustCompile(`orders to notify: ([\d,]+)`)))
			same("the notified orders", notified, column(t, table, 2))
			says(ui.Count(notified) + " of " + ui.Count(raised) + " orders")
			same("the waits", inSQL("orders", "report_waits"), column(t, export("waits"), 1))
			failed := inSQL("attempts", "report_failures")
			same("the failed attempts", failed, column(t, export("causes"), 2),
				h.bars(t, cookie, "/analytics/causes/_chart?lang=en&range="+r.Name, regexp.MustCompile(`([\d,]+) failed attempts`)))
			says(ui.Count(failed) + " failed attempts")
			for _, by := range []string{"merchants", "suppliers"} {
				table := export(by)
				same("the orders by "+by, inSQL("created", "report_volume"), column(t, table, 2))
				same("the paid orders by "+by, inSQL("paid", "report_volume"), column(t, table, 4))
				says(ui.Count(plainCount(t, table[2][2])))
			}
		}
		barsOfCallbacks(t, h, cookie)
	})
}

// barsOfCallbacks compares the bars above the list of callbacks with its authentic rows.
func barsOfCallbacks(t *testing.T, h *harness, cookie string) {
	t.Helper()
	change(t, h.DB, "DELETE FROM report_callbacks")
	change(t, h.DB, "INSERT INTO report_callbacks (start, supplier_id, outcome, n) SELECT received_at - received_at % 60000000, supplier_id,"+
		" outcome, count(*) FROM callbacks WHERE received_at > ? GROUP BY 1, 2, 3", h.DB.Now()-3600_000_000)
	authentic := number(t, h.DB, fmt.Sprint("SELECT count(*) FROM callbacks WHERE received_at > ", h.DB.Now()-3600_000_000))
	body := h.Page(t, cookie, "/callbacks?lang=en&window=1h").Body
	listed, _ := h.listed(t, cookie, "/callbacks?window=1h&refused=no")
	if said := regexp.MustCompile(`Authentic callbacks from suppliers: ([\d,]+) succeeded, ([\d,]+) did not`).FindStringSubmatch(html.UnescapeString(body)); said == nil {
		t.Error("there are no bars above the list of callbacks")
	} else if n := plainCount(t, said[1]) + plainCount(t, said[2]); authentic == 0 || n != authentic || listed != authentic {
		t.Errorf("the bars are of %d callbacks, the list has %d, the database %d", n, listed, authentic)
	}
}
