package overview

import (
	"math"
	"slices"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

func minorOf(s report.Standing, currency string) int64 {
	main, _ := sumIn(s, currency)
	return main.Minor
}

// hourAgo is how much more is at risk in a currency than an hour ago; false where that
// is not known.
func hourAgo(r *console.Risk, currency string) (more int64, known bool) {
	for _, then := range slices.Backward(r.Past) {
		switch age := r.At - then.At; {
		case age < time.Hour.Microseconds():
			continue
		case age > (90 * time.Minute).Microseconds():
			return 0, false
		}
		more = minorOf(r.Total, currency)
		for _, part := range report.Parts {
			more -= minorOf(then.Parts[part], currency)
		}
		return more, true
	}
	return 0, false
}

// clearSince is since when nothing has been at risk, as far as it was measured; 0 where
// something is, or nothing was measured yet.
func clearSince(r *console.Risk) (since int64) {
	if len(r.Total.Sums) > 0 {
		return 0
	}
	for _, past := range slices.Backward(r.Past) {
		for _, s := range past.Parts {
			if s.Orders() > 0 {
				return since
			}
		}
		since = past.At
	}
	return since
}

// signed writes a difference with its sign.
func signed(minor int64, currency string) string {
	if minor > 0 {
		return "+" + ui.Amount(minor, currency)
	}
	return ui.Amount(minor, currency)
}

// pastTotal is what was at risk at one time.
func pastTotal(then report.Past) (s report.Standing) {
	for _, part := range report.Parts {
		for _, m := range then.Parts[part].Sums {
			s.Add(m)
		}
	}
	return s
}

// sumIn is the sum in a currency, and those in others with orders.
func sumIn(s report.Standing, currency string) (main report.Sum, others []report.Sum) {
	main.Currency = currency
	for _, m := range s.Sums {
		if m.Currency == currency {
			main = m
		} else if m.Orders > 0 {
			others = append(others, m)
		}
	}
	return main, others
}

// heroCurrency is the currency of the sum, its parts, the curve and the split: the one with the most orders now
// or, while nothing is at risk, when something last was.
func heroCurrency(r *console.Risk) string {
	main, _ := ui.LeadSum(r.Total)
	for _, then := range slices.Backward(r.Past) {
		if main.Orders > 0 {
			break
		}
		main, _ = ui.LeadSum(pastTotal(then))
	}
	return main.Currency
}

// heroKind is the colour of the money at risk: none while there is none, a warning while all of
// it is on its way to be notified, and bad once some of it waits for a compensation or a person.
func heroKind(r *console.Risk) string {
	switch n := r.Total.Orders(); {
	case n == 0:
		return "ink"
	case n == r.Parts[report.Unnotified].Orders():
		return "warn"
	}
	return "bad"
}

// clearText says that nothing is at risk, and since when that was measured.
func clearText(p *ui.Page, r *console.Risk) string {
	if since := clearSince(r); since > 0 {
		return p.T(tClearSince, ui.Minute(p, since))
	}
	return p.T(tClearNow)
}

const (
	heroHeight = 132.0
	heroStep   = 20 * time.Minute // of a column of the curve
	heroLabels = 4
)

// heroPlot draws the money at risk in one currency over the last day, or since it was first
// measured; nothing before two measurements.
func heroPlot(p *ui.Page, r *console.Risk, currency string) chart.Plot {
	if len(r.Past) == 0 || currency == "" {
		return chart.Plot{}
	}
	from, step := r.Past[0].At, heroStep.Microseconds()
	if r.At-from < step*6 {
		step = (5 * time.Minute).Microseconds()
	}
	n := int((r.At-from)/step) + 1
	if n < 2 {
		return chart.Plot{}
	}
	values, moments := make([]float64, n), make([]int64, n)
	for i := range values {
		values[i] = math.NaN()
	}
	put := func(at, minor int64) {
		i := min(n-1, int((at-from)/step))
		values[i], moments[i] = float64(minor), at
	}
	for _, then := range r.Past {
		put(then.At, minorOf(pastTotal(then), currency))
	}
	put(r.At, minorOf(r.Total, currency))
	most := 0.0
	for _, v := range values {
		if v > most { // NaN never is
			most = v
		}
	}
	a, lines := chart.CountAxis(int64(most), heroHeight)
	c := chart.Plot{Height: heroHeight}
	for _, l := range []int{0, len(lines) - 1} {
		c.Grid = append(c.Grid, chart.GridLine{Y: lines[l].Y, Label: shortMoney(int64(a.High)*int64(l)/int64(len(lines)-1), currency)})
	}
	kind := heroKind(r)
	c.Paths = []chart.Path{{Class: "area f-" + kind, D: areaPath(values, a)}, {Class: "line s-" + kind, D: chart.Line(values, a)}}
	for i := range heroLabels {
		at := i * (n - 1) / heroLabels
		if i > 0 && at == (i-1)*(n-1)/heroLabels {
			continue
		}
		c.Labels = append(c.Labels, chart.Label{
			X: chart.Middle(at, n), Text: p.At(from + int64(at)*step).Format("15:04"),
			Anchor: map[bool]string{true: "start", false: "middle"}[i == 0], Roomy: i%2 == 1,
		})
	}
	c.Labels = append(c.Labels, chart.Label{X: chart.Width, Text: p.T(tNow), Anchor: "end"})
	for i, v := range values {
		if !math.IsNaN(v) {
			c.Hits = append(c.Hits, chart.Hit{
				X: chart.Width * float64(i) / float64(n), W: chart.Width / float64(n),
				Title: ui.Minute(p, moments[i]) + "\n" + ui.Amount(int64(v), currency) + " " + currency,
			})
		}
	}
	c.Says = p.T(tCurveOf, currency, ui.Amount(int64(values[0]), currency), ui.Amount(int64(most), currency),
		ui.Amount(int64(values[n-1]), currency))
	return c
}

// areaPath is the area below Line.
func areaPath(values []float64, a chart.Axis) (path string) {
	for i := 0; i < len(values); i++ {
		j := i
		for j < len(values) && !math.IsNaN(values[j]) {
			j++
		}
		if j > i {
			path += chart.Band(make([]float64, j-i), values[i:j], i, len(values), a)
			i = j
		}
	}
	return path
}

// shortMoney is an amount on an axis: ¥1.2k.
func shortMoney(minor int64, currency string) string {
	digits, err := money.Exponent(currency)
	if whole := minor / int64(math.Pow10(digits)); err == nil && (minor == 0 || whole > 0) {
		return ui.Symbol(currency) + ui.Short(whole)
	}
	return ui.Amount(minor, currency)
}

// share of the split's width that a part has at least, so that it is seen.
const splitLeast = 0.8

// splitPart is one part of the money at risk, by its share in percent.
type splitPart struct {
	part report.Part
	x, w float64
}

// splitOf divides the bar of a currency by its parts; those without money have no place.
func splitOf(r *console.Risk, currency string) (all []splitPart) {
	sum := 0.0
	for _, part := range report.Parts {
		if minor := minorOf(r.Parts[part], currency); minor > 0 {
			all = append(all, splitPart{part: part, w: float64(minor)})
			sum += float64(minor)
		}
	}
	widest := 0
	for i := range all {
		all[i].w = max(splitLeast, 100*all[i].w/sum)
		if all[i].w > all[widest].w {
			widest = i
		}
	}
	rest := 100.0
	for _, s := range all {
		rest -= s.w
	}
	x := 0.0
	for i := range all {
		if i == widest {
			all[i].w += rest // what the small ones have been given
		}
		all[i].x = x
		x += all[i].w
	}
	return all
}

// title says how much of the money at risk a part is.
func (s splitPart) title(p *ui.Page, r *console.Risk, currency string) string {
	return p.T(ui.RiskParts[s.part].Label) + "\n" + ui.Amount(minorOf(r.Parts[s.part], currency), currency) + " " + currency
}

// box is its place in the bar.
func (s splitPart) box() templ.Attributes {
	return templ.Attributes{"class": "f-" + ui.RiskParts[s.part].Kind, "x": percent(s.x), "width": percent(s.w), "height": "14"}
}

// riskRow is a sum beside the money at risk.
type riskRow struct {
	icon, said, href string
	sums             []report.Sum
}

// riskKinds are the kinds of the money that fits no order.
func riskKinds(p *ui.Page, r *console.Risk) (rows []riskRow) {
	for _, kind := range exception.HeldKinds {
		if k, ok := r.Kinds[kind]; ok {
			said := p.T(tTodoTitle, p.T(ui.KindText(kind)), ui.Count(k.Orders()), "")
			rows = append(rows, riskRow{said: said, href: ui.RiskParts[report.Mismatch].Href + "&kind=" + kind, sums: k.Sums})
		}
	}
	return rows
}

// riskFunds is money that is under way, beside the total: it is in the books.
func riskFunds(p *ui.Page, r *console.Risk) (rows []riskRow) {
	for _, part := range wording.FundOrder {
		rows = append(rows, riskRow{
			icon: wording.FundIcons[part], said: p.T(wording.FundPart(string(part))),
			href: "/accounts?part=" + string(part), sums: r.Funds[part].Sums,
		})
	}
	return rows
}

// Texts of the money at risk.
var (
	tClearSince = text.Text{ZH: "已全部通知，%s 起没有风险资金", EN: "All notified, nothing at risk since %s"}
	tClearNow   = text.Text{ZH: "已全部通知，没有风险资金", EN: "All notified, nothing at risk"}
	tOrdersN    = text.Text{ZH: "%s%s 笔", EN: "orders: %s%s"}
	tHourAgo    = text.Text{ZH: "比一小时前", EN: "vs 1 h ago"}
	tCurveOf    = text.Text{
		ZH: "风险资金（%s）近 24 小时：开始 %s，最高 %s，现在 %s",
		EN: "Money at risk in %s over the last 24 hours: %s at first, %s at most, %s now",
	}
	tNow = text.Text{ZH: "现在", EN: "now"}
)

// percent is a length in a chart that is as wide as its place.
func percent(v float64) string { return ui.Share(v, 100) }

// partKey is the colour by which the split names a part; grey where it has no money.
func partKey(s report.Standing, part report.Part) string {
	if s.Orders() == 0 {
		return "idle"
	}
	return ui.RiskParts[part].Kind
}
