package work

import (
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/comparison"
	"backstop/internal/console"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// ComparisonTexts are the texts of the list of comparisons.
var ComparisonTexts = ui.ListTexts{Title: ComparisonsTitle, Icon: "git-compare", None: tCompareNone, NoneHow: tCompareHow}

type comparisonRow = comparison.Comparison

// comparisonPath leads to a comparison, or to those of its orders that were found on one side.
func comparisonPath(id int64, side comparison.Side) string {
	path := "/comparisons/" + strconv.FormatInt(id, 10)
	if side != "" {
		path += "?side=" + string(side)
	}
	return path
}

// ComparisonColumns are those of the list of comparisons.
var ComparisonColumns = []ui.Column[comparisonRow]{
	ui.TextCol("file", tCompareFile, func(c comparisonRow) string { return c.File }).As("strong wrap").
		To(func(c comparisonRow) string { return comparisonPath(c.ID, "") }),
	ui.TimeCol("made", tCompareMade, func(c comparisonRow) *int64 { return &c.MadeAt }),
	ui.Col("agreement", tAgreement, ui.TextKind, func(p *ui.Page, c comparisonRow) ui.Cell {
		share, ok := c.Agreement()
		cell := chart.ShareCell(p, share, ok)
		return ui.Cell{Text: cell.Plain, Show: cell.Show}
	}).As("num strong"),
	ui.CountCol("same", tSame, func(c comparisonRow) int64 { return c.Same }),
	sideCol("differ", comparison.Both, func(c comparisonRow) int64 { return c.Differ }),
	sideCol("only_there", comparison.There, func(c comparisonRow) int64 { return c.OnlyThere }),
	sideCol("only_here", comparison.Here, func(c comparisonRow) int64 { return c.OnlyHere }),
}

func sideCol(name string, side comparison.Side, of func(comparisonRow) int64) ui.Column[comparisonRow] {
	return ui.CountCol(name, sides[string(side)].Label, of).With(func(p *ui.Page, c comparisonRow) templ.Component {
		return panel.RowCount(p, of(c), false, templ.SafeURL(comparisonPath(c.ID, side)))
	})
}

// sides are where an order was found that differs.
var sides = map[string]ui.State{
	string(comparison.Both):  {Kind: "bad", Icon: "git-compare", Label: text.Text{ZH: "结果不同", EN: "Different"}},
	string(comparison.There): {Kind: "warn", Icon: "triangle-alert", Label: text.Text{ZH: "仅对方有", EN: "Only there"}},
	string(comparison.Here):  {Kind: "warn", Icon: "triangle-alert", Label: text.Text{ZH: "仅本方已支付", EN: "Paid here only"}},
}

var differenceTexts = ui.ListTexts{
	Title: ComparisonsTitle, Icon: "git-compare", None: tDifferNone, NoneHow: tDifferNoneHow,
	Fields: map[string]ui.Field{
		"side": {Label: tDifference, Value: func(side string) text.Text { return ui.StateOf(sides, side).Label }},
	},
}

type differenceRow = console.Difference

// DifferenceColumns are those of the orders of a comparison that differed.
var DifferenceColumns = []ui.Column[differenceRow]{
	ui.IDCol("order_no", text.OrderNo, func(d differenceRow) (string, string) {
		if d.NowStatus == "" {
			return d.OrderNo, "" // there is no such order here
		}
		return d.OrderNo, string(link.Order(d.OrderNo))
	}),
	ui.StateCol("side", tDifference, func(d differenceRow) ui.State { return ui.StateOf(sides, d.Side) }),
	ui.WordCol("here", tHere, func(p *ui.Page, d differenceRow) string { return outcomeText(p, d.Here(), d.Currency) }).As("wrap"),
	ui.WordCol("there", tThere, func(p *ui.Page, d differenceRow) string { return outcomeText(p, d.There(), d.Currency) }).As("wrap"),
	ui.StateCol("now", tHereNow, differenceNow),
}

// differenceNow is whether the order still differs.
func differenceNow(d differenceRow) ui.State {
	if d.Settled() {
		return ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "已一致", EN: "The same by now"}}
	}
	return ui.State{Kind: "bad", Icon: "git-compare", Label: text.Text{ZH: "仍不一致", EN: "Still different"}}
}

// outcomeText is what became of an order; without a currency its amount is in minor units.
func outcomeText(p *ui.Page, o comparison.Outcome, currency string) string {
	if o.Status == "" {
		return p.T(text.None)
	}
	parts := []string{p.T(ui.StateOf(ui.OrderStates, o.Status).Label)}
	switch {
	case o.PaidAmount == 0:
	case currency == "":
		parts = append(parts, strconv.FormatInt(o.PaidAmount, 10))
	default:
		parts = append(parts, ui.MoneyText(o.PaidAmount, currency))
	}
	if o.TradeNo != "" {
		parts = append(parts, o.TradeNo)
	}
	return strings.Join(parts, " · ")
}

// ComparisonsTitle names the page of comparisons.
var ComparisonsTitle = text.Text{ZH: "影子对比", EN: "Comparisons"}

// Texts of these pages.
var (
	tCompareNone = text.Text{ZH: "还没有对比", EN: "No comparison yet"}
	tCompareHow  = text.Text{
		ZH: "从另一系统导出订单，运行 backstop import outcomes 文件名，结果显示在这里。",
		EN: "Export the orders of the other system and run backstop import outcomes FILE: the result appears here.",
	}
	tCompareFile   = text.Text{ZH: "文件", EN: "File"}
	tCompareMade   = text.Text{ZH: "对比时间", EN: "Compared at"}
	tAgreement     = text.Text{ZH: "一致率", EN: "Agreement"}
	tSame          = text.Text{ZH: "一致", EN: "The same"}
	tDifference    = text.Text{ZH: "差异", EN: "Difference"}
	tHere          = text.Text{ZH: "本方", EN: "Here"}
	tThere         = text.Text{ZH: "对方", EN: "There"}
	tHereNow       = text.Text{ZH: "本方现在", EN: "Here now"}
	tDifferNone    = text.Text{ZH: "没有差异", EN: "No order differs"}
	tDifferNoneHow = text.Text{ZH: "两边的订单结果一致。", EN: "The orders of both systems became the same."}
	tAgreementOf   = text.Text{ZH: "%s 对比：一致率 %s，一致 %s，有差异 %s。", EN: "Compared at %s: agreement %s, %s the same, %s different."}
	tKeptOf        = text.Text{ZH: "只保存了前 %s 条差异。", EN: "Only the first %s differences were kept."}
)

// ComparisonData is one comparison.
type ComparisonData struct{ *comparison.Comparison }

// ComparisonPage is one comparison with the orders that differed.
func ComparisonPage(p *ui.Page, l ui.List, d ComparisonData) templ.Component {
	l = l.As(differenceTexts)
	return panel.Page(
		p, d.File, ui.Crumb(p, "/comparisons", ComparisonsTitle), comparisonHead(p, l, d),
		filtered(p, l, tDifference, l.Empty && l.Older == ""),
	)
}

// sentence is how the two systems agreed.
func (d ComparisonData) sentence(p *ui.Page) string {
	says := p.T(tAgreementOf, p.Full(d.MadeAt), chart.ShareText(p, d.Agreement), ui.Count(d.Same), ui.Count(d.Different()))
	if d.Kept < d.Different() {
		says += " " + p.T(tKeptOf, ui.Count(d.Kept))
	}
	return says
}
