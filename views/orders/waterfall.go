package orders

import (
	"slices"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// The waterfall of an order: a lane for each kind of span on one axis of time.
// Measures are pixels of a page of the usual width.
const (
	fallLeft    = 0.0
	fallRight   = 648.0
	fallNames   = 84.0 // room for the lanes' names
	fallTop     = 22.0
	fallLane    = 22.0
	fallBar     = 16.0
	fallLetter  = 6.0   // the width of a letter in a bar
	fallTick    = 2.5   // the least width at which a bar is seen
	fallCut     = 30.0  // what a wait that was cut out takes
	fallLabel   = 52.0  // the least room between two labels
	fallNarrow  = 150.0 // and between two on a narrow page
	fallCutFrom = 0.35  // waits longer than this share of all work are cut out
)

// fewestSpans is how many spans a waterfall has at least: fewer are told by the story below it.
const fewestSpans = 3

// spanEnds is how many spans a waterfall has of each end of a story.
const spanEnds = 50

// drawable leaves out the spans in the middle where there are too many to be seen.
func drawable(all []console.Span) (some []console.Span, whole bool) {
	if len(all) <= 2*spanEnds {
		return all, true
	}
	return slices.Concat(all[:spanEnds], all[len(all)-spanEnds:]), false
}

// lane is one line of the waterfall.
type lane struct {
	label text.Text
	kinds []console.SpanKind
}

// lanes are the kinds of spans as they are drawn, from top to bottom.
var lanes = []lane{
	{tSpanVerify, []console.SpanKind{console.SpanVerify}},
	{tSpanCommit, []console.SpanKind{console.SpanCommit}},
	{tSpanQueue, []console.SpanKind{console.SpanQueue, console.SpanWait}},
	{tSpanAttempt, []console.SpanKind{console.SpanAttempt}},
	{tStoryBreaker, []console.SpanKind{console.SpanBreaker}},
}

// lanesOf are the lanes that are not empty: most orders meet no breaker.
func lanesOf(spans []console.Span) (used []lane) {
	for _, l := range lanes {
		if l.label != tStoryBreaker || slices.ContainsFunc(spans, func(s console.Span) bool { return slices.Contains(l.kinds, s.Kind) }) {
			used = append(used, l)
		}
	}
	return used
}

// fallSpan is one span ready to be drawn.
type fallSpan struct {
	ui.Box
	class string
	title string
	label string // in the bar; "" = it has no room
	roomy bool   // the label needs a wide page
}

// fallMark is a moment on the axis.
type fallMark struct {
	x     float64
	text  string
	roomy bool // the text needs a wide page
}

// fall is the geometry of a waterfall.
type fall struct {
	height float64
	lanes  []lane
	spans  []fallSpan
	marks  []fallMark
	cuts   []ui.Box
	says   string
}

// stretch is a piece of time and its place on the axis.
type stretch struct {
	from, to int64
	x, w     float64
	cut      bool
}

// stretches divides the time of the spans into work, which is drawn to scale, and
// long waits, which are cut to a band: else a wait of hours would leave nothing to
// be seen of the milliseconds before it.
func stretches(spans []console.Span) []stretch {
	var work []stretch
	for _, s := range spans {
		if s.Idle() {
			work = append(work, stretch{from: s.From, to: s.From}, stretch{from: s.To, to: s.To})
		} else {
			work = append(work, stretch{from: s.From, to: s.To})
		}
	}
	slices.SortFunc(work, func(a, b stretch) int { return int(min(max(a.from-b.from, -1), 1)) })
	var busy int64
	var merged []stretch
	for _, w := range work {
		if n := len(merged); n > 0 && w.from <= merged[n-1].to {
			busy += max(0, w.to-merged[n-1].to)
			merged[n-1].to = max(merged[n-1].to, w.to)
			continue
		}
		busy += w.to - w.from
		merged = append(merged, w)
	}
	var all []stretch
	for i, w := range merged {
		if i > 0 {
			gap := stretch{from: merged[i-1].to, to: w.from}
			gap.cut = float64(gap.to-gap.from) > fallCutFrom*float64(busy)
			all = append(all, gap)
		}
		all = append(all, w)
	}
	return place(all)
}

// place gives each stretch its part of the axis.
func place(all []stretch) []stretch {
	room, cuts := fallRight-fallLeft, 0
	var drawn int64
	for _, s := range all {
		if s.cut {
			cuts++
		} else {
			drawn += s.to - s.from
		}
	}
	band := 0.0
	if cuts > 0 {
		band = min(fallCut, 0.5*room/float64(cuts))
		if drawn == 0 {
			band = room / float64(cuts)
		}
		room -= band * float64(cuts)
	}
	x := fallLeft
	for i := range all {
		all[i].x = x
		switch {
		case all[i].cut:
			all[i].w = band
		case drawn > 0:
			all[i].w = room * float64(all[i].to-all[i].from) / float64(drawn)
		}
		x += all[i].w
	}
	return all
}

// axis finds a moment's place.
func axis(all []stretch, at int64) float64 {
	for _, s := range all {
		if at > s.to || s.to == s.from && at != s.from {
			continue
		}
		if s.to == s.from {
			return s.x
		}
		return s.x + s.w*float64(at-s.from)/float64(s.to-s.from)
	}
	return fallRight
}

// drawFall computes the waterfall; nothing where little was measured.
func drawFall(p *ui.Page, spans []console.Span) (f fall) {
	if len(spans) < fewestSpans {
		return f
	}
	all := stretches(spans)
	f.lanes = lanesOf(spans)
	f.height = fallTop + fallLane*float64(len(f.lanes)) + 4
	callbacks, attempts := 0, 0
	end := spans[0].From
	for _, s := range spans {
		end = max(end, s.To)
		switch s.Kind {
		case console.SpanVerify:
			callbacks++
		case console.SpanAttempt:
			attempts++
		}
		from, to := axis(all, s.From), axis(all, s.To)
		line := slices.IndexFunc(f.lanes, func(l lane) bool { return slices.Contains(l.kinds, s.Kind) })
		b := ui.Box{X: min(from, fallRight-fallTick), Y: fallTop + fallLane*float64(line) + 2, W: max(to-from, fallTick), H: fallBar}
		bar := fallSpan{Box: b, class: spanClass(s), title: spanWord(p, s) + " · " + spanTook(p, s)}
		if room := fallLetter * float64(len(p.Fine(s.To-s.From))+2); b.W >= room && !s.Planned {
			bar.label, bar.roomy = p.Fine(s.To-s.From), b.W < 2*room
		}
		f.spans = append(f.spans, bar)
	}
	lastLabel, lastNarrow := -fallLabel, -fallNarrow
	for i, s := range all {
		if s.cut {
			f.cuts = append(f.cuts, ui.Box{X: s.x, Y: fallTop, W: s.w, H: f.height - fallTop})
			continue
		}
		if i%2 == 0 && s.x-lastLabel >= fallLabel && s.x <= fallRight-fallLabel/2 {
			m := fallMark{x: s.x, text: "+" + p.Fine(s.from-spans[0].From)}
			if m.roomy = s.x-lastNarrow < fallNarrow || s.x > 0.8*fallRight; !m.roomy {
				lastNarrow = s.x
			}
			f.marks = append(f.marks, m)
			lastLabel = s.x
		}
	}
	f.says = p.T(tWaterfallSays, p.Short(spans[0].From), p.Fine(end-spans[0].From), callbacks, attempts)
	return f
}

// spanClass colours a span: what is done by us, good and bad attempts, waits.
func spanClass(s console.Span) string {
	switch {
	case s.Planned:
		return "f-plan"
	case s.Kind == console.SpanVerify:
		return "f-acc"
	case s.Kind == console.SpanCommit, s.Kind == console.SpanAttempt && s.OK:
		return "f-ok"
	case s.Kind == console.SpanAttempt:
		return "f-bad"
	}
	return "f-warn"
}

// spanWord names a span: its kind and its number.
func spanWord(p *ui.Page, s console.Span) string {
	words := map[console.SpanKind]text.Text{
		console.SpanVerify: tSpanVerify, console.SpanCommit: tSpanCommit, console.SpanQueue: tSpanQueue,
		console.SpanAttempt: text.AttemptN, console.SpanWait: tSpanWait, console.SpanBreaker: tStoryBreaker,
	}
	if s.Kind == console.SpanAttempt {
		return p.T(text.AttemptN, s.Number)
	}
	return p.T(words[s.Kind]) + " " + strconv.Itoa(s.Number)
}

// spanColumns are those of the table of what the waterfall draws, which begins at start (Unix µs).
func spanColumns(start int64) []ui.Column[console.Span] {
	return []ui.Column[console.Span]{
		ui.WordCol("step", tSpanStep, spanWord).As(""),
		ui.TimeCol("started", text.Started, func(s console.Span) *int64 { return &s.From }).As("mono"),
		ui.WordCol("offset", tSpanOffset, func(p *ui.Page, s console.Span) string { return "+" + p.Fine(s.From-start) }).As("num mono"),
		ui.WordCol("took", text.Took, spanTook).As("num mono"),
	}
}

func spanTook(p *ui.Page, s console.Span) string {
	took := p.T(text.None)
	if s.To > s.From {
		took = p.Fine(s.To - s.From)
	}
	if s.Planned {
		took += " (" + p.T(tSpanPlanned) + ")"
	}
	return took
}

// Texts of this page.
var (
	tWaterfall     = text.Text{ZH: "真实耗时", EN: "Real durations"}
	tWaterfallSays = text.Text{
		ZH: "从 %s 起共 %s：%d 次回调，%d 次通知。灰色窄条是省略的等待。",
		EN: "%[2]s, starting at %[1]s: callbacks %[3]d, attempts %[4]d. Grey bands are omitted waits.",
	}
	tSpanVerify   = text.Text{ZH: "回调验证", EN: "Verification"}
	tSpanCommit   = text.Text{ZH: "入账提交", EN: "Commit"}
	tSpanQueue    = text.Text{ZH: "排队", EN: "Queue"}
	tSpanAttempt  = text.Text{ZH: "通知商户", EN: "Attempts"}
	tSpanWait     = text.Text{ZH: "等待重试", EN: "Wait"}
	tSpanStep     = text.Text{ZH: "步骤", EN: "Step"}
	tSpanOffset   = text.Text{ZH: "相对", EN: "Offset"}
	tSpanPlanned  = text.Text{ZH: "计划中", EN: "planned"}
	tStoryBreaker = text.Text{ZH: "熔断", EN: "Breaker"}
)
