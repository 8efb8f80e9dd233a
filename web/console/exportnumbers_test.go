package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/list"
)

var totalRow = regexp.MustCompile(`^Total ([A-Z]{3}) \(([\d,]+) rows?\)$`)

// file is an export: its columns, its rows and, by currency, the rows of totals.
type file struct {
	heads  []string
	rows   [][]string
	totals map[string][]string
	counts map[string]int64 // of rows, by currency
}

func (h *harness) exportOf(t *testing.T, cookie, path string) (f file) {
	t.Helper()
	all := cells(t, h.Page(t, cookie, withWord(path, "format=csv&lang=en")).Body)
	f = file{heads: all[1], totals: map[string][]string{}, counts: map[string]int64{}}
	for _, row := range all[2:] {
		total := slices.IndexFunc(row, totalRow.MatchString)
		if total < 0 {
			f.rows = append(f.rows, row)
			continue
		}
		named := totalRow.FindStringSubmatch(row[total])
		f.totals[named[1]], f.counts[named[1]] = row, plainCount(t, named[2])
	}
	return f
}

// sums adds up a column by currency.
func (f file) sums(t *testing.T, column int) map[string]int64 {
	t.Helper()
	currency, all := slices.Index(f.heads, "Currency"), map[string]int64{}
	for _, row := range f.rows {
		if row[column] == "" || row[currency] == "" {
			continue
		}
		digits, negative := strings.CutPrefix(row[column], "-")
		minor, err := money.ParseMajor(digits, row[currency])
		if err != nil {
			t.Fatalf("%s %q: %v", f.heads[column], row, err)
		}
		if negative {
			minor = -minor
		}
		all[row[currency]] += minor
	}
	return all
}

// addsUp compares each total with the sum of its column, and returns how many totals there are.
func (f file) addsUp(t *testing.T, path string) (n int) {
	t.Helper()
	for currency, row := range f.totals {
		for i, total := range row {
			if total == "" || totalRow.MatchString(total) {
				continue
			}
			n++
			if sum := money.Format(f.sums(t, i)[currency], currency); sum != total {
				t.Errorf("%s: the total of %s in %s is %s, its rows add up to %s", path, f.heads[i], currency, total, sum)
			}
		}
	}
	return n
}

// TestEveryExportIsWhatItsListSays compares the export of every list, whole and filtered, with what the list
// says of its rows, and with the database: how many, and their money. Each total is the sum of its column.
func TestEveryExportIsWhatItsListSays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		h.seedFacts(t)
		cookie, totals := h.SignIn(t, access.Lead), 0
		paths := []string{
			"/orders?supplier=wx", "/orders?risk=stuck", "/orders?awaits=wx", "/notifications?cause=timeout", "/notifications?merchant=m2&window=31d",
			"/exceptions?state=needs", "/exceptions?risk=mismatch", "/callbacks?supplier=wx", "/callbacks?outcome=bad_signature",
			"/approvals?state=waiting", "/accounts?kind=merchant", "/accounts?currency=CNY", "/compensations?state=dead",
		}
		for _, s := range list.Registered() {
			if h.Page(t, cookie, "/"+s.Name).Status == http.StatusOK {
				paths = append(paths, "/"+s.Name)
			}
		}
		for _, path := range paths {
			n, sums := h.listed(t, cookie, path) // first: an export is itself a row of the audit
			if path == "/accounts" {             // without the rows of the trial balance
				n = int64(strings.Count(h.Page(t, cookie, path).Body, `<tr data-row><td><a href="/accounts/`))
			}
			f := h.exportOf(t, cookie, path)
			totals += f.addsUp(t, path)
			if int64(len(f.rows)) != n {
				t.Errorf("%s: the export has %d rows, the list says %d", path, len(f.rows), n)
			}
			if _, known := factsSQL[strings.Split(path, "?")[0]]; known && strings.Contains(path, "?") {
				if inSQL, _, _ := h.inSQL(t, access.Lead, path); int64(len(f.rows)) != inSQL {
					t.Errorf("%s: the export has %d rows, the database %d", path, len(f.rows), inSQL)
				}
			}
			amount := slices.IndexFunc(f.heads, func(head string) bool { return head == "Amount" || head == "Balance" })
			if amount < 0 || len(sums) == 0 {
				continue
			}
			var own []string
			for currency, minor := range f.sums(t, amount) {
				if minor != 0 {
					own = append(own, plainMoney(minor, currency))
				}
			}
			sums = slices.DeleteFunc(sums, func(s string) bool { return strings.HasPrefix(s, "0 ") })
			if slices.Sort(own); !slices.Equal(own, sums) {
				t.Errorf("%s: the export has the money %v, the list %v", path, own, sums)
			}
		}
		if totals < 20 {
			t.Errorf("%d totals were compared of %v", totals, paths)
		}
	})
}
