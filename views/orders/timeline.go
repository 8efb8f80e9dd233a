package orders

import (
	"context"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// timeline is what a page shows of a story's events.
type timeline struct {
	shown   []int              // places in Items, oldest first
	gap     int                // place in shown before which events are left out
	omitted int                // how many events are left out there
	left    console.LeftEvents // all that is left out, also what was not read
	room    *ui.ByteBudget
	spare   int // bytes of a story's events that are not used
	// diffs are how callbacks differ from the first one.
	diffs map[*console.Callback][]change
}

// longPause is as long as a pause is in words.
const longPause = int64(400 * 24 * time.Hour / time.Microsecond)

// fitted chooses the events for which the page has room, and gives what remains of it
// to raw texts and passed checks.
func fitted(ctx context.Context, p *ui.Page, s StoryData) StoryData {
	s.timeline = timeline{room: &ui.ByteBudget{}, diffs: map[*console.Callback][]change{}}
	var all, sizes []int
	for i, item := range s.Items {
		if s.Phase != "" && item.Phase != s.Phase {
			continue
		}
		var size counter
		_ = storyLine(p, s, i, item.At-longPause, true).Render(ctx, &size) // fails only with ctx, as the page does
		all, sizes = append(all, i), append(sizes, int(size))
	}
	head, tail, left := console.FitEnds(sizes, storyRoom)
	var omitted []console.Item
	for _, i := range all[head:tail] {
		omitted = append(omitted, s.Items[i])
	}
	s.shown, s.gap, s.omitted = slices.Concat(all[:head], all[tail:]), head, len(omitted)
	s.left = s.Left.Events.With(omitted)
	s.room, s.spare = &ui.ByteBudget{Left: min(textRoom, left)}, max(0, left-textRoom)
	return s
}

// counter counts the bytes that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// newDay reports whether the i-th of the shown events is the first one of its day.
func (s StoryData) newDay(p *ui.Page, i int) bool {
	return i == 0 || p.Day(s.Items[s.shown[i]].At) != p.Day(s.Items[s.shown[i-1]].At)
}

// diff is how a callback differs from the first one of its order.
func (s StoryData) diff(first, c *console.Callback) []change {
	only, known := s.diffs[c]
	if !known {
		only = changed(compare(first, c))
		s.diffs[c] = only
	}
	return only
}

// leftOut names what a page of a story leaves out; "" = nothing.
func leftOut(p *ui.Page, s StoryData) string {
	texts := ""
	if s.Left.Texts > 0 {
		texts = p.T(tBodiesCut, ui.Count(s.Left.Texts), ui.Count(s.Left.Bytes))
	}
	return leftEvents(p, s.left) + texts
}

// leftOfFile names what the file of an order's evidence leaves out.
func leftOfFile(p *ui.Page, e *console.Evidence) string {
	texts := ""
	if e.LeftOut.Texts > 0 {
		texts = p.T(tTextsCut, ui.Count(e.LeftOut.Texts), ui.Count(e.LeftOut.Bytes))
	}
	return leftEvents(p, e.LeftOut.Events) + texts
}

func leftEvents(p *ui.Page, left console.LeftEvents) string {
	var all []string
	for _, kind := range console.ItemKinds {
		if c, ok := left[kind]; ok {
			all = append(all, p.T(itemKinds[kind], ui.Count(c.N), ui.Plus(c.More)))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return p.T(tEventsCut, strings.Join(all, p.T(tAnd)))
}

// itemKinds are the kinds of a story's events with how many there are.
var itemKinds = map[console.ItemKind]text.Text{
	console.ItemCallback:     {ZH: "回调 %s%s 条", EN: "callbacks %s%s"},
	console.ItemStatus:       {ZH: "状态变化 %s%s 次", EN: "changes of status %s%s"},
	console.ItemNotification: {ZH: "通知 %s%s 条", EN: "notifications %s%s"},
	console.ItemAttempt:      {ZH: "通知尝试 %s%s 次", EN: "attempts %s%s"},
	console.ItemException:    {ZH: "异常 %s%s 条", EN: "exceptions %s%s"},
	console.ItemSettled:      {ZH: "异常结束 %s%s 条", EN: "ends of exceptions %s%s"},
	console.ItemBreaker:      {ZH: "熔断变化 %s%s 次", EN: "changes of the breaker %s%s"},
	console.ItemCall:         {ZH: "渠道调用 %s%s 次", EN: "calls to the supplier %s%s"},
	console.ItemAct:          {ZH: "人工操作 %s%s 次", EN: "acts %s%s"},
	console.ItemProposal:     {ZH: "提议 %s%s 项", EN: "proposals %s%s"},
	console.ItemVerdict:      {ZH: "复核 %s%s 项", EN: "verdicts %s%s"},
	console.ItemRan:          {ZH: "决定执行 %s%s 项", EN: "decisions carried out %s%s"},
	console.ItemRefund:       {ZH: "退款变化 %s%s 次", EN: "changes of refunds %s%s"},
	console.ItemDispute:      {ZH: "争议变化 %s%s 次", EN: "changes of disputes %s%s"},
	console.ItemPlan:         {ZH: "计划 %s%s 项", EN: "plans %s%s"},
}

// Texts of a story's events.
var (
	tEventsCut = text.Text{ZH: "最早和最近的事件之间，未显示：%s。", EN: "Not shown, between the oldest and the newest events: %s. "}
	tAnd       = text.Text{ZH: "、", EN: ", "}
	tGap       = text.Text{
		ZH: "此处有 %s 条未显示：页面已满。按类别筛选可以看到更多。",
		EN: "%s events are not shown here: the page is full. Filter by kind to see more.",
	}
	tBodiesCut = text.Text{
		ZH: "另有 %s 条回调未显示原文（共 %s 字节），可单独打开。",
		EN: "The bodies of %s callbacks (%s bytes) are left out here; open each one to read it.",
	}
	tTextsCut = text.Text{
		ZH: "另有 %s 段长文本（共 %s 字节）未收入文件，所属事件注明了长度。",
		EN: "The file leaves out %s long texts (%s bytes); each event states the length.",
	}
	tMoreRows = text.Text{ZH: "另有 %s%s 条", EN: "%s%s more"}
	tSpansCut = text.Text{ZH: "图中只画出最早和最近的各 %d 段。", EN: "Only the first and the last steps are drawn, %d of each."}
)

const storyRoom = 768 << 10 // of a story's events

const textRoom = 384 << 10 // of that its raw texts and passed checks
