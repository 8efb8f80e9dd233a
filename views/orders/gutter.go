package orders

import (
	"math"
	"strconv"
	"time"

	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// The gutter of a story is a scale of time: the way between two events grows with the time
// between them, tenfold time by the same step, so that milliseconds and days are both seen.

const (
	gutterFrom  = 10 * time.Millisecond // shorter pauses take no room
	gutterSteps = 8                     // heights in the style sheet, .g1 to .g8
	gutterNamed = time.Second           // pauses from here on are named
)

// gutterGap is the time between two events of a story.
type gutterGap struct {
	step int // 0 = none
	name string
}

// pauseOf is the pause between two moments (Unix µs).
func pauseOf(p *ui.Page, from, to int64) gutterGap {
	d := time.Duration(to-from) * time.Microsecond
	if d < gutterFrom {
		return gutterGap{}
	}
	at := gutterGap{step: min(gutterSteps, 1+int(math.Log10(float64(d)/float64(gutterFrom))))}
	if d >= gutterNamed {
		at.name = "+" + p.Took(d.Round(100*time.Millisecond))
	}
	return at
}

// gutter is the way to an event from the one before it.
func gutter(p *ui.Page, from, to int64) templ.Component {
	g := pauseOf(p, from, to)
	return ui.If(g.step > 0, ui.Styled("pause "+g.class(), g.name))
}

// class is the gap's height in the style sheet.
func (g gutterGap) class() string { return "g" + strconv.Itoa(g.step) }

// before is when the event shown before the i-th of them was; its own moment for the first one,
// and where others are left out.
func (s StoryData) before(i int) int64 {
	if i == 0 || i == s.gap && s.omitted > 0 {
		return s.Items[s.shown[i]].At
	}
	return s.Items[s.shown[i-1]].At
}

// future reports whether the i-th of the shown events is the first one that is planned for later
// than now.
func (s StoryData) future(p *ui.Page, i int) bool {
	planned := func(i int) bool {
		item := s.Items[s.shown[i]]
		return item.Plan != nil && item.At > p.Now.UnixMicro()
	}
	return planned(i) && (i == 0 || !planned(i-1))
}

var tStoryNow = text.Text{ZH: "现在", EN: "Now"}
