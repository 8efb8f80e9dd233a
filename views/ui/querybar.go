package ui

import (
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/list"
)

// text returns the filter as text: as it was typed, while it has problems.
func (l List) text() string {
	if len(l.Problems) > 0 {
		return l.Text
	}
	var terms []list.Term
	for _, f := range l.Spec.Fields {
		if value := l.get(f.Name); value != "" && !f.Hidden {
			terms = append(terms, list.Term{Name: f.Name, Value: value})
		}
	}
	for _, name := range []string{"window", "from", "to"} {
		if value := l.get(name); value != "" {
			terms = append(terms, list.Term{Name: name, Value: value})
		}
	}
	return list.Text(terms)
}

// example is a filter that the list understands.
func (l List) example() string {
	var all []string
	for _, f := range l.Spec.Fields {
		if e, ok := examples[f.Name]; ok && !f.Hidden {
			all = append(all, e)
		}
	}
	if !l.Spec.NoTimeFilter {
		all = append(all, "from:14:05", "to:15:10")
	}
	for _, f := range l.Spec.Fields {
		if len(all) == 0 && !f.Hidden && len(f.Values) > 0 {
			all = append(all, f.Name+":"+f.Values[0])
		}
	}
	return strings.Join(all, " ")
}

var examples = map[string]string{"merchant": "merchant:m1", "cause": "cause:timeout", "amount": "amount:>100"}

// FieldsNamed returns the names of the fields that have this label, in any language.
func (t ListTexts) FieldsNamed(label string) (names []string) {
	for _, fields := range []map[string]Field{t.Fields, shared} {
		for name, f := range fields {
			if strings.EqualFold(f.Label.ZH, label) || strings.EqualFold(f.Label.EN, label) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ValueText is a value of a field in words; zero = it is shown as it is.
func (t ListTexts) ValueText(field, value string) text.Text {
	if f := (List{}).As(t).Field(field); f.Value != nil {
		return f.Value(value)
	}
	return text.Text{}
}

// says returns what is shown beside a proposal: the name of a field, or a value in words; "" =
// nothing.
func (t ListTexts) says(p *Page, x list.Proposal) string {
	switch {
	case x.Name != "":
		return x.Name
	case x.Field == "":
		return p.T((List{}).As(t).Field(x.Value).Label)
	}
	if words := p.T(t.ValueText(x.Field, x.Value)); words != x.Value {
		return words
	}
	return ""
}

func (p *Page) problem(x list.Problem) string {
	says := p.T(faults[x.Fault])
	if len(x.Hints) > 0 {
		says += p.T(text.Colon) + strings.Join(x.Hints, ", ")
	}
	return says
}

var faults = map[list.Fault]text.Text{
	list.UnknownField: {ZH: "没有这个字段，可用的有", EN: "no such field; fields are"},
	list.NoValue:      {ZH: "冒号后要有值，例如", EN: "a value must follow the colon, for example"},
	list.WrongValue:   {ZH: "没有这个值，可用的有", EN: "not a value of this field; use one of"},
	list.BadValue:     {ZH: "这个值不能用", EN: "cannot be used"},
	list.Ambiguous:    {ZH: "有多种含义，请选一个", EN: "is ambiguous; choose one of"},
	list.Repeated:     {ZH: "这个字段只能写一次", EN: "a field can be used only once"},
	list.NoField:      {ZH: "没有这个名称或代码，请写成 字段:值，字段有", EN: "neither a name nor a code; write field:value with one of the fields"},
	list.WrongTime:    {ZH: "请写成 14:05、2026-11-20 或 2026-11-20T14:05", EN: "use 14:05, 2026-11-20 or 2026-11-20T14:05"},
	list.WrongOrder:   {ZH: "结束时间要晚于开始时间", EN: "the end must be after the start"},
	list.TooFar:       {ZH: "一次最多查 31 天", EN: "a list covers at most 31 days at once"},
	list.Unreadable:   {ZH: "最多 500 字节，不能有控制字符", EN: "use at most 500 bytes, without control characters"},
}

// local is a moment for an input of date and time; 0 = none.
func (p *Page) local(us int64) string {
	if us == 0 {
		return ""
	}
	return p.At(us).Format("2006-01-02T15:04")
}

// ends returns the beginning and the end that were chosen; 0 = none was.
func (l List) ends() (from, to int64) {
	if l.get("from") != "" {
		from = l.Window.From
	}
	if l.get("to") != "" {
		to = l.Window.To
	}
	return from, to
}

// noWindow is what the list covers without a window.
func (l List) noWindow() text.Text {
	if l.get("from") != "" {
		return tBetween
	}
	return tAllTime
}

// barsFrom and barsTo are the ends of the chart, in Unix s.
func (l List) barsFrom() string { return strconv.FormatInt(l.Bars[0].Start/1_000_000, 10) }

func (l List) barsTo() string {
	step := l.Window.To - l.Bars[0].Start
	if n := len(l.Bars); n > 1 {
		step = (l.Bars[1].Start - l.Bars[0].Start) * int64(n)
	}
	return strconv.FormatInt((l.Bars[0].Start+step)/1_000_000, 10)
}

var (
	tQuery       = text.Text{ZH: "筛选条件（文字）", EN: "Filter as text"}
	tQueryHow    = text.Text{ZH: "例如 %s", EN: "For example %s"}
	tQueryGo     = text.Text{ZH: "查找", EN: "Find"}
	tProposals   = text.Text{ZH: "可以这样继续", EN: "Suggestions"}
	tProblems    = text.Text{ZH: "有的词无法使用，请改正后再查：", EN: "Some words cannot be used. Correct them and try again:"}
	tUnread      = text.Text{ZH: "还没有查询", EN: "Nothing was searched"}
	tUnreadHow   = text.Text{ZH: "上面的条件里有错误。", EN: "The filter above has an error."}
	tFrom        = text.Text{ZH: "从", EN: "From"}
	tUntil       = text.Text{ZH: "到", EN: "Until"}
	tBetween     = text.Text{ZH: "自定义", EN: "Custom"}
	tBrush       = text.Text{ZH: "在图上拖动可选定时间", EN: "Drag over the chart to choose a time"}
	tFromChip    = text.Text{ZH: "起", EN: "From"}
	tUntilChip   = text.Text{ZH: "止", EN: "Until"}
	tMomentsZone = text.Text{ZH: "时区 %s", EN: "Time zone %s"}
)
