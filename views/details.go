package views

import (
	"encoding/json"
	"strconv"
	"strings"

	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"

	"github.com/a-h/templ"
)

// NotificationData is what one notification's page shows.
type NotificationData struct {
	*console.Notification
	CanResend bool
	// CanControl: the person may open and close breakers.
	CanControl bool
	Key        string // of the form
}

// ExceptionData is what one exception's page shows.
type ExceptionData struct {
	*console.Exception
	Saved                            bool   // what the person has just sent was kept
	Key                              string // of the one form that is sent
	CanComment, CanAssign, CanSettle bool
	MaySettle                        []string // the roles that may end it
	People                           []string // who may take it in hand
}

// reference names what the exception's subject is.
func (x ExceptionData) reference() word {
	switch x.Kind {
	case compensation.DisputeOpened:
		return tDisputeNo
	case compensation.UnknownEvent:
		return tEventType
	}
	return tReference
}

// open says whether people may still work on it.
func (x ExceptionData) open() bool {
	return x.State == compensation.Opened || x.State == compensation.Assigned
}

// ended says whether it may be opened again.
func (x ExceptionData) ended() bool {
	return x.State == compensation.Resolved || x.State == compensation.Ignored
}

func (x ExceptionData) money() bool { return compensation.CarriesMoney(x.Kind) }

var outcomeWords = map[compensation.Outcome]word{
	compensation.RefundedElsewhere: tOutRefunded,
	compensation.AcceptedElsewhere: tOutAccepted,
	compensation.NoEffect:          tOutNone,
}

func outcomeWord(o compensation.Outcome) word { return wordFor(outcomeWords, o) }

// endText is how an exception about money ended, in one line; "" = nothing is
// known of it.
func endText(p *Page, x *compensation.Item) string {
	if x.Outcome == "" {
		return ""
	}
	text := p.T(outcomeWord(x.Outcome))
	if x.Reference != "" {
		text += " · " + p.T(tProof) + p.T(tColon) + x.Reference
	}
	return text
}

func callbackLink(id int64) templ.SafeURL {
	return templ.URL("/callbacks/" + strconv.FormatInt(id, 10))
}

// notificationLink leads to a notification; one of a subscriber shares its event
// with the merchant's.
func notificationLink(d console.Delivery) templ.SafeURL {
	link := "/notifications/" + d.PublicID
	if d.House {
		link += "?delivery=" + strconv.FormatInt(d.ID, 10)
	}
	return templ.URL(link)
}

func exceptionPageLink(id int64) templ.SafeURL {
	return templ.URL("/exceptions/" + console.ExceptionID(id))
}

// rawCallback is a callback as it came, without what opens something.
func rawCallback(c *console.CallbackDetail) string {
	safe := c.Callback
	safe.Headers = console.SafeHeaders(c.Headers)
	return rawRequest(&safe)
}

// indented writes JSON over several lines; other text stays as it is.
func indented(raw string) string {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return raw
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return raw
	}
	return strings.TrimSpace(b.String())
}

// attemptState is how one attempt ended.
func attemptState(a notify.Attempt) state {
	if a.Class == notify.OK {
		return state{"ok", "check", tClassOK}
	}
	return state{"bad", "x", classWord(a.Class)}
}

// httpStatus is the merchant's answer in a word of its own; "–" = none came.
func httpStatus(p *Page, status int) string {
	if status == 0 {
		return p.T(tNone)
	}
	return strconv.Itoa(status)
}

// slowAnswer is the time of an answer, in µs, from which a merchant is slow.
const slowAnswer = 3_000_000

// triesDrawn bounds the bars of one row.
const triesDrawn = 6

// triesOf are the attempts of a notification as bars: f failed, s succeeded, n
// still to come.
func triesOf(d console.Delivery) (bars []string) {
	for range min(d.Delivery.Attempts, triesDrawn) {
		bars = append(bars, "f")
	}
	if d.Status == notify.Delivered && len(bars) > 0 {
		bars[len(bars)-1] = "s"
	}
	if d.NextAt != nil {
		bars = append(bars, "n")
	}
	return bars
}

// plan is where the dry run of this list is asked for.
func (l List) plan() string {
	if q := l.Values.Encode(); q != "" {
		return "/notifications/plans?" + q
	}
	return "/notifications/plans"
}

// deliveryState is how a notification stands, a parked one among them.
func deliveryState(status notify.Status, parked bool) state {
	if parked {
		return look(toldStates, "parked")
	}
	return look(deliveryStates, string(status))
}
