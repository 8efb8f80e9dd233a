package search

import (
	"testing"

	"backstop/views/figures"
	"backstop/views/funds"
	"backstop/views/operators"
	"backstop/views/orders"
	"backstop/views/partners"
	"backstop/views/ui"
	"backstop/views/work"
)

// TestListsHaveColumnsThatCanBeChosen makes sure that each name is there once, on the page and in
// files.
func TestListsHaveColumnsThatCanBeChosen(t *testing.T) {
	t.Parallel()
	for list, columns := range map[string][]ui.Heading{
		"orders": ui.Headings(orders.OrderColumns), "callbacks": ui.Headings(orders.CallbackColumns),
		"exceptions":    ui.Headings(work.ExceptionColumns),
		"notifications": ui.Headings(orders.NotificationColumns),
		"compensations": ui.Headings(work.CompensationColumns), "approvals": ui.Headings(work.ApprovalColumns),
		"batches": ui.Headings(work.BatchColumns),
		"alerts":  ui.Headings(work.AlertColumns), "audit": ui.Headings(operators.ActColumns),
		"merchants": ui.Headings(partners.MerchantColumns),
		"reports":   ui.Headings(figures.ReportColumns),
		"refunds":   ui.Headings(funds.RefundColumns), "payouts": ui.Headings(funds.PayoutColumns),
		"disputes": ui.Headings(funds.DisputeColumns),
		"accounts": ui.Headings(funds.AccountColumns), "lines": ui.Headings(funds.LineColumns),
	} {
		page, file := map[string]bool{}, map[string]bool{}
		for _, c := range columns {
			if c.Name == "" || c.In != ui.ExportOnly && page[c.Name] || c.In != ui.PageOnly && file[c.Name] {
				t.Errorf("%s: the column %q is there twice", list, c.Name)
			}
			page[c.Name], file[c.Name] = page[c.Name] || c.In != ui.ExportOnly, file[c.Name] || c.In != ui.PageOnly
		}
		shown := 0
		for name, is := range page {
			if is {
				shown++
			}
			if is && !file[name] {
				t.Errorf("%s: the column %q of the page is not in files", list, name)
			}
		}
		if shown == 0 || shown > 13 { // the stylesheet can hide 14, with the boxes
			t.Errorf("%s has %d columns", list, shown)
		}
	}
}
