package suppliertest

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"

	"backstop/internal/supplier"
)

// probe runs one claim.
type probe struct {
	reporter
	Suite
}

// message returns a message as it arrives at Now.
func (p *probe) message(c Change) *supplier.Request {
	req := p.Message(c)
	req.ReceivedAt = Now
	if !req.RemoteAddr.IsValid() {
		req.RemoteAddr = netip.MustParseAddr("203.0.113.7")
	}
	return req
}

// parse calls the adapter and checks what must hold for every message, good or bad: the request
// is unchanged, the signature is checked first, an error is of one of the two kinds, and no
// secret appears.
func (p *probe) parse(req *supplier.Request) (supplier.Callback, error) {
	p.Helper()
	before := clone(req)
	var trace supplier.Trace
	got, err := p.Adapter.Parse(req, &trace)
	if !reflect.DeepEqual(before, req) {
		p.Errorf("the adapter altered the request")
	}
	p.checkTrace(trace, err)
	if err == nil {
		if got.EventKey == "" {
			p.Errorf("a callback without an event key: %+v", got)
		}
		return got, nil
	}
	if !reflect.DeepEqual(got, supplier.Callback{}) {
		p.Errorf("a callback beside the error %v: %+v", err, got)
	}
	var refused *supplier.Refused
	var unreadable *supplier.Unreadable
	switch {
	case errors.As(err, &refused):
		if refused.Result != supplier.BadSignature && refused.Result != supplier.Malformed {
			p.Errorf("refused with result %d: %v", refused.Result, err)
		}
	case errors.As(err, &unreadable):
		if unreadable.Callback.Status == supplier.Paid {
			p.Errorf("unreadable, but its callback says paid: %v", err)
		}
	default:
		p.Errorf("the error is neither *Refused nor *Unreadable: %T %v", err, err)
	}
	return got, err
}

func (p *probe) checkTrace(trace supplier.Trace, err error) {
	p.Helper()
	texts := make([]string, 0, len(trace.Steps)+1)
	signed := false
	for _, step := range trace.Steps {
		texts = append(texts, step.Name+" "+step.Code+" "+strings.Join(step.Args, " "))
		if step.Name == "signature" {
			signed = step.OK
		} else if step.OK && !signed {
			p.Errorf("step %q passed before the signature was verified", step.Name)
		}
	}
	var unreadable *supplier.Unreadable
	authentic := err == nil || errors.As(err, &unreadable)
	if authentic && (len(trace.Steps) == 0 || trace.Steps[0].Name != "signature" || !trace.Steps[0].OK) {
		p.Errorf("accepted without a first step \"signature\" that passed: %+v", trace.Steps)
	}
	if err != nil {
		texts = append(texts, err.Error())
		if len(trace.Steps) == 0 || trace.Steps[len(trace.Steps)-1].OK {
			p.Errorf("refused, but the trace does not end with the step that failed: %+v", trace.Steps)
		}
	}
	for _, secret := range p.Secrets {
		for _, text := range texts {
			if secret != "" && strings.Contains(text, secret) {
				p.Errorf("a secret shows in %q", text)
			}
		}
	}
}

// refused reports whether err refuses the message as not authentic.
func refused(err error) bool {
	var r *supplier.Refused
	return errors.As(err, &r)
}

// badSignature reports whether err refuses the message because of its signature.
func badSignature(err error) bool {
	var r *supplier.Refused
	return errors.As(err, &r) && r.Result == supplier.BadSignature
}

func clone(req *supplier.Request) *supplier.Request {
	c := *req
	c.Header = req.Header.Clone()
	c.Body = bytes.Clone(req.Body)
	return &c
}
