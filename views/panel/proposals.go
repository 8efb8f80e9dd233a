package panel

import (
	"strconv"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/field"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// Proposals lists the proposals about a thing; none = nothing is drawn.
func Proposals(p *ui.Page, all []console.Approval) templ.Component {
	return ui.If(len(all) > 0, Body(p, "proposals-title", text.Proposals, proposalList(p, all)))
}

// DecisionForms are the decisions that the reader may propose about one thing.
type DecisionForms struct {
	Action  string // where the forms are sent
	Key     string
	Subject act.Subject // as it is shown
	Offers  []approval.Offer
}

// Decisions holds a form for each decision that the reader may propose.
func Decisions(p *ui.Page, f DecisionForms) templ.Component {
	var forms []templ.Component
	for _, o := range f.Offers {
		forms = append(forms, decisionForm(p, f, o))
	}
	return Body(p, "decide-title", text.Decide, forms...)
}

// form asks for what a decision needs.
func (f DecisionForms) form(p *ui.Page, o approval.Offer) Form {
	above := []templ.Component{
		ui.Hidden("action", o.Action), ui.Hidden("version", strconv.FormatInt(f.Subject.Version, 10)),
		Small(p.T(wording.Decisions[o.Action].Effect)),
	}
	for _, param := range o.Fields {
		above = append(above, paramField(p, o.Action, param))
	}
	amount := Input{ID: o.Action + "-amount", Name: "amount"}
	if o.Free {
		amount.Says = p.T(tAmountUpTo, ui.MoneyText(o.Most, f.Subject.Currency))
		amount.More = templ.Attributes{"class": "input", "maxlength": "40"}
		above = append(above, AmountField(p, amount))
	} else if typed := f.Subject.TypedAmount(); typed != "" {
		amount.Says = p.T(text.TypeAmount, typed, f.Subject.Currency)
		amount.More = templ.Attributes{"class": "input", "data-typed": typed}
		above = append(above, AmountField(p, amount))
	}
	send := wording.Action(o.Action)
	if o.NeedsSecond {
		send = text.Propose
	}
	return Form{Name: o.Action, Action: f.Action, Key: f.Key, Above: above, Below: []templ.Component{Submit(p, "", send)}}
}

// paramField asks for one parameter. Money is typed below, as it is shown.
func paramField(p *ui.Page, action string, param field.Field) templ.Component {
	in := Input{
		ID: action + "-" + param.Name, Name: "params." + param.Name, Label: approval.ParamWords[param.Name],
		More: templ.Attributes{"required": param.Required},
	}
	switch param.Kind {
	case field.Flag:
		return Check(in.Name, p.T(approval.FlagWords[param.Name]))
	case field.Money:
		return templ.NopComponent
	case field.Choice:
		offered := []Choice{{}}
		for _, choice := range param.Choices {
			offered = append(offered, Choice{Value: choice, Label: p.T(approval.ChoiceWords[param.Name][choice])})
		}
		return choiceField(p, in, offered)
	case field.Text:
		in.Hint, in.More["maxlength"] = p.T(text.EvidenceHow), param.Max
		return TextField(p, in)
	}
	in.More["maxlength"] = param.Max
	return FreshField(p, in)
}

var tAmountUpTo = text.Text{ZH: "金额，最多 %s", EN: "Amount, at most %s"}
