package pages

import (
	"testing"
	"time"

	"backstop/views/ui"
)

// TestExportsHaveTheColumnsOfTheirPages makes sure that the columns chosen on a page can be
// exported.
func TestExportsHaveTheColumnsOfTheirPages(t *testing.T) {
	t.Parallel()
	p := &ui.Page{Language: "en", Zone: time.UTC}
	for _, l := range []struct {
		name  string
		texts ui.ListTexts
		words []string
	}{
		{"alerts", alertTexts, words(AlertColumns(p))},
		{"audit", auditTexts, words(ActColumns(p))},
		{"merchants", merchantTexts, words(MerchantColumns(p))},
		{"reports", reportTexts, words(ReportColumns(p))},
	} {
		known, seen := map[string]bool{}, map[string]bool{}
		for _, word := range l.words {
			known[word] = true
		}
		if len(l.texts.Columns) == 0 || len(l.texts.Columns) > 12 { // the stylesheet can hide 13, with the boxes
			t.Errorf("%s has %d columns", l.name, len(l.texts.Columns))
		}
		for _, c := range l.texts.Columns {
			if !known[c.Word] || seen[c.Word] {
				t.Errorf("%s: the column %q is not in its export, or is there twice", l.name, c.Word)
			}
			seen[c.Word] = true
		}
	}
}

// TestListsHaveColumnsThatCanBeChosen makes sure that each word is there once, on the page and in
// files.
func TestListsHaveColumnsThatCanBeChosen(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][]ui.Heading{
		"orders": ui.Headings(OrderColumns), "callbacks": ui.Headings(CallbackColumns), "exceptions": ui.Headings(ExceptionColumns),
		"notifications": ui.Headings(NotificationColumns),
		"compensations": ui.Headings(CompensationColumns), "approvals": ui.Headings(ApprovalColumns), "batches": ui.Headings(BatchColumns),
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

func words[T any](columns []ui.Column[T]) (all []string) {
	for _, c := range columns {
		all = append(all, c.Word)
	}
	return all
}
