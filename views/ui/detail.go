package ui

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Detail is the page of one object: its head, how it stands, and its panels in this order.
type Detail struct {
	List       Link // the list that it belongs to
	No         string
	Saved      bool // the form that led here was accepted
	State      State
	Tag        templ.Component // beside the state; nil = none
	Minor      int64
	Currency   string
	At         int64             // Unix µs
	Says, Next string            // how it stands, and what happens next
	Open       []Link            // open exceptions about it
	Main, Side []templ.Component // panels
}

// Link is a text that leads to a page.
type Link struct {
	Href  string
	Label text.Text
}

// Fact is a line of a panel of facts. One without a value is left out.
type Fact struct {
	Label text.Text
	Kind  Kind // TextKind, IDKind, TimeKind or MoneyKind
	Cell
}

// TextFact is a text as it is stored, or in the person's language; class is that of its value.
func TextFact(label text.Text, class, value string) Fact {
	return Fact{Label: label, Cell: Cell{Text: value, Class: class}}
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

// UnlessZero leaves an amount of zero out.
func (f Fact) UnlessZero() Fact {
	if f.Minor == 0 {
		return Fact{}
	}
	return f
}
