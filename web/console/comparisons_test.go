package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/comparison"
)

// The page of a comparison has the orders that differed, and whether they still do.
func TestComparisonsShowAgreementAndWhatDiffers(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_SHADOW=true")
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	if page := h.Page(t, cookie, "/comparisons?lang=en"); !strings.Contains(page.Body, "No comparison yet") ||
		!strings.Contains(page.Body, "backstop import outcomes") {
		t.Errorf("nothing was compared: %s", page.Body)
	}
	paid := comparison.Outcome{Status: "paid", PaidAmount: 349900, TradeNo: "4200002614202611201428773301"}
	id, err := comparison.Save(t.Context(), h.DB, "there.jsonl", comparison.Counts{Same: 6, Differ: 2, OnlyThere: 1, OnlyHere: 1},
		[]comparison.Difference{
			{OrderNo: "2026112000000001", Here: comparison.Outcome{Status: "pending"}, There: paid}, // it was paid since
			{OrderNo: "2026112000000003", Here: comparison.Outcome{Status: "closed"}, There: comparison.Outcome{Status: "paid", PaidAmount: 12345}},
			{OrderNo: "A-9", There: comparison.Outcome{Status: "paid", PaidAmount: 500}},
		})
	if err != nil {
		t.Fatal(err)
	}
	one := fmt.Sprintf("/comparisons/%d", id)
	for path, want := range map[string][]string{
		"/comparisons?lang=en": {"there.jsonl", "60.00%", one + "?side=there", "1 match"},
		one + "?lang=en": {
			"agreement 60.00%, 6 the same, 4 different", "Only the first 3 differences", "Paid · ¥3,499.00 CNY · 4200002614202611201428773301",
			"The same by now", "Paid · 12.345 KWD", "Still different", `href="/orders/2026112000000001"`,
		},
		one + "?lang=zh":            {"一致率 60.00%", "仅对方有", "已一致", "仍不一致"},
		one + "?lang=en&format=csv": {"2026112000000003,Different,Closed,", "A-9,Only there,", "Paid · 500"},
	} {
		page := h.Page(t, cookie, path)
		for _, text := range want {
			if page.Status != 200 || !strings.Contains(page.Body, text) {
				t.Errorf("%s: %d, without %s: %s", path, page.Status, text, page.Body)
			}
		}
	}
	if page := h.Page(t, cookie, one+"?lang=en&side=there").Body; strings.Contains(page, "2026112000000001") || !strings.Contains(page, "A-9") ||
		strings.Contains(page, `href="/orders/A-9"`) {
		t.Errorf("only there: %s", page)
	}
	for path, want := range map[string]int{"/comparisons/1": 404, "/comparisons/x": 404, one + "?side=nowhere": 422} {
		if page := h.Page(t, cookie, path); page.Status != want {
			t.Errorf("%s: %d, want %d", path, page.Status, want)
		}
	}
}

// The navigation leads to comparisons in shadow mode only.
func TestOnlyShadowModeLeadsToComparisons(t *testing.T) {
	t.Parallel()
	for setting, leads := range map[string]bool{"BACKSTOP_SHADOW=true": true, "BACKSTOP_SHADOW=false": false} {
		h := open(t, setting)
		if page := h.Page(t, h.SignIn(t, access.Ops), "/queues").Body; strings.Contains(page, `href="/comparisons"`) != leads {
			t.Errorf("%s: %s", setting, page)
		}
	}
}
