package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
)

// How a reference's callbacks are sent. CallbackLate is followed by milliseconds: late_3000.
const (
	CallbackNone         = "none"
	CallbackNow          = "now"
	CallbackBeforeAnswer = "before_answer" // sent and answered before the answer to the next call
	CallbackTwice        = "twice"
	CallbackLate         = "late_"
)

// How a reference's calls are answered. The call takes effect in every case.
const (
	AnswerOK           = "ok"
	Answer500          = "500"
	AnswerGarbage      = "garbage"
	AnswerBadSignature = "bad_signature"
	AnswerWrongOrder   = "wrong_order"
	AnswerHang         = "hang"
)

// How closing an unpaid payment ends.
const (
	CloseOK      = "ok"
	CloseRefused = "refused" // the buyer is about to pay
	ClosePaid    = "paid"    // the buyer pays at that moment
)

// Script is the behaviour of a reference from now on. Zero values are the contract's defaults:
// no callback, no delay, a good answer.
type Script struct {
	State       State  `json:"state"`
	Amount      int64  `json:"amount,omitempty"`   // in answers and callbacks; 0 = that of the start
	Currency    string `json:"currency,omitempty"` // the same
	TradeNo     string `json:"trade_no,omitempty"` // "" = derived from the seed
	Callback    string `json:"callback"`
	LateMS      int    `json:"late_ms,omitempty"` // of a callback "late_ms"
	DelayMS     int    `json:"delay_ms"`
	LoseAnswers int    `json:"lose_answers"` // how many answers are lost
	Answer      string `json:"answer"`
	Close       string `json:"close"`
}

func (s Script) delay() time.Duration { return time.Duration(s.DelayMS) * time.Millisecond }

var stateNames = []State{StateUnpaid, StatePaying, StatePaid, StateFailed, StateClosed, StateNotFound, StateRefunded}

// check validates the script and fills in defaults.
func (s *Script) check(a *Account) error {
	for _, f := range []struct {
		name  string
		value *string
		words []string
	}{
		{"callback", &s.Callback, []string{CallbackNone, CallbackNow, CallbackBeforeAnswer, CallbackTwice}},
		{"answer", &s.Answer, []string{AnswerOK, Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder, AnswerHang}},
		{"close", &s.Close, []string{CloseOK, CloseRefused, ClosePaid}},
	} {
		if *f.value == "" {
			*f.value = f.words[0]
		}
		if f.name == "callback" && s.lateCallback() {
			continue
		}
		if !slices.Contains(f.words, *f.value) {
			return &invalid.FieldError{Field: f.name, Problem: fmt.Sprintf("%q is none of %s", *f.value, strings.Join(f.words, ", "))}
		}
	}
	if s.Currency != "" {
		if _, err := money.Exponent(s.Currency); err != nil {
			return &invalid.FieldError{Field: "currency", Problem: err.Error()}
		}
	}
	switch {
	case !slices.Contains(stateNames, s.State):
		return &invalid.FieldError{Field: "state", Problem: fmt.Sprintf("%q is none of %v", s.State, stateNames)}
	case s.Currency != "" && a.Kind == "alipay":
		return &invalid.FieldError{Field: "currency", Problem: "Alipay's API has no currency: leave it out"}
	case s.State == StateRefunded && a.Kind == "sortedparams":
		return &invalid.FieldError{Field: "state", Problem: "sorted parameters have no word for refunded in the answer to a query"}
	case s.Answer == AnswerBadSignature && a.Kind == "stripe":
		return &invalid.FieldError{Field: "answer", Problem: "Stripe signs no answers"}
	case s.Amount < 0 || s.Amount > money.MaxMinor:
		return &invalid.FieldError{Field: "amount", Problem: "is out of range"}
	case s.DelayMS < 0 || s.delay() > maxDelay || s.LateMS < 0 || s.late() > maxDelay:
		return &invalid.FieldError{Field: "delay_ms", Problem: "is more than 10 minutes, or negative"}
	case s.LoseAnswers < 0:
		return &invalid.FieldError{Field: "lose_answers", Problem: "is negative"}
	}
	return nil
}

// lateCallback reports whether the callback is late, and parses the delay: "late_3000",
// "late_3000ms", or "late_ms" with the field of that name (default 5 s).
func (s *Script) lateCallback() bool {
	text, ok := strings.CutPrefix(s.Callback, CallbackLate)
	if !ok {
		return false
	}
	if text == "ms" {
		if s.LateMS == 0 {
			s.LateMS = 5000
		}
		return true
	}
	late, err := strconv.Atoi(strings.TrimSuffix(text, "ms"))
	s.LateMS = late
	return err == nil
}

func (s *Script) late() time.Duration { return time.Duration(s.LateMS) * time.Millisecond }
