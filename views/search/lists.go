package search

import (
	"backstop/views/figures"
	"backstop/views/funds"
	"backstop/views/partners"
	"backstop/views/ui"
	"backstop/views/work"
)

// TextsOf returns the texts of a list.
func TextsOf(list string) ui.ListTexts {
	for _, l := range viewedLists {
		if l.name == list {
			return l.texts()
		}
	}
	for _, l := range []struct {
		name  string
		texts ui.ListTexts
	}{
		{"accounts", funds.AccountTexts},
		{"alerts", work.AlertTexts},
		{"batches", work.BatchTexts},
		{"comparisons", work.ComparisonTexts},
		{"merchants", partners.MerchantTexts},
		{"reports", figures.ReportTexts},
	} {
		if l.name == list {
			return l.texts
		}
	}
	return ui.ListTexts{} // without fields
}
