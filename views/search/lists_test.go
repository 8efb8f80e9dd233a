package search

import (
	"strings"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/funds"
	"backstop/views/operators"
	"backstop/views/orders"
	"backstop/views/ui"
	"backstop/views/work"
)

// TestEveryFieldOfAListHasItsTexts has every list be asked by each of its fields: the
// form labels it, and what it suggests is said in words. An event's type is a word of
// the contract, and shown as it is.
func TestEveryFieldOfAListHasItsTexts(t *testing.T) {
	t.Parallel()
	for spec, texts := range map[*list.Spec]ui.ListTexts{
		console.OrderList: orders.OrderTexts, console.CallbackList: orders.CallbackTexts(""),
		console.DeliveryList:  orders.NotificationTexts,
		console.ExceptionList: work.ExceptionTexts, console.AlertList: work.AlertTexts, console.ActList: operators.AuditTexts,
		console.CompensationList: work.CompensationTexts,
		console.RefundList:       funds.RefundTexts, console.PayoutList: funds.PayoutTexts, console.DisputeList: funds.DisputeTexts,
		console.AccountList: funds.AccountTexts,
	} {
		l := ui.List{Spec: spec}.As(texts)
		for _, f := range spec.Fields {
			field := l.Field(f.Name)
			if field.Label == (text.Text{}) {
				t.Errorf("%s: the field %s has no label", spec.Name, f.Name)
			}
			for _, value := range f.Values {
				if f.Name != "type" && (field.Value == nil || strings.HasPrefix(field.Value(value).EN, value) &&
					strings.Contains(value, "_")) {
					t.Errorf("%s: %s %s has no word", spec.Name, f.Name, value)
				}
			}
		}
	}
}
