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
	// Shown takes the place of path, query and body in Exchange.Request, where those hold a
	// signature or a key; "" = they do not.
	Shown string
}

// Send makes the call. The error says why there is no answer, and the Exchange has a class
// then. An answer that comes after the context has ended is none: whoever asked has gone.
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

// kept is the request as operators see it.
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

// without is the exchange of a call that got no answer.
func (x Exchange) without() (Exchange, error) { return x, noAnswer.Say(string(x.Class)) }

// Unknown is the answer that says nothing of the payment. class "" keeps the one that the
// exchange has.
func (x Exchange) Unknown(class Class, err error) Answer {
	if class != "" {
		x.Class = class
	}
	return Answer{State: AnswerUnknown, Reason: text.Of(err), Exchange: x}
}

// StartUnknown is Unknown of a start.
func (x Exchange) StartUnknown(class Class, err error) Started {
	a := x.Unknown(class, err)
	return Started{State: StartUnknown, Reason: a.Reason, Exchange: a.Exchange}
}

// Judge is the answer of a message that is authentic: m is what its word means, says its
// content, whose status is set here. It is unknown where the word is, where it is about
// another reference than r's, and where it says paid without an amount or a currency.
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
	if m.Refunded {
		says.Status = Refunded
	}
	return Answer{State: state, Refunded: m.Refunded, Says: says, Exchange: x}
}

// status is that of a callback which says the same.
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

// quoted is a text from outside as a reason shows it.
func quoted(s string) string { return strconv.Quote(textlimit.Clip(s, 80)) }

// Mask replaces a secret in everything that is kept of the exchange.
func (x Exchange) Mask(secret string) Exchange {
	if secret == "" {
		return x
	}
	x.Request = bytes.ReplaceAll(x.Request, []byte(secret), []byte("***"))
	x.Body = bytes.ReplaceAll(x.Body, []byte(secret), []byte("***"))
	return x
}
