package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// adjusts proposes n adjustments of first CNY and one more each, and returns the proposals' numbers.
func (h *harness) adjusts(t *testing.T, cookie string, n, first int) (all []string) {
	t.Helper()
	for i := range n {
		got := h.Post(t, cookie, "/accounts/adjust", append(formOf(t, h.Page(t, cookie, "/accounts").Body, "/accounts/adjust"),
			"debit", "bank:icbc", "credit", "supplier:wx", "currency", "CNY", "amount", strconv.Itoa(first+i),
			"reason", "their transfer arrived", "evidence", "the bank's statement, line 7")...)
		no := regexp.MustCompile(`apr_\d+`).FindString(got.Header.Get("Location"))
		if got.Status != http.StatusSeeOther || no == "" {
			t.Fatalf("propose an adjustment: %d %s", got.Status, got.Body)
		}
		all = append(all, no)
	}
	return all
}

// balanced folds the ledger and checks that it adds up to zero.
func (h *harness) balanced(t *testing.T) {
	t.Helper()
	if _, err := ledger.New(h.DB).Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, h.DB, "SELECT CAST(COALESCE(sum(balance), 0) AS BIGINT) FROM accounts"); n != 0 {
		t.Errorf("the ledger adds up to %d", n)
	}
}

// Several proposals are approved by selection and by rule: a dry run leaves out one's own and says
// so, and the form takes effect once.
func TestSeveralProposalsAreApprovedByOneForm(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		change(t, d, "DELETE FROM approvals")
		finance, lead := h.SignIn(t, access.Finance), h.SignIn(t, access.Lead)
		nos := append(h.adjusts(t, finance, 3, 100), h.adjusts(t, lead, 1, 50)...)
		if page := h.Page(t, lead, "/approvals?lang=en").Body; strings.Count(page, `name="row"`) != 3 {
			t.Error("there is not a box beside each proposal that waits for the viewer")
		}
		for query, want := range map[string][]string{
			"row=" + strings.Join(nos, "&row="): {"Your own", `value="30300 CNY"`, "Approve 3"},
			"pick=all":                          {"Your own", `value="30300 CNY"`, "Approve 3"},
			"pick=rule&action=adjust&currency=CNY&up_to=102.00": {"Your own", `value="30300 CNY"`, "Approve 3"},
			"pick=rule&action=adjust&currency=CNY&up_to=99.99":  {"None of these can be approved together"},
			"row=" + nos[0]: {`value="10000 CNY"`, "Approve 1"},
			"pick=rule&merchant=&action=refund&up_to=&currency=": {"None of these can be approved together"},
		} {
			page := h.Page(t, lead, "/approvals/many?lang=en&"+query).Body
			for _, text := range want {
				if !strings.Contains(page, text) {
					t.Errorf("%s lacks %q", query, text)
				}
			}
		}
		for _, bad := range []string{"", "row=apr_x", "pick=rule&up_to=5", "pick=rule&up_to=a&currency=CNY", "pick=rule&merchant=nobody"} {
			if got := h.Page(t, lead, "/approvals/many?"+bad); got.Status != http.StatusUnprocessableEntity {
				t.Errorf("%q: %d", bad, got.Status)
			}
		}
		form := formOf(t, h.Page(t, lead, "/approvals/many?row="+nos[0]+"&row="+nos[1]+"&row="+nos[3]).Body, "/approvals/many")
		body := url.Values{"reason": {"compared with the statement"}}
		for i := 0; i < len(form); i += 2 {
			body.Add(form[i], form[i+1])
		}
		var first string
		for range 2 {
			got := h.Call(t, http.MethodPost, "/approvals/many", body.Encode(), "Cookie", lead, "Content-Type",
				"application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
			if got.Status != http.StatusSeeOther {
				t.Fatalf("approve: %d %s", got.Status, got.Body)
			}
			page := h.Page(t, lead, got.Header.Get("Location")+"&lang=en").Body
			rows := regexp.MustCompile(`(?s)<table.*</table>`).FindString(page)
			if first == "" {
				first = rows
			}
			if rows != first || strings.Count(rows, "<tr data-row") != 2 || !strings.Contains(rows, `value="20100 CNY"`) {
				t.Errorf("the result is %s", rows)
			}
			if other := h.Page(t, finance, got.Header.Get("Location")); other.Status != http.StatusNotFound {
				t.Errorf("somebody else sees the result: %d", other.Status)
			}
		}
		if n := number(t, d, "SELECT count(*) FROM approvals WHERE state = 'done' AND tries = 1"); n != 2 {
			t.Errorf("%d are done, want 2", n)
		}
		h.balanced(t)
	})
}
