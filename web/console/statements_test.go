package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
)

// The statement of a month ends with the balance of now, on the page and in files; that of all merchants
// has the sum of what we owe them.
func TestStatementsOfAMonthEndWithTheBalance(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	month := h.DB.NowTime().In(zone).Format("2006-01")
	balance := func(where string) int64 {
		return number(t, h.DB, "SELECT CAST(sum(balance) AS BIGINT) FROM accounts WHERE currency = 'CNY' AND "+where)
	}
	own, reserved := balance("code = 'merchant:m1'"), balance("code = 'merchant:m1:reserved'")
	one := h.Page(t, viewer, "/merchants/m1/statement?lang=en&month="+month).Body
	for _, part := range []string{
		`title="m1">Statement of `, "Opening balance", "Closing balance", fmt.Sprintf(`value="%d CNY"`, own), fmt.Sprintf(`value="%d CNY"`, reserved),
		fmt.Sprintf(`value="%d CNY"`, own+reserved), `value="349900 CNY"`, `href="/merchants/m1/statement?currency=&amp;day="`, "data-print",
	} {
		if !strings.Contains(one, part) {
			t.Errorf("the statement of m1 does not have %s", part)
		}
	}
	all := h.Page(t, viewer, "/statements?lang=en").Body
	if sum := fmt.Sprintf(`value="%d CNY"`, balance("code IN (SELECT 'merchant:' || code FROM merchants)")); strings.Count(all, sum) < 1 ||
		!strings.Contains(all, `href="/merchants/m1/statement?currency=CNY&amp;month=`+month+`"`) {
		t.Errorf("the statements do not have the sum %s", sum)
	}
	if page := h.Page(t, viewer, "/merchants/m1?lang=en").Body; !strings.Contains(page, `href="/merchants/m1/statement?month=`+month+`"`) {
		t.Error("the merchant's page does not lead to its statement of the month")
	}
	rows := cells(t, h.Page(t, viewer, "/merchants/m1/statement?lang=en&format=csv&month="+month).Body)
	closing := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "Closing balance" })
	if want := fmt.Sprintf("%d.%02d", own/100, own%100); closing < 0 || !slices.Equal(rows[closing], []string{"Closing balance", "CNY", "", want}) {
		t.Errorf("the file closes with %q, not %s", rows[max(closing, 0)], want)
	}
	rows = cells(t, h.Page(t, viewer, "/statements?lang=en&format=csv").Body)
	if at := slices.Index(rows[1], "Payments, number"); at < 0 || rows[2][0] != "m1" || rows[2][at] != "1" ||
		!strings.HasPrefix(rows[len(rows)-1][0], "Total CNY") {
		t.Errorf("the file of all merchants is %q", rows)
	}
}

// A month that has no statement says which one to choose, in the form.
func TestAMonthWithoutAStatementSaysWhichToChoose(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	for path, want := range map[string]string{
		"month=2026-13": "use a month such as", "month=2199-01": "2199-01 has not begun: choose", "month=2001-01": "nothing was booked in 2001-01",
	} {
		for _, page := range []string{"/statements?lang=en&", "/merchants/m1/statement?lang=en&"} {
			got := h.Page(t, viewer, page+path)
			if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, want) || !strings.Contains(got.Body, `type="month"`) {
				t.Errorf("%s%s: %d without %q", page, path, got.Status, want)
			}
			if got := h.Page(t, viewer, page+path+"&format=csv"); got.Status != http.StatusUnprocessableEntity ||
				!strings.Contains(got.Body, want[1:]) { // there it begins a sentence
				t.Errorf("%s%s as a file: %d", page, path, got.Status)
			}
		}
	}
	if got := h.Page(t, viewer, "/statements?currency=x"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown currency: %d", got.Status)
	}
	if got := h.Page(t, viewer, "/merchants/none/statement?month="); got.Status != http.StatusNotFound {
		t.Errorf("a merchant that does not exist: %d", got.Status)
	}
}
