package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// parse replaces x by the delta of a row. The format written by this version is parsed
// directly, because encoding/json took nine tenths of a fold; it still parses everything else,
// such as a field of a later version. The strings in x are parts of body.
func (x *Delta) parse(body string) error {
	*x = Delta{
		Attempts: x.Attempts[:0], Callbacks: x.Callbacks[:0], UnnotifiedSums: x.UnnotifiedSums[:0], Orders: x.Orders[:0],
		Failures: x.Failures[:0],
		Volumes:  x.Volumes[:0], Refusals: x.Refusals[:0], Calls: x.Calls[:0],
	}
	p := parser{rest: body}
	if p.object(x); !p.odd && p.rest == "" {
		return nil
	}
	*x = Delta{}
	if err := json.Unmarshal([]byte(body), x); err != nil {
		return fmt.Errorf("read a delta: %w", err)
	}
	return nil
}

// fields is a JSON object in a delta; field returns the target of a named value.
type fields interface{ field(name string) any }

func (x *Delta) field(name string) any {
	switch name {
	case "m":
		return &x.Minute
	case "a":
		return &x.Attempts
	case "c":
		return &x.Callbacks
	case "u":
		return &x.UnnotifiedSums
	case "n":
		return &x.Orders
	case "e":
		return &x.Failures
	case "v":
		return &x.Volumes
	case "x":
		return &x.Refusals
	case "k":
		return &x.Calls
	}
	return nil
}

func (a *attempts) field(name string) any {
	switch name {
	case "i":
		return &a.Recipient
	case "r":
		return &a.Results
	case "t":
		return &a.TookUS
	case "h":
		return &a.Took
	case "hl":
		return &a.TookLong
	case "l":
		return &a.Lag
	case "ll":
		return &a.LagLong
	case "s":
		return &a.OKAt
	case "f":
		return &a.FailedAt
	}
	return nil
}

func (c *callbackSum) field(name string) any {
	switch name {
	case "i":
		return &c.Supplier
	case "o":
		return &c.Outcome
	case "n":
		return &c.N
	}
	return nil
}

func (c *callsSum) field(name string) any {
	switch name {
	case "i":
		return &c.Supplier
	case "o":
		return &c.Op
	case "k":
		return &c.Class
	case "h":
		return &c.Took
	case "hl":
		return &c.TookLong
	}
	return nil
}

func (u *unnotifiedSum) field(name string) any {
	switch name {
	case "i":
		return &u.Merchant
	case "c":
		return &u.Currency
	case "n":
		return &u.Orders
	case "a":
		return &u.Amount
	}
	return nil
}

func (o *ordersSum) field(name string) any {
	switch name {
	case "m":
		return &o.Minute
	case "c":
		return &o.Currency
	case "r":
		return &o.Raised
	case "a":
		return &o.RaisedAmount
	case "d":
		return &o.Notified
	case "b":
		return &o.NotifiedAmount
	case "h":
		return &o.Waits
	case "hl":
		return &o.WaitsLong
	}
	return nil
}

func (f *failureSum) field(name string) any {
	switch name {
	case "k":
		return &f.Class
	case "c":
		return &f.Currency
	case "n":
		return &f.Attempts
	case "r":
		return &f.Orders
	case "a":
		return &f.Amount
	}
	return nil
}

func (v *volumeSum) field(name string) any {
	switch name {
	case "m":
		return &v.Quarter
	case "i":
		return &v.Merchant
	case "s":
		return &v.Supplier
	case "c":
		return &v.Currency
	case "n":
		return &v.Created
	case "a":
		return &v.CreatedAmount
	case "d":
		return &v.Paid
	case "b":
		return &v.PaidAmount
	}
	return nil
}

// parser parses JSON without spaces, with known fields only.
type parser struct {
	rest string
	odd  bool // the input has another form
}

func (p *parser) object(to fields) {
	p.expect('{')
	for more := true; more && !p.odd; more = p.accept(',') {
		name := p.text()
		p.expect(':')
		switch to := to.field(name).(type) {
		case *int64:
			*to = p.number()
		case *string:
			*to = p.text()
		case *[3]int64:
			for i, before := range "[,," {
				p.expect(byte(before))
				to[i] = p.number()
			}
			p.expect(']')
		case *[]attempts:
			list(p, to)
		case *[]callbackSum:
			list(p, to)
		case *[]unnotifiedSum:
			list(p, to)
		case *[]ordersSum:
			list(p, to)
		case *[]failureSum:
			list(p, to)
		case *[]volumeSum:
			list(p, to)
		case *[]callsSum:
			list(p, to)
		default:
			p.odd = true
		}
	}
	p.expect('}')
}

func list[T any, P interface {
	*T
	fields
}](p *parser, to *[]T,
) {
	p.odd = len(*to) > 0 || p.odd // duplicate name
	p.expect('[')
	for more := true; more && !p.odd; more = p.accept(',') {
		*to = append(*to, *new(T))
		p.object(P(&(*to)[len(*to)-1]))
	}
	p.expect(']')
}

// accept consumes c if it comes next.
func (p *parser) accept(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) expect(c byte) { p.odd = !p.accept(c) || p.odd }

func (p *parser) number() int64 {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '-' || '0' <= p.rest[end] && p.rest[end] <= '9') {
		end++
	}
	digits := strings.TrimPrefix(p.rest[:end], "-")
	n, err := strconv.ParseInt(p.rest[:end], 10, 64)
	p.odd = err != nil || len(digits) > 1 && digits[0] == '0' || p.odd
	p.rest = p.rest[end:]
	return n
}

// text parses an ASCII string without escapes.
func (p *parser) text() string {
	p.expect('"')
	for end := range len(p.rest) {
		switch c := p.rest[end]; {
		case c == '"':
			s := p.rest[:end]
			p.rest = p.rest[end+1:]
			return s
		case c == '\\' || c < ' ' || c > '~':
			p.odd = true
			return ""
		}
	}
	p.odd = true
	return ""
}
