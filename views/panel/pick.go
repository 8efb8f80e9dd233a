package panel

import (
	"slices"

	"backstop/internal/base/text"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// Pick is a row that can be picked; Value "" = it cannot be. Currency is that of its money.
type Pick struct{ Value, Name, Currency string }

// boxes are the boxes of rows.
func boxes(p *ui.Page, rows []Pick) []templ.Component {
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

// DryRun is a button that plans an act for many rows.
func DryRun(p *ui.Page, says string, more templ.Attributes) templ.Component {
	return ui.Button(p, ui.Act{Icon: "flask-conical", Says: says, Class: "sm", Writes: true, More: more})
}

func batchButton(p *ui.Page, l ui.List, action string) templ.Component {
	return DryRun(p, p.T(wording.BatchActions[action][0])+p.T(tBatchAll, ui.Count(l.Count), ui.Plus(l.More)), templ.Attributes{
		"id": "batch-" + action, "name": "pick", "value": "all", "formaction": link.BatchPlan(l, action),
	})
}

var tPickAll = text.Text{ZH: "选中本页", EN: "Select the page"}

var tPickRow = text.Text{ZH: "选中 %s", EN: "Select %s"}

var tBatchAll = text.Text{ZH: "：全部 %s%s 行（预检）", EN: ": all %s%s (dry run)"}
