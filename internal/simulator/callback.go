package simulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// callbackTime bounds one callback.
const callbackTime = 10 * time.Second

// LoopbackClient returns a client that reaches only this machine and follows no redirects, so
// that a simulation can never reach a production system.
func LoopbackClient() *http.Client {
	// Names are checked by the address they resolve to.
	dialer := &net.Dialer{Timeout: 3 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().IsLoopback() {
			return fmt.Errorf("%s is not a loopback address", address)
		}
		return nil
	}}
	return &http.Client{
		Timeout:       callbackTime,
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// callable reports whether suppliers send callbacks for a state.
func callable(state State) bool {
	return state == StatePaid || state == StateFailed || state == StateClosed
}

// changed sends the callbacks for a reference's new state, as its script says. The caller holds
// the lock.
func (s *Simulator) changed(o *order) {
	if !callable(o.script.State) || o.script.Callback == CallbackNone {
		return
	}
	if s.callbackURL(o) == "" {
		o.owed = !o.started
		return
	}
	times, late := 1, time.Duration(0)
	switch o.script.Callback {
	case CallbackNow:
	case CallbackBeforeAnswer:
		o.due = true
		return
	case CallbackTwice:
		times = 2
	default:
		late = o.script.late()
	}
	s.after(late, s.callback(o, times))
}

// dueCallback takes the callback that precedes the answer; nil = none is due.
func (s *Simulator) dueCallback(o *order) (send func()) {
	if !o.due {
		return nil
	}
	o.due = false
	return s.callback(o, 1)
}

func (s *Simulator) callbackURL(o *order) string {
	if o.notifyURL != "" || s.options.Callbacks == "" {
		return o.notifyURL
	}
	return s.callbackBase(o.account)
}

// callbackBase returns the address of callbacks that have no other.
func (s *Simulator) callbackBase(a *Account) string {
	return strings.TrimSuffix(s.options.Callbacks, "/") + "/" + a.Code
}

// callback returns a function that sends the callbacks of a reference's payments. Call callback
// with the lock held, but the function without it.
func (s *Simulator) callback(o *order, times int) func() {
	var facts []Fact
	for _, p := range o.payments {
		if callable(p.state) {
			facts = append(facts, o.fact(p))
		}
	}
	address := s.callbackURL(o)
	return func() {
		for _, f := range facts {
			s.deliver(&o.sent, address, f.State, times, func() (Message, error) {
				f.At = time.Now()
				return o.account.Callback(f)
			})
		}
	}
}

// deliver posts a message several times, and keeps how each was answered. Call it without the lock.
func (s *Simulator) deliver(kept *[]Sent, address string, state State, times int, message func() (Message, error)) {
	for range times {
		sent := Sent{At: time.Now().UTC(), URL: address, State: state}
		m, err := message()
		if err == nil {
			sent.Status, err = s.post(address, m)
		}
		if err != nil {
			sent.Error = errText(err)
		}
		s.mu.Lock()
		if *kept = append(*kept, sent); len(*kept) > maxCallbacks {
			*kept = (*kept)[1:]
		}
		s.mu.Unlock()
	}
}

func (s *Simulator) post(address string, m Message) (status int, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, callbackTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.Body))
	if err != nil {
		return 0, fmt.Errorf("call back: %w", err)
	}
	r.Header = m.Header
	answer, err := s.http.Do(r)
	if err != nil {
		return 0, fmt.Errorf("call back: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode, nil
}
