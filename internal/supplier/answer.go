package supplier

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// Call is one request to a supplier.
type Call struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	// Shown replaces path, query and body in Exchange.Request if those contain a signature or a
	// key; "" = they do not.
	Shown string
}

// Send makes the call. The error says why there is no answer; the Exchange then has a class. An
// answer that arrives after the context has ended is dropped, because the caller is gone.
func (c Call) Send(ctx context.Context, out Client) (Exchange, error) {
	request := c.kept()
	if ctx.Err() != nil {
		return Exchange{Class: ClassTimeout, Request: request}.without()
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		return Exchange{Class: ClassConnect, Request: request}.without()
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	x := out.Do(r)
	x.Request = request
	if x.At.IsZero() {
		x.At = time.Now()
	}
	if x.Class == "" && ctx.Err() != nil {
		x.Class = ClassTimeout
	}
	if len(x.Body) > MaxAnswer {
		x.Body = x.Body[:MaxAnswer:MaxAnswer]
		if x.Class == "" {
			x.Class = ClassBadAnswer
		}
	}
	if x.Class != "" {
		return x.without()
	}
	return x, nil
}

// kept returns the request as stored for operators.
func (c Call) kept() []byte {
	shown := c.Shown
	if shown == "" {
		if u, err := url.Parse(c.URL); err == nil {
			shown = u.RequestURI()
		}
		if len(c.Body) > 0 {
			shown += "\n\n" + string(c.Body)
		}
	}
	return []byte(c.Method + " " + shown)
}

// without returns the exchange of a call without an answer.
func (x Exchange) without() (Exchange, error) { return x, noAnswer.Say(string(x.Class)) }

// Unknown returns an answer that says nothing about the payment. class "" keeps the exchange's
// class.
func (x Exchange) Unknown(class Class, err error) Answer {
	if class != "" {
		x.Class = class
	}
	return Answer{State: AnswerUnknown, Reason: text.Of(err), Exchange: x}
}

// StartUnknown is Unknown for a start.
func (x Exchange) StartUnknown(class Class, err error) Started {
	a := x.Unknown(class, err)
	return Started{State: StartUnknown, Reason: a.Reason, Exchange: a.Exchange}
}

// Judge returns the answer of an authentic message: m is the meaning of its status, says its
// content, whose status is set here. It is unknown if the meaning is, if it concerns another
// reference than r's, or if it says paid without an amount or a currency.
func (x Exchange) Judge(r Ref, m Meaning, says Callback) Answer {
	state := m.State()
	switch {
	case says.OrderRef != r.Reference:
		return x.Unknown(ClassBadAnswer, otherOrder.Say(quoted(says.OrderRef)))
	case state == AnswerUnknown:
		return x.Unknown(ClassUnknown, otherWord.Say(quoted(says.RawStatus)))
	case state == AnswerPaid && (says.Amount <= 0 || says.Currency == ""):
		return x.Unknown(ClassBadAnswer, noMoney.Say())
	}
	x.Class = ClassOK
	says.Status, says.Final, says.Reverses = state.status(), state == AnswerFailed, m.Reverses
	if m.Refunded && says.RefundTotal == 0 {
		says.RefundTotal = UnknownTotal
	}
	if says.RefundTotal != 0 {
		says.TotalAt = x.At
	}
	return Answer{State: state, Says: says, Exchange: x}
}

// status returns the status of a callback with the same meaning.
func (s AnswerState) status() Status {
	switch s {
	case AnswerPaid:
		return Paid
	case AnswerFailed:
		return Failed
	case AnswerClosed:
		return Closed
	default:
		return Other
	}
}

// quoted quotes a text from outside for use in a reason.
func quoted(s string) string { return strconv.Quote(textlimit.Clip(s, 80)) }

// masked stands where a secret was.
const masked = "***"

// Mask removes a secret from everything stored of the exchange.
func (x Exchange) Mask(secret string) Exchange {
	if secret == "" {
		return x
	}
	x.Request = bytes.ReplaceAll(x.Request, []byte(secret), []byte(masked))
	x.Body = bytes.ReplaceAll(x.Body, []byte(secret), []byte(masked))
	return x
}
