package supplier

import (
	"time"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// Step is one verification step as displayed: the finding by its code, with arguments if it
// failed.
type Step struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	text.Message
	Detail string `json:"detail,omitempty"`  // a sentence, in rows older than the codes
	TookUS int64  `json:"took_us,omitempty"` // µs since the previous step; 0 = not measured
}

// Text returns the finding in English.
func (s Step) Text(known text.Catalog) string {
	if s.Code == "" {
		return s.Detail
	}
	return known.Say(s.Message, "en", nil)
}

// Trace collects the verification steps of one callback. Details are stored and displayed, so
// they must not contain secrets.
type Trace struct {
	Steps []Step
	last  time.Time // end of the newest step
}

// NewTrace returns a Trace that measures its steps; the zero Trace does not.
func NewTrace() *Trace { return &Trace{last: time.Now()} }

// maxDetail bounds one argument of a step, which may come from outside.
const maxDetail = 300

// Pass records a check that passed.
func (t *Trace) Pass(name string, code text.Code) { t.add(name, true, code.Say()) }

// Fail records a check that failed.
func (t *Trace) Fail(name string, code text.Code, args ...any) { t.add(name, false, code.Say(args...)) }

// FailContent records that an authentic message cannot be parsed, and returns the result of
// Parse: an *Unreadable with what could be parsed, which moves nothing. signed is what the
// signature covers; "" = the whole body.
func (t *Trace) FailContent(c Callback, err error, signed string) (Callback, error) {
	t.FailBy("content", err)
	c.Status, c.Final, c.Reverses = Other, false, false
	return Callback{}, &Unreadable{Kind: "malformed", Result: Malformed, Reason: text.Of(err), Callback: c, Signed: signed}
}

// FailBy records a check that failed with an error.
func (t *Trace) FailBy(name string, err error) {
	said := text.Of(err)
	if said.Code == "" {
		said = unexpected.Say(err)
	}
	t.add(name, false, said)
}

func (t *Trace) add(name string, ok bool, said text.Message) {
	if t == nil {
		return
	}
	var took int64
	if !t.last.IsZero() {
		now := time.Now()
		took, t.last = now.Sub(t.last).Microseconds(), now
	}
	t.Steps = append(t.Steps, Step{
		Name: name, OK: ok, Message: said.Map(func(arg string) string { return textlimit.Clip(arg, maxDetail) }),
		TookUS: took,
	})
}
