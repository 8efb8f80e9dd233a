package pages

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// fundStep is one step of money on its way: when it was made, by whom, with which entries and by
// which call or callback.
type fundStep struct {
	name     text.Text
	icon     string
	state    ui.State
	at       int64  // Unix µs; 0 = not yet
	next     int64  // when it is tried again; 0 = it is not
	who      string // actor; "" = the program
	note     string // from outside
	refs     []string
	call     *console.Call
	callback *console.Callback
	approval *console.Approval
	link     string // page of what the state is of
}

// Looks of steps that need no look of their own.
var (
	done         = ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "已完成", EN: "Done"}}
	pending      = ui.State{Kind: "idle", Icon: "clock", Label: text.Text{ZH: "未开始", EN: "Not yet"}}
	ifItFails    = ui.State{Kind: "idle", Icon: "clock", Label: text.Text{ZH: "失败时执行", EN: "Only if it fails"}}
	withinLimits = ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "限额内，无需复核", EN: "Within the limits"}}
	notNeeded    = ui.State{Kind: "idle", Icon: "ban", Label: text.Text{ZH: "不需要", EN: "Not needed"}}
)

// tone is the colour of a step's icon.
func (s fundStep) tone() string {
	switch s.state.Kind {
	case "ok", "bad", "warn":
		return "t-" + s.state.Kind
	case "info", "comp":
		return "t-info"
	}
	return "muted"
}

// Texts of steps.
var (
	tStepBy   = text.Text{ZH: "由 %s", EN: "by %s"}
	tStepNext = text.Text{ZH: "下次", EN: "next"}
)
