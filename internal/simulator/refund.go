package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"backstop/internal/base/invalid"
)

// Operations on refunds.
const (
	opRefund      operation = "refund"
	opRefundQuery operation = "refund_query"
)

// States of a refund, in addition to StateFailed and StateNotFound.
const (
	StateProcessing State = "processing"
	StateSuccess    State = "success"
	StateReturned   State = "returned"       // the money came back (Stripe and sorted parameters)
	StateAbnormal   State = "abnormal"       // stuck (WeChat Pay)
	StateShort      State = "short_of_funds" // refused for lack of funds
)

// EachNumber is, instead of a number, that of all refunds or payouts of a supplier without a
// script of their own.
const EachNumber = "*"

// RefundScript is how a refund behaves from now on. If it is set before the refund's call, State
// is the result of the call (not_found: the call is lost). Zero values are the defaults.
type RefundScript struct {
	State       State  `json:"state"`
	Order       string `json:"order,omitempty"`  // for a refund made at the supplier itself: the reference of its payment
	Amount      int64  `json:"amount,omitempty"` // and its amount
	Callback    string `json:"callback"`         // none, now or twice, for each change to success, failed, abnormal or returned
	DelayMS     int    `json:"delay_ms"`
	LoseAnswers int    `json:"lose_answers"`
	Answer      string `json:"answer"`
	Forgets     bool   `json:"forgets"` // the supplier forgets the number: each call makes another refund
}

// refund is one refund at one supplier, by the merchant's number.
type refund struct {
	account   *Account
	no        string
	order     *order
	script    RefundScript
	started   bool // it exists
	called    bool // by the merchant, not by the supplier itself
	state     State
	content   string
	amount    int64
	at        time.Time
	notifyURL string
	moved     int
	paid      bool // since the last start
}

// RefundFact is what a supplier reports about a refund.
type RefundFact struct {
	No, SupplierNo string // No "" = it was made at the supplier itself
	Payment        Fact
	Amount         int64
	Sum            int64 // total of the payment's successful refunds
	State          State
	At             time.Time
}

// refundView is the content of an answer about a refund.
type refundView struct {
	RefundFact
	outcome
	all    []RefundFact // Stripe: all refunds of the payment
	forged bool
}

// RefundReport is a refund as the control API shows it.
type RefundReport struct {
	Supplier   string `json:"supplier"`
	No         string `json:"no"`
	MoneyMoved int    `json:"money_moved"`
	RefundScript
}

var refundStates = []State{StateProcessing, StateSuccess, StateFailed, StateReturned, StateAbnormal, StateShort, StateNotFound}

func (s *RefundScript) check(a *Account) error {
	if s.State == "" {
		s.State = StateSuccess
	}
	if s.Callback == "" {
		s.Callback = CallbackNone
	}
	if s.Answer == "" {
		s.Answer = AnswerOK
	}
	switch {
	case !slices.Contains(refundStates, s.State):
		return &invalid.FieldError{Field: "state", Problem: fmt.Sprintf("%q: use one of %v", s.State, refundStates)}
	case s.State == StateReturned && (a.Kind == "wechatpay" || a.Kind == "alipay"):
		return &invalid.FieldError{Field: "state", Problem: a.Kind + " has no status for a refund that came back"}
	case s.State == StateAbnormal && a.Kind != "wechatpay":
		return &invalid.FieldError{Field: "state", Problem: "only WeChat Pay has the status ABNORMAL"}
	case !slices.Contains([]string{CallbackNone, CallbackNow, CallbackTwice}, s.Callback):
		return &invalid.FieldError{Field: "callback", Problem: fmt.Sprintf("%q: use none, now or twice", s.Callback)}
	case s.Callback != CallbackNone && a.Kind == "sortedparams":
		return &invalid.FieldError{Field: "callback", Problem: "sorted parameters have no callbacks about refunds"}
	case !slices.Contains([]string{AnswerOK, Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder, AnswerHang}, s.Answer):
		return &invalid.FieldError{Field: "answer", Problem: fmt.Sprintf("unknown answer %q", s.Answer)}
	case s.Answer == AnswerBadSignature && a.Kind == "stripe":
		return &invalid.FieldError{Field: "answer", Problem: "Stripe does not sign answers"}
	case s.DelayMS < 0 || time.Duration(s.DelayMS)*time.Millisecond > maxDelay:
		return &invalid.FieldError{Field: "delay_ms", Problem: "use 0 to 600000 (10 minutes)"}
	case s.LoseAnswers < 0:
		return &invalid.FieldError{Field: "lose_answers", Problem: "must not be negative"}
	case s.Amount < 0 || (s.Amount == 0) != (s.Order == ""):
		return &invalid.FieldError{
			Field:   "amount",
			Problem: "set both order and amount, for a refund made at the supplier itself, or neither",
		}
	}
	return nil
}

// findRefund returns a refund by its number, and creates it if there is room. Errors: ErrFull.
func (s *Simulator) findRefund(a *Account, no string) (*refund, error) {
	key := orderKey{a.Code, no}
	if r := s.refunds[key]; r != nil {
		return r, nil
	}
	if len(s.refunds) >= MaxReferences {
		return nil, ErrFull
	}
	r := &refund{account: a, no: no, state: StateNotFound, script: s.usualRefund(a)}
	s.refunds[key] = r
	return r, nil
}

// usualRefund returns the script of refunds without their own.
func (s *Simulator) usualRefund(a *Account) RefundScript {
	if script, ok := s.usualRefunds[a.Code]; ok {
		return script
	}
	return RefundScript{State: StateSuccess, Callback: CallbackNone, Answer: AnswerOK}
}

// SetRefund makes a refund follow the script, whatever it did before; EachNumber sets the script
// of those that were not mentioned yet.
func (s *Simulator) SetRefund(code, no string, script RefundScript) (RefundReport, error) {
	a := s.Account(code)
	if a == nil {
		return RefundReport{}, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("there is no supplier %q", code)}
	}
	if err := script.check(a); err != nil {
		return RefundReport{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if no == EachNumber {
		if script.Order != "" {
			return RefundReport{}, &invalid.FieldError{Field: "order", Problem: "a refund made at the supplier itself needs a number"}
		}
		s.usualRefunds[code] = script
		return RefundReport{Supplier: code, No: no, RefundScript: script}, nil
	}
	r, err := s.findRefund(a, no)
	if err != nil {
		return RefundReport{}, err
	}
	r.script = script
	if script.Order != "" && !r.started {
		o := s.orders[orderKey{code, script.Order}]
		if o == nil || o.last().state != StatePaid {
			return RefundReport{}, &invalid.FieldError{Field: "order", Problem: "is not paid here"}
		}
		r.order, r.amount, r.started = o, script.Amount, true
		o.refunds = append(o.refunds, r)
	}
	switch {
	case r.started && script.State == StateNotFound: // the supplier lost it
		r.started, r.paid = false, false
		r.state = StateNotFound
		r.order.refunds = slices.DeleteFunc(r.order.refunds, func(x *refund) bool { return x == r })
	case r.started:
		s.moveRefund(r, script.State)
	}
	return r.report(), nil
}

// Refund returns the report on a refund; one that was never mentioned is not_found.
func (s *Simulator) Refund(code, no string) RefundReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refunds[orderKey{code, no}]; r != nil {
		return r.report()
	}
	if a := s.Account(code); a != nil && no == EachNumber {
		return RefundReport{Supplier: code, No: no, RefundScript: s.usualRefund(a)}
	}
	return RefundReport{Supplier: code, No: no, RefundScript: RefundScript{State: StateNotFound, Callback: CallbackNone, Answer: AnswerOK}}
}

// Refunds returns the reports on all refunds.
func (s *Simulator) Refunds() (all []RefundReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.refunds {
		all = append(all, r.report())
	}
	return all
}

func (r *refund) report() RefundReport {
	report := RefundReport{Supplier: r.account.Code, No: r.no, MoneyMoved: r.moved, RefundScript: r.script}
	report.State = r.state
	if r.started {
		report.Order, report.Amount = r.order.ref, r.amount
	}
	return report
}

// moveRefund changes a refund's state. Money moves once per start.
func (s *Simulator) moveRefund(r *refund, to State) {
	if r.state == to {
		return
	}
	r.state, r.at = to, time.Now()
	if (to == StateSuccess || to == StateReturned) && !r.paid {
		r.paid = true
		r.moved++
	}
	if r.script.Callback == CallbackNone || to == StateProcessing || r.account.Kind == "sortedparams" {
		return
	}
	f, address := r.fact(), r.notifyURL
	if address == "" {
		address = s.callbackURL(r.order)
	}
	times := 1
	if r.script.Callback == CallbackTwice {
		times = 2
	}
	if address == "" {
		return
	}
	s.task(func() {
		for range times {
			if m, ok, err := r.account.RefundCallback(f); err == nil && ok {
				_, _ = s.post(address, m)
			}
		}
	})
}

func (r *refund) fact() RefundFact {
	f := RefundFact{SupplierNo: r.account.refundNo(r.no), Payment: r.order.fact(r.order.last()), Amount: r.amount, State: r.state, At: r.at}
	if r.called {
		f.No = r.no
	}
	for _, x := range r.order.refunds {
		if x.state == StateSuccess {
			f.Sum += x.amount
		}
	}
	return f
}

// refundExchange is a call about a refund after it has taken effect.
type refundExchange struct {
	view   refundView
	script RefundScript
	lose   bool
}

// actRefund carries out a call about a refund.
func (s *Simulator) actRefund(a *Account, c call) (refundExchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.op == opRefundQuery && c.refund == "" { // Stripe's list
		return s.listRefunds(a, c), nil
	}
	r, err := s.findRefund(a, c.refund)
	if err != nil {
		return refundExchange{}, err
	}
	v := refundView{RefundFact: RefundFact{No: c.refund, Payment: Fact{Ref: c.ref}, State: StateNotFound}}
	o := s.orders[orderKey{a.Code, c.ref}]
	if c.id != "" {
		o = s.ids[c.id]
	}
	switch {
	case c.op == opRefund:
		v.outcome = s.startRefund(r, o, c)
	case !r.started:
		v.outcome = unknownRef
	}
	if r.started {
		v.RefundFact = r.fact()
	} else if c.op == opRefund && v.outcome == done {
		v.State = r.script.State // short_of_funds or not_found
	}
	x := refundExchange{view: v, script: r.script}
	x.lose = s.spoil(a, c, x.script.Answer, &r.script.LoseAnswers)
	return x, nil
}

// startRefund starts a refund.
func (s *Simulator) startRefund(r *refund, o *order, c call) outcome {
	if o == nil || o.last().state != StatePaid && o.last().state != StateRefunded {
		return unknownRef
	}
	if r.started && !r.script.Forgets {
		if r.content != c.content {
			return inconsistent
		}
		return done
	}
	sum := c.amount
	for _, x := range o.refunds {
		if x != r && x.state != StateFailed && x.state != StateReturned {
			sum += x.amount
		}
	}
	if sum > o.fact(o.last()).Amount || c.total != 0 && c.total != o.fact(o.last()).Amount {
		return refused
	}
	if r.script.State == StateNotFound || r.script.State == StateShort {
		return done
	}
	if !r.started {
		o.refunds = append(o.refunds, r)
	}
	r.order, r.amount, r.content, r.notifyURL, r.started, r.called = o, c.amount, c.content, c.notifyURL, true, true
	r.state, r.paid = StateNotFound, false
	s.moveRefund(r, r.script.State)
	return done
}

// listRefunds answers Stripe's list. The first refund whose script spoils answers spoils this
// one.
func (s *Simulator) listRefunds(a *Account, c call) refundExchange {
	x := refundExchange{script: RefundScript{Answer: AnswerOK}}
	if o := s.ids[c.id]; o != nil && o.account == a {
		x.view.Payment = o.fact(o.last())
		for _, r := range o.refunds {
			x.view.all = append(x.view.all, r.fact())
			if r.script.Answer != AnswerOK || r.script.LoseAnswers > 0 || r.script.DelayMS > 0 {
				x.script = r.script
				c.refund = r.no
				x.lose = s.spoil(a, c, x.script.Answer, &r.script.LoseAnswers)
				return x
			}
		}
	}
	s.recordLocked(a, c, "")
	return x
}

// giveRefund answers according to the refund's script.
func (s *Simulator) giveRefund(a *Account, c call, x refundExchange, w http.ResponseWriter, r *http.Request) {
	s.giveAs(a, Script{Answer: x.script.Answer, DelayMS: x.script.DelayMS}, x.lose, w, r, func(spoilt string) (reply, error) {
		switch spoilt {
		case AnswerBadSignature:
			x.view.forged = true
		case AnswerWrongOrder:
			x.view.Payment = another(x.view.Payment)
			x.view.No += "X"
			for i := range x.view.all {
				x.view.all[i].No += "X"
			}
		}
		return a.answerRefund(c, x.view)
	})
}
