package panel

import (
	"cmp"
	"maps"
	"slices"

	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Input is a field of a form.
type Input struct {
	ID      string
	Name    string // "" = the id
	Label   text.Text
	Says    string // instead of the label; "" = the label
	Hint    string
	Value   string
	More    templ.Attributes // of its control
	kind    control
	choices []Choice
}

// control is how a field is filled in.
type control int

const (
	ownControl control = iota // the page draws it
	lineControl
	linesControl
	selectControl
)

// Choice is one that a field offers.
type Choice struct {
	Value, Label string
	Chosen       bool
	More         templ.Attributes
}

// FormRow is a row of a form: its label, its control, which is the children, and what helps to fill it in.
func FormRow(id, label, hint string) templ.Component {
	return fieldRow(label, Input{ID: id, Hint: hint})
}

// InputField is a field with one line to type in.
func InputField(p *ui.Page, in Input) templ.Component {
	return lineField(p, in, templ.Attributes{"value": in.Value})
}

// BlankField is a field that no page fills in, such as that of a password.
func BlankField(p *ui.Page, in Input) templ.Component { return lineField(p, in, templ.Attributes{}) }

// FreshField is a field that neither the page nor the browser fills in.
func FreshField(p *ui.Page, in Input) templ.Component {
	return lineField(p, in, templ.Attributes{"class": "input", "autocomplete": "off"})
}

// AmountField is a field for an amount, which is typed from nothing.
func AmountField(p *ui.Page, in Input) templ.Component {
	return lineField(p, in, templ.Attributes{"inputmode": "decimal", "autocomplete": "off", "required": true})
}

func lineField(p *ui.Page, in Input, usual templ.Attributes) templ.Component {
	maps.Copy(usual, in.More)
	in.kind, in.More = lineControl, usual
	return fieldRow(in.label(p), in)
}

// TextField is a field with several lines to type in.
func TextField(p *ui.Page, in Input) templ.Component {
	in.kind = linesControl
	return fieldRow(in.label(p), in)
}

// SelectField is a field with choices, of which Value is the chosen one.
func SelectField(p *ui.Page, in Input, offered ...Choice) templ.Component {
	offered = slices.Clone(offered)
	for i, c := range offered {
		offered[i].Chosen = c.Value == in.Value
	}
	return choiceField(p, in, offered)
}

func choiceField(p *ui.Page, in Input, offered []Choice) templ.Component {
	in.kind, in.choices = selectControl, offered
	return fieldRow(in.label(p), in)
}

func (in Input) label(p *ui.Page) string {
	if in.Says != "" {
		return in.Says
	}
	return p.T(in.Label)
}

// attributes are those of its control.
func (in Input) attributes() templ.Attributes {
	all := templ.Attributes{"id": in.ID, "name": cmp.Or(in.Name, in.ID)}
	maps.Copy(all, in.More)
	return all
}
