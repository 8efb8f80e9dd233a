package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
)

// States of a dispute. Each is reported by an event of its own; StateFailed and the like do not
// occur.
const (
	DisputeWarning       State = "warning" // an inquiry
	DisputeWarningClosed State = "warning_closed"
	DisputeCreated       State = "created"
	DisputeUpdated       State = "updated" // evidence is under review
	DisputeWithdrawn     State = "withdrawn"
	DisputeWon           State = "won"
	DisputeLost          State = "lost"
	DisputeReinstated    State = "reinstated"
)

var disputeStates = []State{
	DisputeWarning, DisputeWarningClosed, DisputeCreated, DisputeUpdated, DisputeWithdrawn, DisputeWon, DisputeLost, DisputeReinstated,
}

// DisputeScript is what happens to the dispute of a payment now. Zero values are the defaults.
type DisputeScript struct {
	State    State  `json:"state"`
	Amount   int64  `json:"amount,omitempty"` // of the dispute; 0 = the payment's
	Fee      int64  `json:"fee,omitempty"`    // charged with withdrawn, returned with reinstated
	Currency string `json:"currency,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Callback string `json:"callback"` // now (default), none or twice
	LateMS   int    `json:"late_ms"`  // the event is of now, and arrives later
}

// DisputeFact is what a supplier reports about a dispute: what happened, and what had happened
// before.
type DisputeFact struct {
	Payment    Fact
	No         string
	Event      State
	Status     string
	Amount     int64
	Currency   string
	Fee        int64
	Reason     string
	Withdrawn  bool
	Reinstated bool
	N          int // events so far
	At, DueBy  time.Time
}

// dispute is the dispute of one payment.
type dispute struct {
	order *order
	fact  DisputeFact
	sent  []Sent
}

// DisputeReport is a dispute as the control API shows it.
type DisputeReport struct {
	Supplier   string `json:"supplier"`
	Ref        string `json:"ref"`
	No         string `json:"no"`
	State      State  `json:"state"`
	Status     string `json:"status"`
	Amount     int64  `json:"amount"`
	Currency   string `json:"currency"`
	Withdrawn  bool   `json:"withdrawn"`
	Reinstated bool   `json:"reinstated"`
	Callbacks  []Sent `json:"callbacks"`
}

func (s *DisputeScript) check(a *Account) error {
	if s.Callback == "" {
		s.Callback = CallbackNow
	}
	switch {
	case a.Disputes() == nil:
		return &invalid.FieldError{Field: "state", Problem: a.Kind + " has no disputes here: only Stripe has"}
	case !slices.Contains(disputeStates, s.State):
		return &invalid.FieldError{Field: "state", Problem: fmt.Sprintf("%q: use one of %v", s.State, disputeStates)}
	case !slices.Contains([]string{CallbackNone, CallbackNow, CallbackTwice}, s.Callback):
		return &invalid.FieldError{Field: "callback", Problem: fmt.Sprintf("%q: use none, now or twice", s.Callback)}
	case s.Amount < 0 || s.Amount > money.MaxMinor:
		return &invalid.FieldError{Field: "amount", Problem: "is out of range"}
	case s.Fee < 0 || s.Fee > money.MaxMinor:
		return &invalid.FieldError{Field: "fee", Problem: "is out of range"}
	case s.LateMS < 0 || time.Duration(s.LateMS)*time.Millisecond > maxDelay:
		return &invalid.FieldError{Field: "late_ms", Problem: "is more than 10 minutes, or negative"}
	}
	if s.Currency != "" {
		if _, err := money.Exponent(s.Currency); err != nil {
			return &invalid.FieldError{Field: "currency", Problem: err.Error()}
		}
	}
	return nil
}

// SetDispute makes a dispute of a reference's payment happen, or what follows.
func (s *Simulator) SetDispute(code, ref string, script DisputeScript) (DisputeReport, error) {
	a := s.Account(code)
	if a == nil {
		return DisputeReport{}, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("there is no supplier %q", code)}
	}
	if err := script.check(a); err != nil {
		return DisputeReport{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderKey{code, ref}]
	if o == nil || o.last() == nil || o.last().state != StatePaid && o.last().state != StateRefunded {
		return DisputeReport{}, &invalid.FieldError{Field: "ref", Problem: "its payment is not paid here"}
	}
	d := s.disputes[orderKey{code, ref}]
	if d == nil {
		f := o.fact(o.last())
		d = &dispute{order: o, fact: DisputeFact{
			Payment: f, No: "du_" + strings.TrimPrefix(f.TradeNo, "pi_"), Amount: f.Amount, Currency: f.Currency,
			Reason: "product_not_received", DueBy: time.Now().Add(disputeDue),
		}}
		s.disputes[orderKey{code, ref}] = d
	}
	d.apply(script)
	s.reportDispute(a, d, script)
	return d.report(), nil
}

// apply changes the dispute as the script says.
func (d *dispute) apply(script DisputeScript) {
	f := &d.fact
	f.Event, f.At = script.State, time.Now()
	f.N++
	if script.Amount != 0 {
		f.Amount = script.Amount
	}
	if script.Fee != 0 {
		f.Fee = script.Fee
	}
	if script.Currency != "" {
		f.Currency = script.Currency
	}
	if script.Reason != "" {
		f.Reason = script.Reason
	}
	switch script.State {
	case DisputeWarning:
		f.Status = "warning_needs_response"
	case DisputeWarningClosed:
		f.Status = "warning_closed"
	case DisputeUpdated:
		f.Status = "under_review"
	case DisputeWon, DisputeLost:
		f.Status = string(script.State)
	case DisputeWithdrawn:
		f.Withdrawn = true
	case DisputeReinstated:
		f.Withdrawn, f.Reinstated = true, true
	}
	if f.Status == "" || script.State == DisputeCreated {
		f.Status = "needs_response"
	}
}

// reportDispute sends the event, as it is now. The caller holds the lock.
func (s *Simulator) reportDispute(a *Account, d *dispute, script DisputeScript) {
	address := s.callbackURL(d.order)
	if script.Callback == CallbackNone || address == "" {
		return
	}
	times := 1
	if script.Callback == CallbackTwice {
		times = 2
	}
	f, late := d.fact, time.Duration(script.LateMS)*time.Millisecond
	s.after(late, func() {
		s.deliver(&d.sent, address, f.Event, times, func() (Message, error) { return a.Disputes().DisputeEvent(f) })
	})
}

// Dispute returns the report on the dispute of a reference; ok is false if there is none.
func (s *Simulator) Dispute(code, ref string) (report DisputeReport, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.disputes[orderKey{code, ref}]
	if d == nil {
		return DisputeReport{}, false
	}
	return d.report(), true
}

func (d *dispute) report() DisputeReport {
	f := d.fact
	return DisputeReport{
		Supplier: d.order.account.Code, Ref: d.order.ref, No: f.No, State: f.Event, Status: f.Status, Amount: f.Amount,
		Currency:  f.Currency,
		Withdrawn: f.Withdrawn, Reinstated: f.Reinstated, Callbacks: slices.Clone(d.sent),
	}
}

func (s *Simulator) putDispute(w http.ResponseWriter, r *http.Request) {
	put(w, r, func(script DisputeScript) (DisputeReport, error) {
		return s.SetDispute(r.PathValue("supplier"), r.PathValue("ref"), script)
	})
}

func (s *Simulator) getDispute(w http.ResponseWriter, r *http.Request) {
	report, ok := s.Dispute(r.PathValue("supplier"), r.PathValue("ref"))
	if !ok {
		fail(w, http.StatusNotFound, "not_found", "ref", "there is no such dispute")
		return
	}
	write(w, jsonReply(http.StatusOK, report))
}
