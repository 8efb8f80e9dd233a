package views

import (
	"encoding/json"
	"time"

	"backstop/internal/compensation"
)

// disputeFacts are what a dispute's detail says, as it is stored.
type disputeFacts struct {
	Reason string `json:"reason"`
	Status string `json:"status"`
	DueBy  string `json:"due_by"`
}

// due is when the time for evidence ends (Unix µs), 0 where none is wanted.
func (f disputeFacts) due() int64 {
	at, err := time.Parse(time.RFC3339, f.DueBy)
	if err != nil {
		return 0
	}
	return at.UnixMicro()
}

// wantsEvidence says whether the supplier waits for us.
func (f disputeFacts) wantsEvidence() bool {
	return f.due() != 0 && (f.Status == "needs_response" || f.Status == "warning_needs_response")
}

// disputeText says what a buyer demands, and until when it can be answered.
func disputeText(p *Page, x *compensation.Item) (what, then string) {
	var f disputeFacts
	_ = json.Unmarshal(x.Detail, &f) // what cannot be read has no words
	demanded := p.T(tNone)
	if x.Amount != 0 {
		demanded = sum(x.Amount, x.Currency)
	}
	what = p.T(tWhyDispute, demanded, p.T(wordFor(disputeReasons, f.Reason)), p.T(wordFor(disputeStates, f.Status)))
	if f.wantsEvidence() {
		return what, p.T(tWhyDisputeDue, p.full(f.due()))
	}
	return what, p.T(tWhyExceptionHow)
}

// disputeFact is one fact of a dispute in the person's language.
func (p *Page) disputeFact(name, value string) (text string, ok bool) {
	switch name {
	case "reason":
		return p.T(wordFor(disputeReasons, value)), true
	case "status":
		return p.T(wordFor(disputeStates, value)), true
	case "due_by":
		if at := (disputeFacts{DueBy: value}).due(); at != 0 {
			return p.full(at), true
		}
	}
	return "", false
}
