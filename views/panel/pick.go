package panel

import (
	"slices"

	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Pick is a row that can be picked; Value "" = it cannot be. Currency is that of its money.
type Pick struct{ Value, Name, Currency string }

// Boxes are the boxes of rows.
func Boxes(p *ui.Page, rows []Pick) []templ.Component {
	all := make([]templ.Component, len(rows))
	for i, r := range rows {
		all[i] = ui.If(r.Value != "", r.box(p))
	}
	return all
}

// currenciesOf returns the currencies of rows, each once.
func currenciesOf(rows []Pick) (all []string) {
	for _, r := range rows {
		if r.Currency != "" {
			all = append(all, r.Currency)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
