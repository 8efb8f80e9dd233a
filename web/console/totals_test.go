package console

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/report"
)

var (
	totalsForm = regexp.MustCompile(`(?s)<span class="totals">.*?</footer>`)
	moneyForm  = regexp.MustCompile(`<data class="money" value="([^"]*)">`)
)

// totalsOf returns what the row of totals below a list says, as "minor currency".
func totalsOf(t *testing.T, h *harness, cookie, path string, form *regexp.Regexp) []string {
	t.Helper()
	body := h.Page(t, cookie, path).Body
	var all []string
	for _, m := range moneyForm.FindAllStringSubmatch(form.FindString(body), -1) {
		all = append(all, html.UnescapeString(m[1]))
	}
	slices.Sort(all)
	return all
}

func plainMoney(minor int64, currency string) string {
	return strconv.FormatInt(minor, 10) + " " + currency
}

// seedRisk writes money in every part of the money at risk, in several currencies.
func seedRisk(t *testing.T, d *db.DB) {
	t.Helper()
	seed(t, d)
	now := d.Now()
	change(t, d,
		"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
			" VALUES (?0, 'STUCK1', 1, 'S1', 1, 12345, 'CNY', 2, '', '', 'paying', 2, ?1, ?1, ?1), (?0 + 1, 'STUCK2', 2, 'S2', 1, 7, 'JPY', 0, '', '', 'paying', 2, ?1, ?1, ?1)", d.NewID(), now-120_000_000)
	change(t, d,
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
			" VALUES (?0, 'late_payment', 'open', 1, 1, 0, '', 'late1', 999, 'USD', '{}', ?1, ?1), (?0 + 1, 'notify_exhausted', 'open', 0, 1, (SELECT id FROM orders WHERE order_no = 'STUCK1'), 'STUCK1', 'n1', 12345, 'CNY', '{}', ?1, ?1)", d.NewID(), now)
	var open []report.Sum // as the counter of a program that ran would be
	if err := d.Read.NewRaw(
		"SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor FROM deliveries AS d WHERE (d.next_at IS NOT NULL OR d.status = 'sending' AND d.lease_until IS NOT NULL) AND d.currency <> '' GROUP BY 1").Scan(t.Context(), &open); err != nil {
		t.Fatal(err)
	}
	change(t, d, "DELETE FROM report_unnotified")
	for _, s := range open {
		change(t, d, "INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (1, ?, ?, ?)", s.Currency, s.Orders,
			s.Minor)
	}
}

// TestEveryListWithMoneyHasTotals compares each list's row of totals with the rows themselves.
func TestEveryListWithMoneyHasTotals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		cookie := h.SignIn(t, access.Lead)
		for _, path := range []string{
			"/orders?window=31d", "/notifications?window=31d", "/exceptions", "/compensations", "/approvals",
			"/refunds", "/payouts", "/disputes",
		} {
			name, _, _ := strings.Cut(path, "?")
			join := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
			rows := cells(t, h.Page(t, cookie, path+join+"format=csv&lang=en&columns=amount,currency").Body)
			sums := map[string]int64{}
			for _, r := range rows[2:] {
				if strings.HasPrefix(r[0], "Total ") {
					continue
				}
				currency, amount := r[0], r[1]
				if currency == "" {
					continue
				}
				minor, err := money.ParseMajor(amount, currency)
				if err != nil {
					t.Fatalf("%s: %q: %v", path, r, err)
				}
				sums[currency] += minor
			}
			var want []string
			for currency, minor := range sums {
				want = append(want, plainMoney(minor, currency))
			}
			slices.Sort(want)
			if got := totalsOf(t, h, cookie, path, totalsForm); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s has the totals %v, its rows %v", name, got, want)
			}
		}
	})
}
