package views

import (
	"slices"
	"strconv"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/order"
)

// StoryData is what the page of one order shows.
type StoryData struct {
	*console.Story
	Phase console.Phase // of the events that are shown; "" = all
	// What the person may do; the keys mark this showing of the forms, Did what the
	// form did that led here.
	CanResend, CanControl, CanNote, CanUnmask, CanExport bool
	ResendKey, NoteKey, UnmaskKey                        string
	Did                                                  *audit.Row
	// ShownUntil is when personal data, which is in this answer alone, is hidden
	// again (Unix µs); 0 = it is masked.
	ShownUntil int64
	Print      bool // for paper: everything is open
	room       *room
}

// printed is the story for paper.
func printed(s StoryData) StoryData {
	s.Print, s.room = true, roomFor(len(s.Items))
	return s
}

// shown is the story for the screen.
func shown(s StoryData) StoryData {
	s.room = roomFor(len(s.Items))
	return s
}

// mood is a sentence of why with its colour and icon.
type mood struct{ kind, icon string }

var moods = map[console.Rule]mood{
	console.WhyException: {"bad", "triangle-alert"},
	console.WhyExhausted: {"bad", "triangle-alert"},
	console.WhyOverdue:   {"bad", "timer"},
	console.WhyDisabled:  {"bad", "ban"},
	console.WhyNoURL:     {"bad", "ban"},
	console.WhyOurFault:  {"bad", "triangle-alert"},
	console.WhyBreaker:   {"warn", "zap-off"},
	console.WhyByHand:    {"bad", "zap-off"},
	console.WhyQueued:    {"info", "clock"},
	console.WhyRetrying:  {"warn", "refresh-cw"},
	console.WhySending:   {"info", "send"},
	console.WhyPending:   {"info", "clock"},
	console.WhyPaying:    {"info", "arrow-right-left"},
	console.WhyClosing:   {"warn", "hourglass"},
	console.WhyNoAddress: {"info", "ban"},
	console.WhyDone:      {"ok", "circle-check"},
}

// whyTexts are the sentence and what goes on by itself.
func whyTexts(p *Page, s StoryData) (what, then string) {
	w := s.Why
	switch w.Rule {
	case console.WhyException:
		return exceptionText(p, s.Order, w.Exception)
	case console.WhyExhausted:
		return p.T(tWhyExhausted, w.Delivery.Attempts), p.T(tWhyExhaustedHow, p.T(classWord(w.Delivery.LastClass)))
	case console.WhyOverdue:
		return p.T(tWhyOverdue, p.full(w.At)), p.T(tWhyOverdueHow)
	case console.WhyDisabled:
		return p.T(tWhyDisabled), p.T(tWhyDisabledHow, p.short(w.At), w.Delivery.Attempts+1, w.Attempts, p.short(w.LastAt))
	case console.WhyNoURL:
		return p.T(tWhyNoURL), p.T(tWhyDisabledHow, p.short(w.At), w.Delivery.Attempts+1, w.Attempts, p.short(w.LastAt))
	case console.WhyOurFault:
		return p.T(tWhyOurFault, p.T(classWord(w.Fault))), p.T(tWhyOurFaultHow)
	case console.WhyBreaker:
		if w.Breaker.State == breaker.HalfOpen {
			return p.T(tWhyBreaker, breakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyProbing, p.short(w.At))
		}
		return p.T(tWhyBreaker, breakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyBreakerHow, p.short(w.At))
	case console.WhyByHand:
		return p.T(tWhyByHand, p.full(w.Breaker.ChangedAt)), p.T(tWhyByHandHow)
	case console.WhyQueued:
		return p.T(tWhyQueued), p.T(tWhyQueuedHow, p.short(w.At), w.Attempts, p.short(w.LastAt))
	case console.WhyRetrying:
		return p.T(tWhyRetrying, w.Delivery.Attempts, p.T(classWord(w.Delivery.LastClass))),
			p.T(tWhyRetryingHow, p.short(w.At), w.Delivery.Attempts+1, w.Attempts, p.short(w.LastAt))
	case console.WhySending:
		return p.T(tWhySending), p.T(tWhySendingHow, w.Delivery.Attempts, p.short(w.At))
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

// exceptionText says what came of money that does not fit its order.
func exceptionText(p *Page, o *order.Order, x *compensation.Item) (what, then string) {
	switch x.Kind {
	case compensation.AmountMismatch:
		return p.T(tWhyAmount, sum(o.Amount, o.Currency), sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case compensation.LatePayment:
		return p.T(tWhyLate, strings.ToLower(p.T(look(orderStates, string(o.Status)).word)), sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case compensation.DuplicatePayment:
		return p.T(tWhyDuplicate, sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case compensation.DisputeOpened:
		return disputeText(p, x)
	}
	return p.T(tWhyException, p.T(kindWord(x.Kind))), p.T(tWhyExceptionHow)
}

// sum is an amount within a sentence: its code stands behind it.
func sum(minor int64, currency string) string { return amount(minor, currency) + " " + currency }

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
	case i.Breaker != nil:
		kind = look(breakerStates, string(i.Breaker.To)).kind
	case i.Settled != nil:
		kind = look(exceptionStates, i.Settled.State).kind
	case i.Act != nil:
		kind = "info"
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
	case i.Breaker != nil:
		return "zap-off"
	case i.Settled != nil:
		return "wrench"
	case i.Act != nil:
		return "user"
	}
	return "clock"
}

func planText(p *Page, plan *console.Plan) string {
	switch plan.Kind {
	case console.PlanAttempt:
		return p.T(tPlanAttempt, plan.Number, plan.Of)
	case console.PlanProbe:
		return p.T(tPlanProbe)
	case console.PlanLast:
		return p.T(tPlanLast, plan.Number)
	case console.PlanReclaim:
		return p.T(tPlanReclaim, plan.Number)
	case console.PlanClose:
		return p.T(tPlanClose)
	}
	return p.T(tPlanExpire)
}

// itemTook is how long an event took, or how far a plan is away.
func itemTook(p *Page, i console.Item) string {
	switch {
	case i.Attempt != nil:
		return p.fine(i.Attempt.TookUS)
	case i.Plan != nil:
		return p.away(i.At)
	case i.Callback != nil:
		var took int64
		for _, step := range i.Callback.Steps {
			took += step.TookUS
		}
		if took > 0 {
			return p.fine(took)
		}
	}
	return ""
}

// rawRequest is a callback as it came: line, headers, body.
func rawRequest(c *console.Callback) string {
	target := "/callback/" + c.Supplier
	if c.Query != "" {
		target += "?" + c.Query
	}
	return c.Method + " " + target + "\n" + strings.TrimRight(c.Headers, "\n") + "\n\n" + string(c.Body)
}

func requestAndAnswer(a *notify.Attempt) string {
	parts := []string{"POST " + a.URL + "\n" + strings.TrimSpace(a.RequestHeader)}
	if a.ResponseHeader != "" || len(a.ResponseBody) > 0 {
		parts = append(parts, strings.TrimSpace(a.ResponseHeader)+"\n\n"+string(a.ResponseBody))
	}
	return strings.Join(parts, "\n\n")
}

// maxRaw is how much of one raw text the story shows, in bytes.
const maxRaw = 8 << 10

// mostShown is up to how many lines a difference stands open.
const mostShown = 12

// pretty writes JSON a field a line, and anything else as it came.
func pretty(text string) string { return strings.Join(bodyLines([]byte(text)), "\n") }

// expectation is what the merchant's rule for success wanted of an attempt that
// was answered, and what it got; "" where the rule is not why it failed.
func expectation(p *Page, s StoryData, a *notify.Attempt) (want, got string) {
	house := slices.ContainsFunc(s.Deliveries, func(d notify.Delivery) bool { return d.ID == a.DeliveryID && d.House })
	if house || a.Class != notify.BadStatus && a.Class != notify.BadText {
		return "", ""
	}
	if s.AckText == "" {
		return p.T(tExpectStatus), p.T(tGotStatus, a.HTTPStatus)
	}
	const most = 120 // of an answer in a line
	body := textlimit.Clip(string(a.ResponseBody), most)
	return p.T(tExpectText, strconv.Quote(s.AckText)), p.T(tGotText, a.HTTPStatus, strconv.Quote(body))
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

// moneyState compares what was paid with what was asked for, and with what the
// supplier holds besides.
func moneyState(s *console.Story) state {
	o := s.Order
	switch {
	case len(held(s)) > 0:
		return state{"bad", "scale", tHeldMore}
	case len(takenBack(s)) > 0:
		return state{"warn", "scale", tTakenMore}
	case o.PaidAmount == 0:
		return state{"idle", "clock", tUnpaid}
	case o.PaidAmount == o.Amount:
		return state{"ok", "check", tMatch}
	}
	return state{"bad", "scale", tDiffers}
}

// breakerCauses are the words of why a breaker changed.
var breakerCauses = map[string]word{
	breaker.InARow: tCauseInARow, breaker.FailureRate: tCauseRate, breaker.ProbeDue: tCauseProbeDue,
	breaker.ProbeTaken: tCauseProbeTaken, breaker.ProbeFailed: tCauseProbeFailed, breaker.ByHand: tCauseByHand,
}

func breakerCause(p *Page, cause string, failures int64) string {
	w, ok := breakerCauses[cause]
	switch {
	case !ok:
		return cause
	case cause == breaker.InARow:
		return p.T(w, failures)
	}
	return p.T(w)
}

// newDay says whether an event begins a day among those that are shown.
func newDay(p *Page, s StoryData, i int) bool {
	for before := i - 1; before >= 0; before-- {
		if s.Phase == "" || s.Items[before].Phase == s.Phase {
			return p.day(s.Items[before].At) != p.day(s.Items[i].At)
		}
	}
	return true
}

// storyRows is how many events of a kind a story shows.
const storyRows = 200

// storyCut says what a story leaves out.
func storyCut(p *Page, s *console.Story) string {
	l := s.Left
	var all []string
	if l.Callbacks > 0 {
		all = append(all, p.T(tCallbacksCut, count(l.Callbacks), plus(l.MoreCallbacks)))
	}
	if l.Bodies > 0 {
		all = append(all, p.T(tBodiesCut, count(l.Bodies), count(l.Bytes)))
	}
	if len(all) == 0 {
		all = append(all, p.T(tStoryCut, storyRows))
	}
	return strings.Join(all, " ")
}

// phases are the filters above a story.
var phases = []struct {
	phase console.Phase
	word  word
}{
	{console.PaymentPhase, tPhasePayment},
	{console.DeliveryPhase, tPhaseDeliver},
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
