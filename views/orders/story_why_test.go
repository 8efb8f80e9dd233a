package orders

import (
	"testing"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/views/ui"
)

// Every rule by which an order may stand has a sentence with a mood and an icon.
func TestEveryRuleHasASentence(t *testing.T) {
	t.Parallel()
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: time.UnixMicro(0)}
	for _, rule := range console.Rules {
		s := StoryData{Story: &console.Story{Order: &order.Order{}, Why: console.Why{
			Rule: rule, Dead: &compensation.Item{}, Exception: &exception.Item{}, Delivery: &notify.Delivery{}, Breaker: &breaker.Row{},
		}}}
		what, then := whyTexts(p, s)
		if m := moods[rule]; what == "" || then == "" || m.kind == "" || m.icon == "" {
			t.Errorf("%s is shown as %+v with %q, %q", rule, m, what, then)
		}
		if done := p.T(tWhyDone); what == done && rule != console.WhyDone {
			t.Errorf("%s has no sentence of its own", rule)
		}
	}
}
