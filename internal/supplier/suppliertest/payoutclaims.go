package suppliertest

import (
	"bytes"
	"context"
	"strings"

	"backstop/internal/supplier"
)

// payout returns what the suite pays out.
func (p *querier) payout() supplier.Payout {
	out := p.Payout
	out.No = PayoutNo
	return out
}

func (p *querier) callPayout(ctx context.Context, a supplier.Abilities, op Op) outcome {
	call := a.Payout
	if op == PayoutQuery {
		call = a.PayoutQuery
	}
	s, err := call(ctx, p.payout())
	o := outcome{state: string(s.State), kept: s.Exchange, reason: s.Reason.Error(), err: err, out: s}
	o.out.Exchange = supplier.Exchange{}
	return o
}

// otherPayoutsAnswer has answers about another payout, and about one of another sum.
func otherPayoutsAnswer(p *querier) {
	if p.Has[PayoutQuery] != nil && !p.has(PayoutQuery, "PayoutNo") {
		p.Errorf("an answer to a query that names no payout cannot be believed")
	}
	for _, op := range []Op{Payout, PayoutQuery} {
		if p.Has[op] == nil {
			continue
		}
		for _, no := range []string{
			"P20260301000002", RefundNo, strings.ToLower(PayoutNo), PayoutNo + " ", PayoutNo + "0",
			PayoutNo[:len(PayoutNo)-1],
		} {
			if o := p.answered(op, p.Answer(op, Change{PayoutNo: no})); p.has(op, "PayoutNo") && !o.unknown() {
				p.Errorf("%s: an answer about %q: %s", op, no, o.state)
			}
		}
		for _, sum := range []string{"1", "999", "19.98", "199900"} {
			if o := p.answered(op, p.Answer(op, Change{Amount: sum})); p.has(op, "Amount") && !o.unknown() {
				p.Errorf("%s: an answer about the sum %s: %s", op, sum, o.state)
			}
		}
	}
}

// payoutWithout leaves out one part of an answer that says paid out. A missing amount is the
// one that was asked for.
func payoutWithout(p *querier) {
	for _, op := range []Op{Payout, PayoutQuery} {
		for _, part := range []string{"PayoutNo", "Status"} {
			if o := p.lacking(op, part); o != nil && !o.unknown() {
				p.Errorf("%s without %s: %s", op, part, o.state)
			}
		}
		if o := p.lacking(op, "Amount"); o != nil && o.state != string(supplier.PayoutSucceeded) {
			p.Errorf("%s without Amount: %s (%s)", op, o.state, o.reason)
		}
	}
}

// payeeIsNotKept: the request holds the number of the payee's account, and nothing that is
// stored does, even where the answer repeats it.
func payeeIsNotKept(p *querier) {
	number := p.Payout.Payee.Number
	for _, op := range []Op{Payout, PayoutQuery} {
		if p.Has[op] == nil {
			continue
		}
		o := p.answered(op, p.Answer(op, Change{})) // what is kept is checked with every call
		if !p.same(op, o) {
			p.Errorf("%s: %s (%s)", op, o.state, o.reason)
		}
		sent := p.line.Sent()
		if last := sent[len(sent)-1]; op == Payout && !bytes.Contains(append([]byte(last.Request.URL.RawQuery), last.Body...),
			[]byte(number)) {
			p.Errorf("%s: the request has no number to pay to", op)
		}
		for _, x := range []supplier.Exchange{
			p.Signed(op, []byte(`{"echo":"`+number+`"}`)), p.Answer(op, Change{PayoutNo: number}),
			p.Answer(op, Change{Status: number}),
		} {
			p.answered(op, x)
		}
	}
}

// namesPayout checks that a call names the payout, and that one that pays says to whom.
func (p *querier) namesPayout(op Op, request string) {
	if !strings.Contains(request, PayoutNo) {
		p.Errorf("%s: the call does not name the payout: %s", op, request)
	}
	if op == Payout && !strings.Contains(request, p.Payout.Payee.Number) {
		p.Errorf("%s: the call does not name the payee's account: %s", op, request)
	}
}
