// Package panel draws the parts of pages that several districts show: decisions, proposals, notes,
// checks, forms and what is shown unmasked.
package panel

import (
	"backstop/internal/audit"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// Did is what a form has done, from the audit; nothing if it did nothing.
func Did(p *ui.Page, r *audit.Row) templ.Component {
	if r == nil {
		return templ.NopComponent
	}
	return ui.Notice(p, "ok", wording.ActLine(p, *r))
}
