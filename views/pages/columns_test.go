package pages

import (
	"testing"

	"backstop/views/ui"
)

// TestListsHaveColumnsThatCanBeChosen makes sure that each word is there once, on the page and in
// files.
func TestListsHaveColumnsThatCanBeChosen(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][]ui.Heading{
		"orders": ui.Headings(OrderColumns), "callbacks": ui.Headings(CallbackColumns), "exceptions": ui.Headings(ExceptionColumns),
		"notifications": ui.Headings(NotificationColumns),
		"compensations": ui.Headings(CompensationColumns), "approvals": ui.Headings(ApprovalColumns), "batches": ui.Headings(BatchColumns),
		"alerts": ui.Headings(AlertColumns), "audit": ui.Headings(ActColumns), "merchants": ui.Headings(MerchantColumns),
		"reports": ui.Headings(ReportColumns),
		"refunds": ui.Headings(RefundColumns), "payouts": ui.Headings(PayoutColumns), "disputes": ui.Headings(DisputeColumns),
		"accounts": ui.Headings(AccountColumns), "lines": ui.Headings(LineColumns),
	} {
		page, file := map[string]bool{}, map[string]bool{}
		for _, c := range columns {
			if c.Word == "" || c.In != ui.ExportOnly && page[c.Word] || c.In != ui.PageOnly && file[c.Word] {
				t.Errorf("%s: the column %q is there twice", name, c.Word)
			}
			page[c.Word], file[c.Word] = page[c.Word] || c.In != ui.ExportOnly, file[c.Word] || c.In != ui.PageOnly
		}
		shown := 0
		for word, is := range page {
			if is {
				shown++
			}
			if is && !file[word] {
				t.Errorf("%s: the column %q of the page is not in files", name, word)
			}
		}
		if shown == 0 || shown > 12 { // the stylesheet can hide 13, with the boxes
			t.Errorf("%s has %d columns", name, shown)
		}
	}
}
