package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/sheet"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"

	"github.com/a-h/templ"
)

// Column is one column of a list: on the page, on a phone and in its export.
type Column[T any] struct {
	Heading
	Cell func(*Page, T) Cell
	// Body is what the page shows instead of the cell; nil = the cell.
	Body func(*Page, T) templ.Component
}

// Heading is the heading of a column, and how its cells look.
type Heading struct {
	Name  string // in ?columns= and files; never renamed
	Label text.Text
	File  text.Text // its heading in files; zero = the label
	Kind  Kind
	In    Where
	Class string          // of the heading: "num" or "opt"
	Td    string          // the class of its cells
	Hint  text.Text       // where the pointer rests; zero = none
	Head  templ.Component // instead of the label; nil = none
}

// Kind says which fields of a column's cells are used.
type Kind int

// Kinds of columns.
const (
	TextKind Kind = iota // a dash where it is empty
	NoteKind             // a text that may be cut off
	IDKind               // its end, and a link
	TimeKind
	MoneyKind
	BalanceKind // money that is not added up
	CountKind
	StateKind
)

// cellClasses are the classes of cells whose column has none of its own.
var cellClasses = map[Kind]string{
	TextKind: "nowrap", NoteKind: "err", TimeKind: "nowrap mono small muted", MoneyKind: "num", BalanceKind: "num", CountKind: "num",
	StateKind: "nowrap",
}

// Where is where a column is.
type Where int

// Places of columns.
const (
	Shown      Where = iota
	Optional         // left out where the page is narrow
	ExportOnly       // not on the page
	PageOnly         // not in files
	OnChoice         // on the page only where it is chosen
)

// Cell is one value; the Kind says which fields are used.
type Cell struct {
	Text, Href, Currency string
	Show                 string // what the page shows instead of the value; "" = the value
	Class                string // beside that of the column
	Title                string // where the pointer rests on the page
	Minor                int64  // an amount or a count
	At                   *int64 // Unix µs; nil = none
	State                State
	Body                 templ.Component // page only
}

// Col is a column whose cells are made as its kind needs them.
func Col[T any](name string, label text.Text, kind Kind, cell func(*Page, T) Cell) Column[T] {
	h := Heading{Name: name, Label: label, Kind: kind, Td: cellClasses[kind]}
	if kind == MoneyKind || kind == BalanceKind || kind == CountKind {
		h.Class = "num"
	}
	return Column[T]{Heading: h, Cell: cell}
}

// TextCol is a column of texts as they are stored.
func TextCol[T any](name string, label text.Text, of func(T) string) Column[T] {
	return Col(name, label, TextKind, func(_ *Page, row T) Cell { return Cell{Text: of(row)} })
}

// WordCol is a column of texts in the person's language.
func WordCol[T any](name string, label text.Text, of func(*Page, T) string) Column[T] {
	return Col(name, label, TextKind, func(p *Page, row T) Cell { return Cell{Text: of(p, row)} })
}

// NoteCol is a column of texts that may be cut off.
func NoteCol[T any](name string, label text.Text, of func(*Page, T) string) Column[T] {
	return Col(name, label, NoteKind, func(p *Page, row T) Cell { return Cell{Text: of(p, row)} })
}

// NumberCol is a column of the numbers of a list's rows, each with the row's page.
func NumberCol[T any](name string, label text.Text, of func(T) (no string, href templ.SafeURL)) Column[T] {
	return Col(name, label, TextKind, func(_ *Page, row T) Cell {
		no, href := of(row)
		return Cell{Text: no, Show: Tail(no), Title: no, Href: string(href)}
	}).As("mono small nowrap")
}

// IDCol is a column of ids, each with the page that it leads to; "" = none.
func IDCol[T any](name string, label text.Text, of func(T) (id, href string)) Column[T] {
	return Col(name, label, IDKind, func(_ *Page, row T) Cell {
		id, href := of(row)
		return Cell{Text: id, Href: href}
	})
}

// TimeCol is a column of moments in the page's zone; nil = none.
func TimeCol[T any](name string, label text.Text, at func(T) *int64) Column[T] {
	return Col(name, label, TimeKind, func(_ *Page, row T) Cell { return Cell{At: at(row)} })
}

// MoneyCol is a column of amounts; a row without a currency has none.
func MoneyCol[T any](name string, label text.Text, of func(T) (int64, string)) Column[T] {
	return Col(name, label, MoneyKind, func(_ *Page, row T) Cell {
		minor, currency := of(row)
		return Cell{Minor: minor, Currency: currency}
	})
}

// CountCol is a column of numbers.
func CountCol[T any](name string, label text.Text, of func(T) int64) Column[T] {
	return Col(name, label, CountKind, func(_ *Page, row T) Cell { return Cell{Minor: of(row)} })
}

// StateCol is a column of states.
func StateCol[T any](name string, label text.Text, of func(T) State) Column[T] {
	return Col(name, label, StateKind, func(_ *Page, row T) Cell { return Cell{State: of(row)} })
}

// Optional leaves the column out where the page is narrow.
func (c Column[T]) Optional() Column[T] {
	c.In, c.Class = Optional, "opt"
	c.Td = strings.TrimSpace(c.Td + " opt")
	return c
}

// ExportOnly leaves the column out of the page.
func (c Column[T]) ExportOnly() Column[T] {
	c.In = ExportOnly
	return c
}

// PageOnly leaves the column out of files.
func (c Column[T]) PageOnly() Column[T] {
	c.In = PageOnly
	return c
}

// OnChoice leaves the column out of the page unless the person chooses it, or a role has it from the
// start.
func (c Column[T]) OnChoice() Column[T] {
	c.In = OnChoice
	return c
}

// As replaces the class of the column's cells.
func (c Column[T]) As(td string) Column[T] {
	c.Td, c.Class = td, ""
	if slices.Contains(strings.Fields(td), "num") {
		c.Class = "num"
	}
	return c
}

// InFiles gives the column another heading in files.
func (c Column[T]) InFiles(label text.Text) Column[T] {
	c.File = label
	return c
}

// Hinted says what the column is where the pointer rests on its heading.
func (c Column[T]) Hinted(hint text.Text) Column[T] {
	c.Hint = hint
	return c
}

// With has the page show something else than the cell.
func (c Column[T]) With(body func(*Page, T) templ.Component) Column[T] {
	c.Body = body
	return c
}

// To has the page link the cells.
func (c Column[T]) To(href func(T) string) Column[T] {
	cell := c.Cell
	c.Cell = func(p *Page, row T) Cell {
		x := cell(p, row)
		x.Href = href(row)
		return x
	}
	return c
}

// Replace returns the columns with one that replaces that of the same name and place.
func Replace[T any](columns []Column[T], with Column[T]) []Column[T] {
	columns = slices.Clone(columns)
	for i, c := range columns {
		if c.Name == with.Name && c.In == with.In {
			columns[i] = with
		}
	}
	return columns
}

// Arrange returns the columns as a page draws them: those of chosen, which has names separated by commas,
// beside the usual ones; without a choice only those of a role, in its order, where it has any.
func Arrange[T any](columns []Column[T], chosen string, ofRole []string) (drawn []Column[T]) {
	names := strings.Split(chosen, ",")
	if chosen != "" {
		ofRole = nil
	}
	for _, name := range ofRole {
		c := columns[slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == name && c.In != ExportOnly })]
		c.In = Shown
		drawn = append(drawn, c)
	}
	for _, c := range columns {
		switch {
		case slices.Contains(ofRole, c.Name):
			continue
		case len(ofRole) > 0:
			c.In = ExportOnly
		case c.In == OnChoice && slices.Contains(names, c.Name):
			c.In = Shown
		}
		drawn = append(drawn, c)
	}
	return drawn
}

// Headings are those of the columns.
func Headings[T any](columns []Column[T]) []Heading {
	all := make([]Heading, len(columns))
	for i, c := range columns {
		all[i] = c.Heading
	}
	return all
}

// Cells are the rows of a list's page.
func Cells[T any](p *Page, columns []Column[T], rows []T) [][]Cell {
	all := make([][]Cell, len(rows))
	for i, row := range rows {
		for _, c := range columns {
			if c.In == ExportOnly || c.In == OnChoice {
				continue
			}
			x := c.Cell(p, row)
			if c.Body != nil {
				x.Body = c.Body(p, row)
			}
			all[i] = append(all[i], x)
		}
	}
	return all
}

// Choose returns the columns of a file with these names, in their usual order; no names = all. It
// is an error to name one that is not there.
func Choose[T any](columns []Column[T], names []string) ([]Column[T], error) {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool { return c.In == PageOnly })
	if len(names) == 0 {
		return columns, nil
	}
	known := make([]string, len(columns))
	for i, c := range columns {
		known[i] = c.Name
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown column %q: use some of %s", textlimit.Clip(name, 40), strings.Join(known, ","))
		}
	}
	return slices.DeleteFunc(columns, func(c Column[T]) bool { return !slices.Contains(names, c.Name) }), nil
}

// Listed is the list with its columns and the cells of its page.
func (l List) Listed(p *Page, columns []Heading, cells [][]Cell) List {
	l.Cells = cells
	for _, h := range columns {
		if h.In != ExportOnly && h.In != OnChoice {
			l.Columns = append(l.Columns, h)
		}
		if h.In != PageOnly {
			l.Exports = append(l.Exports, ExportColumn{Name: h.Name, Head: h.file(p).Text})
		}
	}
	l.numberFirst()
	for i, h := range l.Columns {
		for _, row := range cells {
			if c := row[i].Currency; h.Kind.money() && c != "" && !slices.Contains(l.Currencies, c) {
				l.Currencies = append(l.Currencies, c)
			}
		}
	}
	return l
}

// numberFirst puts the number that leads to a row before the others, unless one before it leads there.
func (l List) numberFirst() {
	at := slices.IndexFunc(l.Columns, func(h Heading) bool { return h.Kind == IDKind })
	if at < 1 || len(l.Cells) == 0 || slices.ContainsFunc(l.Cells, func(row []Cell) bool {
		return slices.ContainsFunc(row[:at], func(c Cell) bool { return c.Href != "" || c.Body != nil })
	}) {
		return
	}
	forward(l.Columns[:at+1])
	for _, row := range l.Cells {
		forward(row[:at+1])
	}
}

// forward makes the last of some values the first.
func forward[T any](all []T) {
	last := all[len(all)-1]
	copy(all[1:], all)
	all[0] = last
}

// money reports whether the column is of amounts.
func (k Kind) money() bool { return k == MoneyKind || k == BalanceKind }

// file is the column's heading in a file.
func (h Heading) file(p *Page) sheet.Head {
	label := h.File
	if label == (text.Text{}) {
		label = h.Label
	}
	head := sheet.Head{Text: p.T(label)}
	switch h.Kind {
	case TimeKind:
		head.Text, head.Kind = head.Text+" ("+p.Zone.String()+")", sheet.Moment
	case MoneyKind, BalanceKind, CountKind:
		head.Kind = sheet.Number
	}
	return head
}

// InFile is the cell of a column in a file.
func (h Heading) InFile(p *Page, c Cell) string {
	switch {
	case h.Kind == TimeKind && c.At != nil:
		return p.At(*c.At).Format(sheet.MomentLayout)
	case h.Kind.money() && c.Currency != "":
		return money.Format(c.Minor, c.Currency)
	case h.Kind == CountKind:
		return strconv.FormatInt(c.Minor, 10)
	case h.Kind == StateKind:
		return p.T(c.State.Label)
	}
	return c.Text
}

// shown is a text of the page.
func (k Kind) shown(p *Page, c Cell) string {
	switch {
	case c.Show != "":
		return c.Show
	case k == CountKind:
		return Count(c.Minor)
	case c.Text == "" && k == TextKind:
		return p.T(text.None)
	}
	return c.Text
}

// title is what a cell shows where the pointer rests; "" = nothing.
func (h Heading) title(c Cell) string {
	if h.Kind == NoteKind && c.Title == "" {
		return c.Text
	}
	return c.Title
}
