package ui

import (
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Densities are the heights of rows, as kept by the browser: they suit a screen rather than a
// person.
const (
	Comfortable = "comfortable"
	Compact     = "compact"
)

// Among is the list for a table of other rows, whose currencies are not known.
func (l List) Among(cells [][]Cell) List {
	l.Cells, l.Currencies = cells, nil
	return l
}

// Picked is the list with a box beside each row, and one for all.
func (l List) Picked(all templ.Component, rows []templ.Component) List {
	l.PickAll, l.Picks = all, rows
	return l
}

// chosen returns the columns that the person chose; none = all. Names of columns that are gone do
// not count.
func (l List) chosen() (names []string) {
	all := true
	for _, c := range l.Columns {
		if slices.Contains(strings.Split(l.get("columns"), ","), c.Name) {
			names = append(names, c.Name)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	return names
}

// shown reports whether a column is shown, and exported unless somebody chooses otherwise.
func (l List) shown(name string) bool {
	names := l.chosen()
	return len(names) == 0 || slices.Contains(names, name)
}

// choices are the columns that the page can show.
func (l List) choices() []Heading {
	if l.Choices == nil {
		return l.Columns
	}
	return slices.DeleteFunc(slices.Clone(l.Choices), func(h Heading) bool { return h.In == ExportOnly })
}

// drawn reports whether a column is shown on the page.
func (l List) drawn(name string) bool {
	return l.shown(name) && slices.ContainsFunc(l.Columns, func(h Heading) bool { return h.Name == name })
}

// Filter is the query without what only changes how the rows look.
func (q Query) Filter() Query {
	values := make(map[string][]string, len(q.Values))
	for name, v := range q.Values {
		if name != "columns" {
			values[name] = v
		}
	}
	return Query{Path: q.Path, Values: values}
}

// plain is the list without a filter, with the same columns.
func (l List) plain() string {
	return Query{Path: l.Path}.with("columns", l.get("columns"))
}

// look is the class of the list's table: which columns are hidden, by their position, and how its
// amounts are aligned.
func (l List) look(before int) string {
	all := []string{"amounts"}
	for i, c := range l.Columns {
		if !l.shown(c.Name) {
			all = append(all, "h"+strconv.Itoa(before+i+1))
		}
	}
	if len(all) > 1 {
		all = append(all, "chosen")
	}
	if len(l.Currencies) == 1 {
		all = append(all, "one")
	}
	most := 0
	for _, c := range l.Currencies {
		most = max(most, places(c))
	}
	return strings.Join(append(all, "p"+strconv.Itoa(most)), " ")
}

// currency is the one of all the page's rows; "" = there are several.
func (l List) currency() string {
	if len(l.Currencies) == 1 {
		return l.Currencies[0]
	}
	return ""
}

// places is how many decimals the amounts of a currency have.
func places(currency string) int {
	n, err := money.Exponent(currency)
	if err != nil {
		return 2
	}
	return n
}

// ccyClass is the class of a currency code: amounts with unlike decimals are aligned at the point
// by the room before it.
func ccyClass(currency string) string {
	if n := places(currency); n != 2 {
		return "ccy e" + strconv.Itoa(n)
	}
	return "ccy"
}

// headed is a heading of a list's table.
type headed struct {
	Heading
	currency string
}

// heads are the headings of the list's table, after that of the boxes that pick rows.
func (l List) heads() (all []headed) {
	if l.PickAll != nil {
		all = append(all, headed{Heading: Heading{Head: l.PickAll}})
	}
	for _, c := range l.Columns {
		h := headed{Heading: c}
		if c.Kind.money() {
			h.currency = l.currency()
		}
		all = append(all, h)
	}
	return all
}

// Texts of how a list is shown.
var (
	tDisplay        = text.Text{ZH: "显示", EN: "Display"}
	RowHeight       = text.Text{ZH: "行高", EN: "Row height"}
	ComfortableRows = text.Text{ZH: "宽松", EN: "Comfortable"}
	CompactRows     = text.Text{ZH: "紧凑", EN: "Compact"}
	tColumns        = text.Text{ZH: "列", EN: "Columns"}
	tShowColumns    = text.Text{ZH: "显示选中的列", EN: "Show selected"}
	tUsualColumns   = text.Text{ZH: "恢复默认列", EN: "Default columns"}
	tColumnsHow     = text.Text{
		ZH: "所选的列保存在网址里，可随视图一起保存；导出时默认选中这些列。",
		EN: "The columns are kept in the address, saved with a view, and preselected for an export.",
	}
)

var densities = []struct {
	value string
	label text.Text
}{{Comfortable, ComfortableRows}, {Compact, CompactRows}}
