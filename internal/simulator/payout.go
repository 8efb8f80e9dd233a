package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"backstop/internal/base/invalid"
)

// Operations on payouts.
const (
	opPayout      operation = "payout"
	opPayoutQuery operation = "payout_query"
)

// payer is a protocol with payouts.
type payer interface {
	// payoutNo returns the supplier's number of a payout.
	payoutNo(no string) string
	// answerPayout says what became of a call about a payout.
	answerPayout(c call, v payoutView) (reply, error)
	// PayoutCallback reports a payout.
	PayoutCallback(f PayoutFact) (Message, error)
}

// Payouts reports whether the account's kind has payouts.
func (a *Account) Payouts() bool {
	_, ok := a.protocol.(payer)
	return ok
}

// PayoutScript is how a payout behaves from now on. If it is set before the payout's call, State
// is the result of the call (not_found: the call is lost). Zero values are the defaults.
type PayoutScript struct {
	State       State  `json:"state"`
	Callback    string `json:"callback"` // for each change to success, failed or returned, as for orders
	LateMS      int    `json:"late_ms,omitempty"`
	DelayMS     int    `json:"delay_ms"`
	LoseAnswers int    `json:"lose_answers"`
	Answer      string `json:"answer"`
	Forgets     bool   `json:"forgets"` // the supplier forgets the number: each call makes another payout
}

// payout is one payout at one supplier, by our number.
type payout struct {
	account   *Account
	no        string
	script    PayoutScript
	started   bool // it exists
	state     State
	content   string
	amount    int64
	currency  string
	at        time.Time
	notifyURL string
	moved     int
	paid      bool   // since the last start
	due       func() // the callback that precedes the next answer; nil = none
	sent      []Sent
}

// PayoutFact is what a supplier reports about a payout.
type PayoutFact struct {
	No, SupplierNo string
	Amount         int64
	Currency       string
	State          State
	At             time.Time
}

// payoutView is the content of an answer about a payout.
type payoutView struct {
	PayoutFact
	outcome
	forged bool
}

// PayoutReport is a payout as the control API shows it.
type PayoutReport struct {
	Supplier   string `json:"supplier"`
	No         string `json:"no"`
	Started    bool   `json:"started"`
	MoneyMoved int    `json:"money_moved"`
	Amount     int64  `json:"amount"`
	Currency   string `json:"currency"`
	PayoutScript
	Callbacks []Sent `json:"callbacks"`
}

var payoutStates = []State{StateProcessing, StateSuccess, StateFailed, StateReturned, StateShort, StateNotFound}

func (s *PayoutScript) check(a *Account) error {
	if s.State == "" {
		s.State = StateSuccess
	}
	switch {
	case !a.Payouts():
		return &invalid.FieldError{Field: "kind", Problem: "no payouts are simulated for " + a.Kind}
	case !slices.Contains(payoutStates, s.State):
		return &invalid.FieldError{Field: "state", Problem: fmt.Sprintf("%q: use one of %v", s.State, payoutStates)}
	case s.State == StateShort && a.Kind == "sortedparams":
		return &invalid.FieldError{Field: "state", Problem: "sorted parameters have no word for lack of funds"}
	}
	// Everything else is as for orders.
	like := Script{
		State: StatePaid, Callback: s.Callback, LateMS: s.LateMS, DelayMS: s.DelayMS, LoseAnswers: s.LoseAnswers,
		Answer: s.Answer,
	}
	err := like.check(a)
	s.Callback, s.LateMS, s.Answer = like.Callback, like.LateMS, like.Answer
	return err
}

// findPayout returns a payout by its number, and creates it if there is room. Errors: ErrFull.
func (s *Simulator) findPayout(a *Account, no string) (*payout, error) {
	key := orderKey{a.Code, no}
	if p := s.payouts[key]; p != nil {
		return p, nil
	}
	if len(s.payouts) >= MaxReferences {
		return nil, ErrFull
	}
	p := &payout{account: a, no: no, state: StateNotFound, currency: a.Currency, script: s.usualPayout(a)}
	s.payouts[key] = p
	return p, nil
}

// usualPayout returns the script of payouts without their own.
func (s *Simulator) usualPayout(a *Account) PayoutScript {
	if script, ok := s.usualPayouts[a.Code]; ok {
		return script
	}
	return PayoutScript{State: StateSuccess, Callback: CallbackNone, Answer: AnswerOK}
}

// SetPayout makes a payout follow the script, whatever it did before; EachNumber sets the script
// of those that were not mentioned yet.
func (s *Simulator) SetPayout(code, no string, script PayoutScript) (PayoutReport, error) {
	a := s.Account(code)
	if a == nil {
		return PayoutReport{}, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("there is no supplier %q", code)}
	}
	if err := script.check(a); err != nil {
		return PayoutReport{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if no == EachNumber {
		s.usualPayouts[code] = script
		return s.usualPayoutReport(a), nil
	}
	p, err := s.findPayout(a, no)
	if err != nil {
		return PayoutReport{}, err
	}
	p.script, p.due = script, nil
	switch {
	case p.started && (script.State == StateNotFound || script.State == StateShort): // the supplier lost it
		p.started, p.paid, p.state = false, false, StateNotFound
	case p.started:
		s.movePayout(p, script.State)
	}
	return p.report(), nil
}

// Payout returns the report on a payout; one that was never mentioned is not_found.
func (s *Simulator) Payout(code, no string) PayoutReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.payouts[orderKey{code, no}]; p != nil {
		return p.report()
	}
	if a := s.Account(code); a != nil && no == EachNumber {
		return s.usualPayoutReport(a)
	}
	return PayoutReport{
		Supplier: code, No: no, PayoutScript: PayoutScript{State: StateNotFound, Callback: CallbackNone, Answer: AnswerOK},
		Callbacks: []Sent{},
	}
}

// usualPayoutReport reports the script of payouts without their own.
func (s *Simulator) usualPayoutReport(a *Account) PayoutReport {
	return PayoutReport{Supplier: a.Code, No: EachNumber, PayoutScript: s.usualPayout(a), Callbacks: []Sent{}}
}

// Payouts returns the reports on all payouts.
func (s *Simulator) Payouts() (all []PayoutReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.payouts {
		all = append(all, p.report())
	}
	return all
}

func (p *payout) report() PayoutReport {
	r := PayoutReport{
		Supplier: p.account.Code, No: p.no, Started: p.started, MoneyMoved: p.moved, Amount: p.amount, Currency: p.currency,
		PayoutScript: p.script, Callbacks: append([]Sent{}, p.sent...),
	}
	r.State = p.state
	return r
}

func (p *payout) fact() PayoutFact {
	return PayoutFact{
		No: p.no, SupplierNo: p.account.protocol.(payer).payoutNo(p.no), Amount: p.amount, Currency: p.currency,
		State: p.state, At: p.at,
	}
}

// movePayout changes a payout's state. Money moves once per start; that it comes back later does
// not undo it.
func (s *Simulator) movePayout(p *payout, to State) {
	if p.state == to {
		return
	}
	p.state, p.at = to, time.Now()
	if (to == StateSuccess || to == StateReturned) && !p.paid {
		p.paid = true
		p.moved++
	}
	if p.script.Callback == CallbackNone || to == StateProcessing {
		return
	}
	address := p.notifyURL
	if address == "" && s.options.Callbacks != "" {
		address = s.callbackBase(p.account)
	}
	if address == "" {
		return
	}
	times, late := 1, time.Duration(0)
	switch p.script.Callback {
	case CallbackNow, CallbackBeforeAnswer:
	case CallbackTwice:
		times = 2
	default:
		late = time.Duration(p.script.LateMS) * time.Millisecond
	}
	send := s.tellPayout(p, address, times)
	if p.script.Callback == CallbackBeforeAnswer {
		p.due = send
		return
	}
	s.after(late, send)
}

// tellPayout returns a function that sends a payout's callbacks. Call tellPayout with the lock
// held, but the function without it.
func (s *Simulator) tellPayout(p *payout, address string, times int) func() {
	f := p.fact()
	return func() {
		s.deliver(&p.sent, address, f.State, times, func() (Message, error) { return p.account.protocol.(payer).PayoutCallback(f) })
	}
}

// payoutExchange is a call about a payout after it has taken effect.
type payoutExchange struct {
	view     payoutView
	script   PayoutScript
	lose     bool
	callback func() // to be sent before the answer; nil = none
}

// actPayout carries out a call about a payout.
func (s *Simulator) actPayout(a *Account, c call) (payoutExchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.findPayout(a, c.payout)
	if err != nil {
		return payoutExchange{}, err
	}
	v := payoutView{PayoutFact: PayoutFact{No: c.payout, State: StateNotFound}}
	switch {
	case c.op == opPayout:
		v.outcome = s.startPayout(p, c)
	case !p.started:
		v.outcome = unknownRef
	}
	if p.started {
		v.PayoutFact = p.fact()
	} else if c.op == opPayout && v.outcome == done {
		v.State = p.script.State // short_of_funds or not_found
	}
	x := payoutExchange{view: v, script: p.script, callback: p.due}
	p.due = nil
	x.lose = s.spoil(a, c, x.script.Answer, &p.script.LoseAnswers)
	return x, nil
}

// startPayout starts a payout. A number that is known is the same payout.
func (s *Simulator) startPayout(p *payout, c call) outcome {
	if p.started && !p.script.Forgets {
		if p.content != c.content {
			return inconsistent
		}
		return done
	}
	if p.script.State == StateNotFound || p.script.State == StateShort {
		return done
	}
	p.amount, p.currency, p.content, p.notifyURL, p.started = c.amount, c.currency, c.content, c.notifyURL, true
	p.state, p.paid = StateNotFound, false
	s.movePayout(p, p.script.State)
	return done
}

// givePayout answers according to the payout's script.
func (s *Simulator) givePayout(a *Account, c call, x payoutExchange, w http.ResponseWriter, r *http.Request) {
	if x.callback != nil {
		x.callback()
	}
	s.giveAs(a, Script{Answer: x.script.Answer, DelayMS: x.script.DelayMS}, x.lose, w, r, func(spoilt string) (reply, error) {
		switch spoilt {
		case AnswerBadSignature:
			x.view.forged = true
		case AnswerWrongOrder:
			x.view.No += "X"
		}
		return a.protocol.(payer).answerPayout(c, x.view)
	})
}
