package panel

import (
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/text"
)

// DecisionForms are the decisions that the reader may propose about one thing.
type DecisionForms struct {
	Action  string // where the forms are sent
	Key     string
	Subject act.Subject // as it is shown
	Offers  []approval.Offer
}

var tAmountUpTo = text.Text{ZH: "金额，最多 %s", EN: "Amount, at most %s"}
