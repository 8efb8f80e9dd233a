package views

import (
	"net/url"
	"strings"
	"time"

	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/a-h/templ"
)

// StoryData is what the page of one order shows.
type StoryData struct {
	*console.Story
	Masked bool // personal data was taken out
	// CanResend and CanNote say what the person may do; the keys mark this showing
	// of the forms, Done what was done just now.
	CanResend, CanNote bool
	ResendKey, NoteKey string
	Done               string
}

// mood is a sentence of why with its colour and icon.
type mood struct{ kind, icon string }

var moods = map[console.Rule]mood{
	console.WhyException: {"bad", "triangle-alert"},
	console.WhyExhausted: {"bad", "triangle-alert"},
	console.WhyOverdue:   {"bad", "timer"},
	console.WhyRetrying:  {"warn", "refresh-cw"},
	console.WhySending:   {"info", "send"},
	console.WhyPending:   {"info", "clock"},
	console.WhyPaying:    {"info", "arrow-right-left"},
	console.WhyClosing:   {"warn", "hourglass"},
	console.WhyNoAddress: {"info", "ban"},
	console.WhyDone:      {"ok", "circle-check"},
}

// whyTexts are the sentence and what goes on by itself.
func whyTexts(p *Page, w console.Why) (what, then string) {
	switch w.Rule {
	case console.WhyException:
		return p.T(tWhyException, p.T(kindWord(w.Exception.Kind))), p.T(tWhyExceptionHow)
	case console.WhyExhausted:
		return p.T(tWhyExhausted, w.Delivery.Attempts), p.T(tWhyExhaustedHow, p.T(classWord(w.Delivery.LastClass)))
	case console.WhyOverdue:
		return p.T(tWhyOverdue, p.full(w.At)), p.T(tWhyOverdueHow)
	case console.WhyRetrying:
		return p.T(tWhyRetrying, w.Delivery.Attempts, p.T(classWord(w.Delivery.LastClass))),
			p.T(tWhyRetryingHow, p.short(w.At), w.Delivery.Attempts+1, w.Attempts, p.short(w.LastAt))
	case console.WhySending:
		return p.T(tWhySending), p.T(tWhySendingHow)
	case console.WhyPending:
		return p.T(tWhyPending), p.T(tWhyPendingHow, p.short(w.At))
	case console.WhyPaying:
		return p.T(tWhyPaying), p.T(tWhyPayingHow, p.short(w.At))
	case console.WhyClosing:
		return p.T(tWhyClosing), p.T(tWhyClosingHow, p.short(w.At))
	case console.WhyNoAddress:
		return p.T(tWhyNoAddress), p.T(tWhyNoAddressHow)
	}
	return p.T(tWhyDone), p.T(tWhyDoneHow)
}

// line is the class of an item: its mood and its phase.
func line(i console.Item) string {
	kind := "idle"
	switch {
	case i.Callback != nil:
		kind = outcomeState(i.Callback.Outcome).kind
	case i.Move != nil && i.Move.From != "":
		kind = look(orderStates, string(i.Move.To)).kind
	case i.Attempt != nil && i.Attempt.Class == notify.OK:
		kind = "ok"
	case i.Attempt != nil, i.Exception != nil:
		kind = "bad"
	case i.Plan != nil:
		kind = "next"
	}
	return kind + " ph-" + string(i.Phase)
}

func dotIcon(i console.Item) string {
	switch {
	case i.Callback != nil:
		return "webhook"
	case i.Move != nil && i.Move.From == "":
		return "receipt-text"
	case i.Move != nil:
		return "arrow-right-left"
	case i.Queued != nil:
		return "bell-ring"
	case i.Attempt != nil:
		return "send"
	case i.Exception != nil:
		return "triangle-alert"
	case i.Act != nil:
		return "user"
	}
	return "clock"
}

func planText(p *Page, plan *console.Plan) string {
	switch plan.Kind {
	case console.PlanAttempt:
		return p.T(tPlanAttempt, plan.Number, plan.Of)
	case console.PlanReclaim:
		return p.T(tPlanReclaim, plan.Number)
	case console.PlanClose:
		return p.T(tPlanClose)
	}
	return p.T(tPlanExpire)
}

func attemptTook(p *Page, a *notify.Attempt) string {
	return p.took(time.Duration(a.TookUS) * time.Microsecond)
}

// rawRequest is a callback as it came: line, headers, body.
func rawRequest(c *console.Callback) string {
	target := "/callback/" + c.Supplier
	if c.Query != "" {
		target += "?" + c.Query
	}
	return c.Method + " " + target + "\n" + c.Headers + "\n" + string(c.Body)
}

func requestAndAnswer(a *notify.Attempt) string {
	parts := []string{"POST " + a.URL + "\n" + strings.TrimSpace(a.RequestHeader)}
	if a.ResponseHeader != "" || len(a.ResponseBody) > 0 {
		parts = append(parts, strings.TrimSpace(a.ResponseHeader)+"\n\n"+string(a.ResponseBody))
	}
	return strings.Join(parts, "\n\n")
}

// repeatOf is the first callback of the order, for one that is not it.
func repeatOf(s *console.Story, c *console.Callback) *console.Callback {
	for _, i := range s.Items {
		if i.Callback != nil {
			if i.Callback == c {
				return nil
			}
			return i.Callback
		}
	}
	return nil
}

// change is one line of a difference.
type change struct {
	added bool
	text  string
}

// maxDiffLines bounds the work of comparing two requests: it grows with the
// product of their lines.
const maxDiffLines = 300

// diff is the lines in which b differs from a (longest common subsequence).
func diff(a, b string) []change {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	x, y = x[:min(len(x), maxDiffLines)], y[:min(len(y), maxDiffLines)]
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []change
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			out = append(out, change{false, x[i]})
			i++
		default:
			out = append(out, change{true, y[j]})
			j++
		}
	}
	return out
}

// moneyState compares what was paid with what was asked for.
func moneyState(o *order.Order) state {
	switch {
	case o.PaidAmount == 0:
		return state{"idle", "clock", tUnpaid}
	case o.PaidAmount == o.Amount:
		return state{"ok", "check", tMatch}
	}
	return state{"bad", "scale", tDiffers}
}

func newDay(p *Page, items []console.Item, i int) bool {
	return i == 0 || p.day(items[i-1].At) != p.day(items[i].At)
}

// storyRows is how many events of a kind a story shows.
const storyRows = 200

// phases are the buttons above a story.
var phases = []struct {
	phase console.Phase
	word  word
}{
	{console.CallbackPhase, tCallbacks},
	{console.StatusPhase, tPhaseStatus},
	{console.NotifyPhase, tAttemptsList},
	{console.ExceptionPhase, tExceptions},
	{console.PeoplePhase, tPhasePeople},
	{console.PlanPhase, tPhasePlan},
}

func inPhase(s *console.Story, phase console.Phase) (n int64) {
	for _, i := range s.Items {
		if i.Phase == phase {
			n++
		}
	}
	return n
}

// orderPath is a path below an order's.
func orderPath(no, act string) templ.SafeURL {
	return templ.URL("/orders/" + url.PathEscape(no) + "/" + act)
}

// resendable is the public id of the notification that a person would send again:
// the newest one that is not being sent right now; "" = there is none.
func resendable(s StoryData) string {
	for _, d := range s.Deliveries {
		if d.Status != notify.Sending {
			return notify.PublicID(d.EventID)
		}
	}
	return ""
}
