package ui

import (
	"slices"

	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Detail is the page of one object: its head, how it stands, and its panels in this order.
type Detail struct {
	List       Link              // the list that it belongs to
	Notices    []templ.Component // above the head
	Saved      bool              // the form that led here was accepted
	Title      string            // "" = its number
	No         string
	State      State             // beside the title; zero = none
	Tag        templ.Component   // beside the state; nil = none
	About      []Fact            // under the title, most without a label
	Actions    []templ.Component // buttons beside the title
	Icon       string            // of how it stands; "" = that of the state
	Says       string            // how it stands; "" = a panel shows it
	Next       []string          // what happens next
	Until      *int64            // the moment whose distance from now Says and Next give; nil = none
	Open       []Link            // open exceptions about it
	Lead       []templ.Component // above the panels
	Main, Side []templ.Component // panels
	Foot       []templ.Component // below the panels, and dialogs
}

// Link is a text that leads to a page.
type Link struct {
	Href  string
	Label text.Text
}

// If is the part of a page, or nothing.
func If(ok bool, part templ.Component) templ.Component {
	if ok {
		return part
	}
	return templ.NopComponent
}

// Fact is a line of a panel of facts. One without a value is left out.
type Fact struct {
	Label text.Text
	Kind  Kind // TextKind, IDKind, TimeKind or MoneyKind
	Cell
	technical bool
}

// TextFact is a text as it is stored, or in the person's language; class is that of its value.
func TextFact(label text.Text, class, value string) Fact {
	return Fact{Label: label, Cell: Cell{Text: value, Class: class}}
}

// LinkFact is a text that leads to a page.
func LinkFact(label text.Text, value string, href templ.SafeURL) Fact {
	return Fact{Label: label, Cell: Cell{Text: value, Href: string(href)}}
}

// IDFact is the end of an id, and the page that it leads to; "" = none.
func IDFact(label text.Text, id, href string) Fact {
	return Fact{Label: label, Kind: IDKind, Cell: Cell{Text: id, Href: href}}
}

// TimeFact is a moment; nil = there is none.
func TimeFact(label text.Text, at *int64) Fact {
	return Fact{Label: label, Kind: TimeKind, Cell: Cell{At: at}}
}

// MoneyFact is an amount.
func MoneyFact(label text.Text, minor int64, currency string) Fact {
	return Fact{Label: label, Kind: MoneyKind, Cell: Cell{Minor: minor, Currency: currency}}
}

// BodyFact is a value that is more than one of the others.
func BodyFact(label text.Text, body templ.Component) Fact {
	return Fact{Label: label, Cell: Cell{Body: body}}
}

// If leaves the fact out where it does not apply.
func (f Fact) If(ok bool) Fact {
	if !ok {
		return Fact{}
	}
	return f
}

// Technical folds the fact away below the others: only an engineer needs it.
func (f Fact) Technical() Fact {
	f.technical = true
	return f
}

// folded parts the facts that have a value into those that are shown and those that are folded away.
func folded(all []Fact) (shown, technical []Fact) {
	for _, f := range Given(all) {
		if f.technical {
			technical = append(technical, f)
		} else {
			shown = append(shown, f)
		}
	}
	return shown, technical
}

// As gives the value a class.
func (f Fact) As(class string) Fact {
	f.Class = class
	return f
}

// Whole shows all of an id.
func (f Fact) Whole() Fact {
	f.Show = f.Text
	return f
}

// Given are the facts that have a value.
func Given(all []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(all), func(f Fact) bool {
		return f.Body == nil && f.Text == "" && f.Currency == "" && f.At == nil
	})
}

// Rowed is what a table of rows shows that is no list with a filter.
func Rowed[T any](p *Page, columns []Column[T], rows []T) List {
	return List{}.Listed(p, Headings(columns), Cells(p, columns, rows))
}

// Beside is a table beside what the page is about, such as that of a chart's numbers.
func Beside[T any](p *Page, columns []Column[T], rows []T) List {
	l := Rowed(p, columns, rows)
	l.beside = true
	return l
}

// TablePanel is a panel with a table, or with what is said where there are no rows.
func TablePanel[T any](p *Page, id string, t ListTexts, columns []Column[T], rows []T) templ.Component {
	return tablePanel(p, id, Rowed(p, columns, rows).As(t))
}
