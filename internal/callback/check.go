package callback

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/payment"
	"backstop/internal/supplier"
)

// Finding is what would become of a request.
type Finding struct {
	Steps   []supplier.Step
	Outcome string
	Status  int // of the HTTP response
	// Content is what the message says; nil = it is refused.
	Content *supplier.Callback
	// Would is what it would do; nil = it is refused.
	Would *payment.Preview
}

// ErrUnknown means that no supplier has the code.
var ErrUnknown = errors.New("there is no such supplier")

// Check verifies a request as Receive does, and returns what would become of it. It has no effect:
// nothing is recorded or counted. Without an address, the address is not checked; without a time,
// it is received now.
func (r *Receiver) Check(ctx context.Context, code string, req *supplier.Request) (f Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Wait)
	defer cancel()
	if req.ReceivedAt.IsZero() {
		req.ReceivedAt = r.o.DB.NowTime()
	}
	steps := supplier.NewTrace()
	defer func() { f.Steps = append(steps.Steps, f.Steps...) }()
	s, known := r.o.Settings.Current().Suppliers.Lookup(code)
	_, broken := r.o.Settings.Current().Suppliers.Broken(code)
	switch {
	case !known && broken:
		steps.Fail("supplier", notUsable, code)
		return Finding{Outcome: AdapterFailed, Status: unusable.Status}, nil
	case !known:
		return Finding{}, ErrUnknown
	}
	m, f := check(s, req, steps)
	if m == nil {
		return f, nil
	}
	m.Source = source(s, req, steps)
	would, err := r.o.Payments.Preview(ctx, m)
	if err != nil {
		return Finding{}, fmt.Errorf("preview a callback: %w", err)
	}
	return Finding{
		Steps: would.Steps, Outcome: would.Outcome, Status: s.Adapter.Reply(would.Result).Status, Content: &m.Content, Would: &would,
	}, nil
}

// Try verifies a request to one supplier, as Check does, and looks at no order: what is authentic would
// be taken. The request has a time of receipt.
func Try(s supplier.Entry, req *supplier.Request) Finding {
	steps := supplier.NewTrace()
	m, f := check(s, req, steps)
	if m != nil {
		result := supplier.Taken
		if m.Unreadable != nil {
			f.Outcome, result = m.Unreadable.Kind, m.Unreadable.Result
		}
		f.Status, f.Content = s.Adapter.Reply(result).Status, &m.Content
	}
	f.Steps = steps.Steps
	return f
}

// check verifies a request to a supplier; without a message, the finding says how it is refused.
func check(s supplier.Entry, req *supplier.Request, steps *supplier.Trace) (m *payment.Message, f Finding) {
	steps.Pass("supplier", supplierKnown)
	if !req.RemoteAddr.IsValid() && len(s.AllowIPs) > 0 {
		steps.Pass("address", addressUnknown)
	} else if !checkAddress(s, req, nil, steps) {
		return nil, Finding{Outcome: WrongAddress, Status: forbidden.Status}
	}
	m, refused, _ := verify(s, req, steps) // a fault of ours is one of the steps
	if m == nil {
		return nil, Finding{Outcome: refused.outcome, Status: s.Adapter.Reply(refused.result).Status}
	}
	return m, Finding{}
}
