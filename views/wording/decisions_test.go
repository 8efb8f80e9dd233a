package wording

import (
	"slices"
	"testing"

	"backstop/internal/approval"
	"backstop/internal/base/field"
	"backstop/internal/base/text"
	"backstop/internal/decision"
	"backstop/internal/fund/payout"
)

func TestEveryParameterOfADecisionHasItsTexts(t *testing.T) {
	t.Parallel()
	all := slices.Concat(decision.Kinds(decision.Options{}), (&payout.Machine{}).Decisions())
	d := approval.NewDesk(approval.Options{}, all...)
	for _, a := range all {
		o, err := d.Form(a.Object, a.Name)
		if err != nil || Decisions[a.Name].Effect == (text.Text{}) {
			t.Errorf("%s: %v, or it is not said what it does", a.Name, err)
		}
		for _, f := range o.Fields {
			if f.Kind == field.Flag && approval.FlagWords[f.Name] == (text.Text{}) || approval.ParamWords[f.Name] == (text.Text{}) {
				t.Errorf("%s of %s has no label", f.Name, a.Name)
			}
			if (f.Kind == field.Line || f.Kind == field.Word || f.Kind == field.Text) && f.Max == 0 {
				t.Errorf("%s of %s has no bound", f.Name, a.Name)
			}
			for _, choice := range f.Choices {
				if approval.ChoiceWords[f.Name][choice] == (text.Text{}) {
					t.Errorf("%s=%s of %s has no words", f.Name, choice, a.Name)
				}
			}
		}
	}
}
