package simulator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/invalid"
)

// order is one reference at one supplier.
type order struct {
	account   *Account
	ref       string
	script    Script
	scripted  bool   // by Set
	started   bool   // by a call
	content   string // of the start
	amount    int64
	currency  string
	notifyURL string
	metadata  map[string]string
	since     time.Time
	payments  []*payment // several only if the supplier was made to pay twice
	due       bool       // a callback is due before the next answer
	owed      bool       // a callback is due once the start names its URL
	sent      []Sent
	moved     int
	refunds   []*refund
}

// payment is one payment of a reference.
type payment struct {
	tradeNo string
	state   State
	moved   bool
	at      time.Time // when it reached its state
}

// Sent is one callback and its response.
type Sent struct {
	At     time.Time `json:"at"`
	URL    string    `json:"url"`
	State  State     `json:"state"`
	Status int       `json:"status"` // 0 = no response
	Error  string    `json:"error,omitempty"`
}

// Report is the state of a reference.
type Report struct {
	Supplier   string `json:"supplier"`
	Ref        string `json:"ref"`
	Started    bool   `json:"started"`
	MoneyMoved int    `json:"money_moved"`
	Script
	Callbacks []Sent `json:"callbacks"`
}

// exchange is the result of one call, and how to answer it.
type exchange struct {
	view     view
	script   Script
	lose     bool
	callback func() // to be sent before the answer; nil = none
}

// find returns the order of a reference, creating it if there is room.
func (s *Simulator) find(a *Account, ref string) (*order, error) {
	key := orderKey{a.Code, ref}
	o := s.orders[key]
	if o != nil {
		return o, nil
	}
	if len(s.orders) >= MaxReferences {
		return nil, ErrFull
	}
	o = &order{account: a, ref: ref, currency: a.Currency, script: Script{
		State: StateNotFound, Callback: CallbackNone, Answer: AnswerOK,
		Close: CloseOK,
	}}
	s.orders[key] = o
	return o, nil
}

// add creates a payment of a reference.
func (s *Simulator) add(o *order, state State) *payment {
	p := &payment{tradeNo: o.script.TradeNo, state: StateNotFound}
	if p.tradeNo == "" || len(o.payments) > 0 {
		p.tradeNo = o.account.tradeNo(o.ref, len(o.payments))
	}
	o.payments = append(o.payments, p)
	s.ids[p.tradeNo] = o
	o.move(p, state)
	return p
}

// move changes a payment's state. Money moves once per payment.
func (o *order) move(p *payment, state State) {
	if p.state != state {
		p.state, p.at = state, time.Now()
	}
	if (state == StatePaid || state == StateRefunded) && !p.moved {
		p.moved = true
		o.moved++
	}
	o.script.State = state
}

// Set replaces the script of a reference. An order that was never started needs an amount in
// order to be paid.
func (s *Simulator) Set(code, ref string, script Script) (Report, error) {
	a := s.Account(code)
	if a == nil {
		return Report{}, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("there is no supplier %q", code)}
	}
	if err := script.check(a); err != nil {
		return Report{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.find(a, ref)
	if err != nil {
		return Report{}, err
	}
	amount := max(script.Amount, o.script.Amount, o.amount)
	switch {
	case amount == 0 && (script.State == StatePaid || script.State == StateRefunded):
		return Report{}, &invalid.FieldError{Field: "amount", Problem: "is missing: this payment was never started"}
	case script.TradeNo != "" && len(o.payments) > 0 && script.TradeNo != o.payments[0].tradeNo && o.account.Kind == "stripe":
		return Report{}, &invalid.FieldError{Field: "trade_no", Problem: "the intent already exists: its id is " + o.payments[0].tradeNo}
	}
	if script.Amount == 0 {
		script.Amount = o.script.Amount
	}
	if script.Currency == "" {
		script.Currency = o.script.Currency
	}
	if script.TradeNo == "" {
		script.TradeNo = o.script.TradeNo
	}
	o.script, o.scripted, o.due, o.owed = script, true, false, false
	if len(o.payments) == 0 && script.State != StateNotFound {
		s.add(o, script.State)
	}
	for _, p := range o.payments {
		o.move(p, script.State)
	}
	if script.TradeNo != "" && len(o.payments) > 0 && o.payments[0].tradeNo != script.TradeNo {
		delete(s.ids, o.payments[0].tradeNo)
		o.payments[0].tradeNo = script.TradeNo
		s.ids[script.TradeNo] = o
	}
	s.changed(o)
	return o.report(), nil
}

// Order reports on a reference; an unknown one is not_found.
func (s *Simulator) Order(code, ref string) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[orderKey{code, ref}]; o != nil {
		return o.report()
	}
	return Report{
		Supplier: code, Ref: ref, Script: Script{State: StateNotFound, Callback: CallbackNone, Answer: AnswerOK, Close: CloseOK},
		Callbacks: []Sent{},
	}
}

func (o *order) report() Report {
	r := Report{
		Supplier: o.account.Code, Ref: o.ref, Started: o.started, MoneyMoved: o.moved, Script: o.script,
		Callbacks: slices.Clone(o.sent),
	}
	if r.Callbacks == nil {
		r.Callbacks = []Sent{}
	}
	f := o.fact(o.last())
	r.Amount, r.Currency, r.TradeNo = f.Amount, f.Currency, f.TradeNo
	return r
}

// last returns the payment to report: the newest paid one, else the first.
func (o *order) last() *payment {
	if len(o.payments) == 0 {
		return &payment{state: StateNotFound}
	}
	for _, p := range slices.Backward(o.payments) {
		if p.state == StatePaid {
			return p
		}
	}
	return o.payments[0]
}

func (o *order) fact(p *payment) Fact {
	f := Fact{
		Ref: o.ref, TradeNo: p.tradeNo, Amount: o.amount, Currency: o.currency, State: p.state, At: p.at,
		Metadata: maps.Clone(o.metadata),
	}
	if o.script.Amount != 0 {
		f.Amount = o.script.Amount
	}
	if o.script.Currency != "" {
		f.Currency = o.script.Currency
	}
	return f
}

// act performs a call, and returns how to answer.
func (s *Simulator) act(a *Account, c call) (exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{Fact: Fact{State: StateNotFound}}
	var o *order
	switch {
	case c.op == opPay:
		var err error
		if o, err = s.find(a, c.ref); err != nil {
			return exchange{}, err
		}
	case c.search != mark{}:
		v.found, o = s.search(a, c.search)
	case c.id != "":
		if found := s.ids[c.id]; found != nil && found.account == a {
			o = found
		}
	default:
		o = s.orders[orderKey{a.Code, c.ref}]
	}
	if o == nil {
		v.outcome, v.Ref = unknownRef, c.ref
		s.recordLocked(a, c, "")
		return exchange{view: v}, nil
	}
	c.ref = o.ref
	switch {
	case c.op == opPay:
		v = s.start(o, c)
	case c.search == mark{}:
		v = s.ask(o, c)
	}
	v.since = o.since.Unix()
	x := exchange{view: v, script: o.script, callback: s.dueCallback(o)}
	x.lose = s.spoil(a, c, x.script.Answer, &o.script.LoseAnswers)
	return x, nil
}

// ask answers a query, or closes.
func (s *Simulator) ask(o *order, c call) view {
	p := o.last()
	if i := slices.IndexFunc(o.payments, func(p *payment) bool { return p.tradeNo == c.id }); i >= 0 {
		p = o.payments[i]
	}
	v := view{}
	switch {
	case p.state == StateNotFound, o.account.lazy && p.state == StateUnpaid && !o.scripted:
		v.outcome = unknownRef
	case c.op == opClose:
		v.outcome = s.close(o, p)
	}
	v.Fact = o.fact(p)
	return v
}

// start starts a payment. It is refused if the reference's script says failed.
func (s *Simulator) start(o *order, c call) view {
	v := view{}
	again := o.started
	switch {
	case !again && o.script.State == StateFailed:
		v.outcome, v.Fact = refused, o.fact(o.last())
		return v
	case !again:
		s.begin(o, c)
	case c.again:
		s.add(o, StateUnpaid)
	case o.content != c.content:
		v.outcome = inconsistent
	}
	p := o.payments[0]
	if c.again {
		p = o.payments[len(o.payments)-1]
	}
	v.Fact = o.fact(p)
	switch {
	case v.outcome != done:
	case o.account.Kind == "stripe":
		v.replayed = again && !c.again // a key returns the first answer again, whatever has happened since
	case again && v.State == StatePaid:
		v.outcome = alreadyPaid
	case v.State == StateClosed:
		v.outcome = alreadyClosed
	}
	if v.outcome == done {
		v.State = StateUnpaid
	}
	return v
}

// begin is the first start of a reference.
func (s *Simulator) begin(o *order, c call) {
	o.started, o.content, o.since = true, c.content, time.Now()
	o.amount, o.currency, o.metadata, o.notifyURL = c.amount, c.currency, c.metadata, c.notifyURL
	for name, value := range c.metadata {
		m := mark{name, value}
		s.marked[m] = append(s.marked[m], o)
	}
	switch {
	case len(o.payments) == 0:
		s.add(o, StateUnpaid)
	case o.payments[0].state == StateNotFound:
		o.move(o.payments[0], StateUnpaid)
	}
	if !o.scripted {
		s.plan(o)
	}
	if o.owed {
		o.owed = false
		s.changed(o)
	}
}

func (s *Simulator) close(o *order, p *payment) outcome {
	switch {
	case p.state == StatePaid || p.state == StateRefunded:
		return alreadyPaid
	case p.state == StateClosed:
		return alreadyClosed
	case o.script.Close == CloseRefused:
		return refused
	case o.script.Close == ClosePaid:
		o.move(p, StatePaid)
		s.changed(o)
		return alreadyPaid
	}
	o.move(p, StateClosed)
	s.changed(o)
	return done
}

// search finds Stripe's intents by metadata, and one order that they belong to.
func (s *Simulator) search(a *Account, m mark) (found []Fact, of *order) {
	orders := s.marked[m]
	if o := s.orders[orderKey{a.Code, m.value}]; o != nil && !o.started && m.name == "order_no" {
		orders = append(slices.Clone(orders), o)
	}
	for _, o := range orders {
		for _, p := range o.payments {
			if p.state != StateNotFound {
				found, of = append(found, o.fact(p)), o
			}
		}
	}
	return found, of
}

// plan schedules the automatic payment of a started payment, if the dice say so.
func (s *Simulator) plan(o *order) {
	if s.seed.roll(100, "paid", o.account.Code, o.ref) >= s.options.Paid {
		return
	}
	mode := CallbackNow
	if n := s.options.SilentEvery; n > 0 && s.seed.roll(n, "silent", o.account.Code, o.ref) == 0 {
		mode = CallbackNone
	}
	s.after(s.options.PaidAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := o.payments[0]; !o.scripted && p.state == StateUnpaid {
			o.script.Callback = mode
			o.move(p, StatePaid)
			s.changed(o)
		}
	})
}
