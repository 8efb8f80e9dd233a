package ui

import (
	"net/url"
	"slices"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"

	"github.com/a-h/templ"
)

// List is what every list shows around its rows.
type List struct {
	Query
	Spec *list.Spec
	// Suggested are values for the fields of the filter, by their names.
	Suggested map[string][]list.Choice
	Texts     ListTexts
	Window    Window
	Rows      int       // that fit a page
	Order     text.Text // of the rows; zero = newest first
	First     bool      // the newest page
	// Older and Newer are the cursors of the pages beside this one; "" = none.
	Older, Newer string
	Since        string // the cursor from which newer rows are counted; "" = none can come
	Reached      int64  // how far was searched, where that is short of the window; Unix µs
	Count        int64  // rows of the whole list, as far as they were counted
	More         bool
	Currencies   []string // of the amounts of this page's rows
	Sums         []list.Sum
	SumsMore     bool           // there is more money than in Sums, or too much to add it up
	Causes       []list.Cause   // of the rows that failed
	Exports      []ExportColumn // of an export of the list; none = it has no export
	Columns      []Heading      // of its table
	Choices      []Heading      // that its table can have; nil = those that it has
	Cells        [][]Cell       // of its rows
	// PickAll is the heading above the boxes that pick rows, Picks the box of each row; nil = there are
	// none.
	PickAll templ.Component
	Picks   []templ.Component
	Empty   bool // this page has no rows
	// Text is a filter that cannot be used, and Problems why; none = it can.
	Text     string
	Problems []list.Problem
	// Anything reports whether the list has any row at all, filtered out or not.
	Anything bool
	// Droppable are the names of the filters without which, each dropped alone, the list has rows.
	Droppable []string
	Bars      []console.Bar // what happened over the window; none = it is not known
	Views     *ViewBar      // nil = the list has no views
	beside    bool          // keys that go through the rows of a page pass its rows
}

// ExportColumn is a column that an export may leave out.
type ExportColumn struct{ Name, Head string }

// AmountLink leads to the orders of an amount, as far back as one query covers.
func AmountLink(amount string) string {
	q := Query{Path: "/orders", Values: url.Values{}}
	return q.with("amount", amount, "window", Windows[len(Windows)-1].Name)
}

// ListTexts are the texts of one list.
type ListTexts struct {
	Title         text.Text
	Icon          string    // where there is nothing
	None, NoneHow text.Text // there never was anything, and what to do first
	HowArgs       []any     // of NoneHow
	Bars          text.Text // what the small chart above the rows is of
	Fields        map[string]Field
	Causes        text.Text // above the causes of the rows that failed
}

// Head is the heading of a column of texts.
func Head(label text.Text) Heading { return Heading{Label: label} }

// Num is the heading of a column of numbers.
func Num(label text.Text) Heading { return Heading{Label: label, Class: "num"} }

// Field is how a field of a filter looks.
type Field struct {
	Label text.Text
	Chip  text.Text                  // its label where it is set; zero = Label
	Any   text.Text                  // the first choice of a select; zero = any
	Value func(string) text.Text     // a value in words; nil = as it is
	Party func(*Page, string) string // what the merchant or supplier is called whose code it is; nil = it is none
}

// shared are fields that look the same in every list.
var shared = map[string]Field{
	"no":       {Label: text.OrderNo, Chip: text.NumberWord},
	"merchant": {Label: text.Merchant, Party: (*Page).Merchant},
	"supplier": {Label: text.Supplier, Party: (*Page).Supplier},
	"amount":   {Label: text.Amount},
	"type":     {Label: text.Type},
	"risk":     {Label: text.AtRisk, Value: riskWord},
	"kind":     {Label: text.Kind, Value: KindText},
	"paid":     {Label: text.Paid, Value: days},
	"decided":  {Label: text.Text{ZH: "复核时间", EN: "Decided"}, Value: days},
	// Of orders, what alerts lead to.
	"awaits": {Label: text.Text{ZH: "等待渠道结果", EN: "Awaits a result from"}},
	"no_result": {Label: text.Text{ZH: "卡单", EN: "Stuck"}, Value: func(string) text.Text {
		return text.Text{ZH: "多次查单无结果", EN: "no result after three queries"}
	}},
}

// States is a field of states.
func States(states map[string]State) Field {
	return Field{Label: text.State, Value: func(code string) text.Text { return StateOf(states, code).Label }}
}

// As is the list with its texts.
func (l List) As(t ListTexts) List {
	l.Texts = t
	return l
}

// Field is how a field looks.
func (l List) Field(name string) Field {
	if f, ok := l.Texts.Fields[name]; ok {
		return f
	}
	return shared[name]
}

// value is a value of a field in the person's language.
func (f Field) value(p *Page, value string) string {
	switch {
	case f.Party != nil:
		return f.Party(p, value)
	case f.Value == nil:
		return value
	}
	return p.T(f.Value(value))
}

// choice is a suggested value as a choice of a select.
func (f Field) choice(p *Page, c list.Choice) string {
	if c.Name != "" {
		return c.Name + " · " + c.Value
	}
	return f.value(p, c.Value)
}

// any is the choice of a select for no value.
func (f Field) any(p *Page) string {
	if f.Any == (text.Text{}) {
		return p.T(text.Any)
	}
	return p.T(f.Any)
}

// WindowChoice is a period that a list may cover: a span before now,
// or whole days before the end of a day.
type WindowChoice struct {
	Name  string // as in the address
	Span  time.Duration
	Days  int
	label text.Text
}

// DayWindow is the default window of a list.
const DayWindow = "24h"

// Windows are all of them. A month is the most that one query may cover.
var Windows = []WindowChoice{
	{"1h", time.Hour, 0, tWindow1h},
	{DayWindow, 24 * time.Hour, 1, tWindow24h},
	{"7d", 7 * 24 * time.Hour, 7, tWindow7d},
	{"31d", 31 * 24 * time.Hour, 31, tWindow31d},
}

// Window is the time that a list covers, Unix µs. From 0 is all of the time.
type Window struct {
	Name     string
	From, To int64
	// Always: without a chosen window the list covers all time.
	Always bool
}

// Span is how much time the window covers.
func (w Window) Span() time.Duration { return time.Duration(w.To-w.From) * time.Microsecond }

// Chip is one filter that is set, and the list without it.
type Chip struct {
	Name, Label, Value, Without string
}

// chips are the filters that are set.
func (l List) chips(p *Page) []Chip {
	var all []Chip
	add := func(name, label, value string) { all = append(all, Chip{name, label, value, l.with(name, "")}) }
	for _, f := range l.Spec.Fields {
		if value := l.get(f.Name); value != "" {
			field := l.Field(f.Name)
			if field.Chip == (text.Text{}) {
				field.Chip = field.Label
			}
			add(f.Name, p.T(field.Chip), field.value(p, value))
		}
	}
	from, to := l.ends()
	if name := l.Window.Name; name != "" && l.get("window") != "" && (name != DayWindow || l.Window.Always || to != 0) {
		add("window", p.T(text.Time), p.T(windowWord(name)))
	}
	if from != 0 {
		add("from", p.T(tFromChip), p.Full(from))
	}
	if to != 0 {
		add("to", p.T(tUntilChip), p.Full(to))
	}
	return all
}

// toDrop are the filters without which, each alone, there are rows; all filters if there is none.
func (l List) toDrop(p *Page) ([]Chip, text.Text) {
	all := l.chips(p)
	if len(l.Droppable) == 0 {
		return all, tNoMatchHow
	}
	return slices.DeleteFunc(all, func(c Chip) bool { return !slices.Contains(l.Droppable, c.Name) }), tNoMatchDrop
}

// lastDay reports whether the list covers the last day, because nothing else was chosen: no chip says it.
func (l List) lastDay() bool {
	_, to := l.ends()
	return !l.Window.Always && l.Window.Name == DayWindow && to == 0 && l.get("no") == "" && l.get("risk") == ""
}

func windowWord(name string) text.Text {
	if i := slices.IndexFunc(Windows, func(w WindowChoice) bool { return w.Name == name }); i >= 0 {
		return Windows[i].label
	}
	return tAllTime
}

// filtered reports whether a filter other than the time is set.
func (l List) filtered() bool {
	for name, values := range l.Values {
		if name != "columns" && name != "window" && name != "from" && name != "to" && len(values) > 0 && values[0] != "" {
			return true
		}
	}
	return false
}

// wider is the list over the longest time, or over all where it has that; ""
// where it covers that already.
func (l List) wider() string {
	widest := Windows[len(Windows)-1].Name
	switch {
	case l.get("no") != "" || l.get("risk") != "": // found however old they are
	case l.Window.Always && (l.get("window") != "" || l.get("from") != "" || l.get("to") != ""):
		return l.with("window", "", "from", "", "to", "")
	case !l.Window.Always && (l.get("window") != widest || l.get("from") != "" || l.get("to") != ""):
		return l.with("window", widest, "from", "", "to", "")
	}
	return ""
}

// Measures of the small chart above a list: pixels of a page of the usual width.
const (
	smallWidth  = 1180.0
	smallTop    = 4.0
	smallBottom = 44.0
	smallLabels = 57.0
	// smallLabelEvery is the least distance of two labels, narrowLabelEvery of those
	// on a narrow page.
	smallLabelEvery  = 90.0
	narrowLabelEvery = 270.0
)

// smallBar is one bar of it.
type smallBar struct {
	all, bad     Box
	title, label string
	roomy        bool // the label needs a wide page
}

// clear reports whether an empty list is good news: nothing waits.
func (l List) clear() bool {
	if !l.First || l.get("no") != "" || l.get("kind") != "" {
		return false
	}
	state := l.get("state")
	return l.get("risk") != "" || state == console.NeedsPerson || state == console.Unsettled || state == string(exception.Opened)
}

// quiet reports whether the bars are all empty.
func (l List) quiet() bool {
	for _, b := range l.Bars {
		if b.Good+b.Bad > 0 {
			return false
		}
	}
	return true
}

// drawBars computes the chart of bars over a span.
func (p *Page) drawBars(bars []console.Bar, span time.Duration) (drawn []smallBar, says string) {
	var most, good, bad int64
	for _, b := range bars {
		most, good, bad = max(most, b.Good+b.Bad), good+b.Good, bad+b.Bad
	}
	slot := smallWidth / float64(max(1, len(bars)))
	scale := (smallBottom - smallTop) / float64(max(1, most))
	last, narrow := -smallLabelEvery, -narrowLabelEvery
	for i, b := range bars {
		x := float64(i)*slot + slot*0.07
		height, failed := float64(b.Good+b.Bad)*scale, float64(b.Bad)*scale
		if b.Bad > 0 {
			failed = max(failed, 1.5) // one failure among thousands is seen too
		}
		d := smallBar{
			all: Box{x, smallBottom - height, slot * 0.86, height}, bad: Box{x, smallBottom - failed, slot * 0.86, failed},
			title: p.T(tSmallBar, p.SpanName(b.Start, span), Count(b.Good), Count(b.Bad)),
		}
		if x-last >= smallLabelEvery && x+40 < smallWidth {
			d.label, last = p.SpanName(b.Start, span), x
			if d.roomy = x-narrow < narrowLabelEvery || x > 0.8*smallWidth; !d.roomy {
				narrow = x
			}
		}
		drawn = append(drawn, d)
	}
	return drawn, p.T(tSmallSays, Count(good), Count(bad))
}

// Texts of these pieces.
var (
	tApply         = text.Text{ZH: "应用", EN: "Apply"}
	tClear         = text.Text{ZH: "清除", EN: "Clear"}
	tNewest        = text.Text{ZH: "最新", EN: "Newest"}
	tOlder         = text.Text{ZH: "下一页", EN: "Older"}
	tPerPage       = text.Text{ZH: "每页 %d 条，新的在前", EN: "%d per page, newest first"}
	tNoMatch       = text.Text{ZH: "没有符合条件的记录", EN: "Nothing matches"}
	tNoMatchHow    = text.Text{ZH: "去掉任何一个条件也没有记录：", EN: "Removing any one of these shows no rows either:"}
	tNoMatchDrop   = text.Text{ZH: "去掉下面的条件就有记录：", EN: "Rows appear without:"}
	tNoMore        = text.Text{ZH: "没有更多记录", EN: "No more rows"}
	tNoMoreHow     = text.Text{ZH: "没有更早的记录。", EN: "There are no older rows."}
	tWindow1h      = text.Text{ZH: "最近 1 小时", EN: "Last hour"}
	tWindow24h     = text.Text{ZH: "最近 24 小时", EN: "Last 24 hours"}
	tWindow7d      = text.Text{ZH: "最近 7 天", EN: "Last 7 days"}
	tWindow31d     = text.Text{ZH: "最近 31 天", EN: "Last 31 days"}
	tAllTime       = text.Text{ZH: "全部时间", EN: "All time"}
	tFiltersSet    = text.Text{ZH: "已设的筛选条件", EN: "Active filters"}
	tDropFilter    = text.Text{ZH: "去掉筛选条件 %s: %s", EN: "Remove the filter %s: %s"}
	tMatching      = text.Text{ZH: "共 %s%s 条", EN: "%s%s match"}
	tSums          = text.Text{ZH: "合计", EN: "Total"}
	tSumsMore      = text.Text{ZH: "合计至少（仅最近的记录）", EN: "Total of the newest rows, at least"}
	tSumsNone      = text.Text{ZH: "记录过多，未计算合计，请缩小范围", EN: "Too many rows for a total: narrow the filter or the time"}
	tSumRows       = text.Text{ZH: "（%s%s 笔）", EN: "(%s%s)"}
	tExport        = text.Text{ZH: "导出", EN: "Export"}
	tExportColumns = text.Text{ZH: "要导出的列", EN: "Columns"}
	tExportHow     = text.Text{
		ZH: "导出符合筛选条件的全部行，并按币种合计；会记入审计。",
		EN: "Exports every row that matches the filter, with totals per currency. Recorded in the audit.",
	}
	tReached = text.Text{
		ZH: "该筛选没有索引可用，本页查到此刻为止，翻页继续查找：",
		EN: "No index serves this filter. Searched as far as this; the next page continues from here:",
	}
	tWindowEnds  = text.Text{ZH: "已查到：", EN: "Searched back to"}
	tNewRows     = text.Text{ZH: "有 %d%s 条新记录，显示", EN: "Show %d%s new"}
	tPages       = text.Text{ZH: "翻页", EN: "Pages"}
	tNewer       = text.Text{ZH: "上一页", EN: "Newer"}
	tNothingThen = text.Text{ZH: "这段时间里没有记录", EN: "No rows in this time range"}
	tLookFurther = text.Text{ZH: "查找更长的时间", EN: "Look further back"}
	tSmallBar    = text.Text{ZH: "%s：成功 %s，其他 %s", EN: "%s: %s succeeded, %s did not"}
	tSmallSays   = text.Text{ZH: "成功 %s，其他 %s", EN: "%s succeeded, %s did not"}
	tPaused      = text.Text{ZH: "已暂停", EN: "Paused"}
)
