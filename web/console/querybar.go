package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/textlimit"
	"backstop/internal/list"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// Names of the parameters of a list's time, and in the text of its filter.
const (
	fromParam   = "from"
	toParam     = "to"
	windowParam = "window"
)

// maxSpan bounds the time that one list covers.
const maxSpan = 31 * 24 * time.Hour

// maxShown bounds the bytes of a text that a problem repeats.
const maxShown = 40

// maxProposals bounds the proposals below the query bar.
const maxProposals = 10

// asText reports whether a request has its filter as text.
func asText(c *fiber.Ctx) bool { return c.Context().QueryArgs().Has("q") }

// sendText answers a request that has its filter as text: it redirects to the list with these
// parameters, since an address must mean the same tomorrow. If a word cannot be used, the list
// is not read; the text remains, with each problem. For a script that completes the text, it
// sends proposals instead.
func sendText[T any](s *handlers, c *fiber.Ctx, page listPage[T], l *listing) error {
	text := c.Query("q")
	if len(text) > list.MaxText || !web.IsStorable(text) {
		text = textlimit.Storable(textlimit.Cut(text, list.MaxText))
		return unread(s, c, page, l, text, []list.Problem{{Word: list.Word{Text: textlimit.Clip(text, maxShown)}, Fault: list.Unreadable}})
	}
	ctx, cancel := l.context()
	defer cancel()
	reading, err := list.NewReading(ctx, l.filter.Spec, s.DB.Lists)
	if err != nil {
		return slow(ctx, err)
	}
	texts := search.TextsOf(l.filter.Spec.Name)
	reading.Alias = texts.FieldsNamed
	reading.Labels = func(field, value string) []string {
		words := texts.ValueText(field, value)
		return []string{words.ZH, words.EN}
	}
	if c.Query("propose") != "" {
		if !web.IsFragment(c) {
			return c.Redirect(l.address(), http.StatusSeeOther)
		}
		return s.Render(c, http.StatusOK, ui.Proposals(l.p, reading.Propose(text, maxProposals), texts))
	}
	terms, times, problems := l.readText(reading, list.Words(text))
	if len(problems) == 0 {
		values := l.linked()
		for _, t := range append(terms, times...) {
			values.Set(t.Name, t.Value)
		}
		l.query.Values = values
		return c.Redirect(l.address(), http.StatusSeeOther)
	}
	return unread(s, c, page, l, text, problems)
}

// unread shows a text that cannot be used, with each problem, and no rows.
func unread[T any](s *handlers, c *fiber.Ctx, page listPage[T], l *listing, text string, problems []list.Problem) error {
	ctx, cancel := l.context()
	defer cancel()
	around, err := around(ctx, l, list.Page[T]{})
	if err != nil {
		return slow(ctx, err)
	}
	around = page.listed(l.p, around, nil)
	around.Text, around.Problems, around.Exports = text, problems, nil
	drawn, err := page.page(ctx, l.p, around, nil)
	if err != nil {
		return slow(ctx, err)
	}
	return s.Render(c, http.StatusUnprocessableEntity, drawn)
}

// linked returns what an address has besides the text: what links restrict the list to, and the
// columns.
func (l *listing) linked() url.Values {
	values := url.Values{}
	for _, f := range l.filter.Spec.Fields {
		if value := l.query.Values.Get(f.Name); f.Hidden && value != "" {
			values.Set(f.Name, value)
		}
	}
	if columns := l.query.Values.Get("columns"); columns != "" {
		values.Set("columns", columns)
	}
	return values
}

// readText makes terms of the words of a text: of the list's fields, and of its time.
func (l *listing) readText(reading list.Reading, words []list.Word) (terms, times []list.Term, problems []list.Problem) {
	var rest []list.Word
	var span moments
	for _, w := range words {
		name := timeParam(w.Field)
		if reading.Spec.NoTimeFilter {
			name = ""
		}
		fault := list.Fault("")
		at, day, ok := l.end(name, w.Value, beginning(words))
		switch {
		case name == "":
			rest = append(rest, w)
			continue
		case slices.ContainsFunc(times, func(t list.Term) bool { return t.Name == name }):
			fault = list.Repeated
		case name == windowParam && slices.ContainsFunc(ui.Windows, func(c ui.WindowChoice) bool { return c.Name == w.Value }):
			times = append(times, list.Term{Name: name, Value: w.Value})
			continue
		case name == windowParam:
			fault = list.WrongValue
		case !ok:
			fault = list.WrongTime
		default:
			times = append(times, list.Term{Name: name, Value: momentText(at, day)})
			fault = span.add(name, at, day, l.view.Always)
		}
		if fault != "" {
			problems = append(problems, list.Problem{Word: w, Fault: fault, Hints: windowNames(fault)})
		}
	}
	terms, wrong := reading.ReadText(rest)
	return terms, times, append(wrong, problems...)
}

func windowNames(f list.Fault) (names []string) {
	if f == list.WrongValue {
		for _, w := range ui.Windows {
			names = append(names, w.Name)
		}
	}
	return names
}

// beginning returns the text of the moment at which the time of a filter begins; "" = none.
func beginning(words []list.Word) string {
	i := slices.IndexFunc(words, func(w list.Word) bool { return timeParam(w.Field) == fromParam })
	if i < 0 {
		return ""
	}
	return words[i].Value
}

// moments checks that the end of a time follows its beginning, and not too late.
type moments struct{ from, to time.Time }

func (m *moments) add(name string, at time.Time, day, always bool) list.Fault {
	if name == fromParam {
		m.from = at
	} else if m.to = at; day {
		m.to = calendar.DayStart(at, 1)
	}
	switch {
	case m.from.IsZero() || m.to.IsZero():
		return ""
	case !m.from.Before(m.to):
		return list.WrongOrder
	case !always && m.to.Sub(m.from) > maxSpan+time.Hour: // a day may have 25 hours
		return list.TooFar
	}
	return ""
}

// timeParam returns the parameter of a list's time that a word names; "" = none.
func timeParam(word string) string {
	switch strings.ToLower(word) {
	case fromParam, "从", "自":
		return fromParam
	case toParam, "until", "到", "至":
		return toParam
	case windowParam, "时间":
		return windowParam
	}
	return ""
}

// end reads the moment of a parameter. The end of two times of day, of which neither names its
// day, is on the day of the beginning, or on the next one if it precedes it there.
func (l *listing) end(name, text, beginning string) (at time.Time, day, ok bool) {
	clock, isClock := clockTime(text)
	if _, both := clockTime(beginning); name != toParam || !isClock || !both {
		return l.moment(text)
	}
	from, _, _ := l.moment(beginning)
	if at = clock.on(from, 0); at.Before(from) {
		at = clock.on(from, 1)
	}
	return at, false, true
}

// clock is a time of day.
type clock struct{ hour, minute, second int }

// clockTime reads a time of day.
func clockTime(text string) (clock, bool) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return clock{t.Hour(), t.Minute(), t.Second()}, true
		}
	}
	return clock{}, false
}

// on returns the time of day on the day of a moment, or so many days later.
func (c clock) on(t time.Time, later int) time.Time {
	return calendar.At(t, later, c.hour, c.minute, c.second)
}

// moment reads a moment in the operator's time zone: a time of day, which is the last one that
// has passed, a day, or both. day reports whether it is a whole day.
func (l *listing) moment(text string) (at time.Time, day, ok bool) {
	now := l.p.Now.In(l.p.Zone)
	switch strings.ToLower(text) {
	case "today", "今天":
		return calendar.DayStart(now, 0), true, true
	case "yesterday", "昨天":
		return calendar.DayStart(now, -1), true, true
	}
	if clock, ok := clockTime(text); ok {
		if at = clock.on(now, 0); at.After(now) {
			at = clock.on(now, -1)
		}
		return at, false, true
	}
	if at, err := calendar.ParseDay(text, l.p.Zone); err == nil {
		return at, true, plausible(at)
	}
	for _, layout := range []string{
		"2006-01-02T15:04", "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04:05", minuteLayout,
		time.RFC3339,
	} {
		if at, err := calendar.Parse(layout, text, l.p.Zone); err == nil {
			return at, false, plausible(at)
		}
	}
	return time.Time{}, false, false
}

// plausible reports whether a time can be that of a row.
func plausible(at time.Time) bool { return at.Year() >= 2000 && at.Year() < 2200 }

const minuteLayout = "2006-01-02T15:04Z07:00"

// momentText writes a moment for an address: with its offset, so that it means the same in every
// time zone.
func momentText(at time.Time, day bool) string {
	switch {
	case day:
		return at.Format(time.DateOnly)
	case at.Second() == 0:
		return at.Format(minuteLayout)
	}
	return at.Format(time.RFC3339)
}

// readTime sets the time that a list covers: from one moment to another, or a window before a
// moment, which is now unless another is given.
func (l *listing) readTime(always bool) {
	l.view.Always = always
	now := l.p.Now.In(l.p.Zone)
	var span moments
	for _, name := range []string{fromParam, toParam} {
		text := l.Text(name)
		if text == "" {
			continue
		}
		at, day, ok := l.end(name, text, l.Text(fromParam))
		if !ok {
			l.Blame(name, "use a day such as 2026-11-20, a time such as 14:05, or both: 2026-11-20T14:05")
			return
		}
		switch span.add(name, at, day, always) {
		case list.WrongOrder:
			l.Blame(name, "the end must be after the start")
			return
		case list.TooFar:
			l.Blame(name, "a list covers at most 31 days at once")
			return
		}
	}
	if span.from.IsZero() {
		l.readWindow(always, now, span.to)
		return
	}
	l.span.From, l.view.From, l.view.To = span.from.UnixMicro(), span.from.UnixMicro(), now.UnixMicro()
	switch {
	case !span.to.IsZero():
		l.span.To, l.view.To = span.to.UnixMicro(), span.to.UnixMicro()
	case !always && now.Sub(span.from) > maxSpan:
		end := span.from.Add(maxSpan)
		l.span.To, l.view.To = end.UnixMicro(), end.UnixMicro()
	}
}

// readWindow sets the time to a window before its end; the zero end is now.
func (l *listing) readWindow(always bool, now, to time.Time) {
	name := l.Text(windowParam)
	if name == "" && !always {
		name = ui.DayWindow
	}
	i := slices.IndexFunc(ui.Windows, func(w ui.WindowChoice) bool { return w.Name == name })
	if name != "" && i < 0 {
		l.Blame(windowParam, "use one of the list's windows")
		return
	}
	end := now
	if !to.IsZero() {
		// Days may have 23 or 25 hours, so days are counted, not hours.
		if end = to; i < 0 {
			i = slices.IndexFunc(ui.Windows, func(w ui.WindowChoice) bool { return w.Name == ui.DayWindow })
		}
		l.span.To = end.UnixMicro()
	}
	l.view = ui.Window{Always: always, To: end.UnixMicro()}
	if i < 0 {
		return
	}
	choice := ui.Windows[i]
	from := end.Add(-choice.Span)
	if choice.Days > 0 && l.span.To > 0 {
		from = calendar.AddDays(end, -choice.Days)
	}
	l.span.From, l.view.From, l.view.Name = from.UnixMicro(), from.UnixMicro(), choice.Name
}
