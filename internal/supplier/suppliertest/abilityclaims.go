package suppliertest

import (
	"bytes"
	"reflect"
	"strings"

	"backstop/internal/supplier"
)

type abilityClaim struct {
	name  string
	check func(*querier)
}

// abilityClaims are all claims about calls.
var abilityClaims = []abilityClaim{
	{"GenuineAnswerIsReadExactly", answerIsRead},
	{"EveryWordMeansWhatItShould", wordsMean},
	{"AlteredAnswerIsUnknownOrMeansTheSame", alteredAnswer},
	{"AnswerWithoutSignatureIsUnknown", unsignedAnswer},
	{"AnswerUnderAnotherKeyIsUnknown", strangersAnswer},
	{"SignedTimeOfAnAnswerIsHeldOnBothSides", answerTime},
	{"EveryOtherStatusIsUnknown", otherStatuses},
	{"EveryStatusWithoutAKnownBodyIsUnknown", bareStatuses},
	{"AnswerAboutAnotherOrderIsUnknown", otherOrdersAnswer},
	{"AnswerAboutAnotherRefundIsUnknown", otherRefundsAnswer},
	{"AnswerAboutAnotherPayoutIsUnknown", otherPayoutsAnswer},
	{"NumberOfThePayeeIsNotKept", payeeIsNotKept},
	{"AnswerOfAnotherAccountIsNotOurs", otherAccountsAnswer},
	{"AnswerAfterTheContextEndedIsUnknown", lateAnswer},
	{"NothingIsSentAfterTheContextEnded", nothingSent},
	{"CallWithoutAnswerIsUnknownUnderItsClass", noAnswer},
	{"RepeatIsTheSameCall", sameOnRepeat},
	{"AuthorizationIsNotKept", authorizationIsNotKept},
	{"LongAnswerIsUnknown", longAnswer},
	{"MalformedAnswerIsUnknown", malformedAnswer},
	{"DoubledFieldOfAnAnswerIsUnknownThoughSigned", doubledInAnswer},
	{"OddAmountIsNoPaymentInAnAnswer", oddAnswerAmounts},
	{"PaidWithoutItsPartsIsUnknown", paidWithout},
	{"UnknownWordOfAnAnswerIsUnknown", unknownAnswerWord},
	{"CallsAreSafeForConcurrentUse", concurrentCalls},
}

func sameCallback(a, b supplier.Callback) bool { return reflect.DeepEqual(a, b) }

// want returns the outcome of the genuine answer.
func (p *querier) want(op Op) outcome {
	switch op {
	case Pay:
		return outcome{state: string(p.Started.State), started: p.Started}
	case Query:
		return outcome{state: string(supplier.AnswerPaid), says: p.Says}
	case Refund, RefundQuery:
		return outcome{state: string(supplier.RefundSucceeded), back: p.Refunded[op]}
	case Payout, PayoutQuery:
		return outcome{state: string(supplier.PayoutSucceeded), out: p.PaidOut[op]}
	default:
		return outcome{state: string(supplier.AnswerClosed), says: p.Closed}
	}
}

// same reports whether an outcome equals that of the genuine answer.
func (p *querier) same(op Op, o outcome) bool {
	want := p.want(op)
	return o.err == nil && o.state == want.state && sameCallback(o.says, want.says) && sameStart(o.started, want.started) &&
		reflect.DeepEqual(o.back, want.back) && reflect.DeepEqual(o.out, want.out)
}

// sameStart compares two starts. A value may be signed differently each time: if the wanted
// value is "*", only its presence is checked.
func sameStart(got, want supplier.Started) bool {
	if want.Value == "*" && got.Value != "" {
		got.Value = "*"
	}
	return reflect.DeepEqual(got, want)
}

func answerIsRead(p *querier) {
	if p.Started.State != supplier.Accepted && p.Has[Pay] != nil {
		p.Errorf("the suite's start is %q", p.Started.State)
	}
	for _, op := range p.ops() {
		o := p.answered(op, p.Answer(op, Change{}))
		if !p.same(op, o) || o.kept.Class != supplier.ClassOK {
			p.Errorf("%s is read as\n %+v, want\n %+v", op, o, p.want(op))
		}
		if got, want := o.kept.Status, p.status(op); got != want {
			p.Errorf("%s: HTTP status %d is kept, want %d", op, got, want)
		}
	}
}

func wordsMean(p *querier) {
	if len(p.Cases) == 0 {
		p.Errorf("the suite names no words")
	}
	for _, c := range p.Cases {
		o := p.answered(c.Op, c.Answer)
		if o.state != c.State || o.says.RefundTotal != c.RefundTotal || o.kept.Class != c.Class {
			p.Errorf("%s, %s: %s, refunded %d, class %s (%s); want %s, %d, %s", c.Op, c.Name, o.state, o.says.RefundTotal, o.kept.Class, o.reason,
				c.State, c.RefundTotal, c.Class)
		}
		if c.State == string(supplier.AnswerUnknown) && !o.unknown() {
			p.Errorf("%s, %s: unknown, with content: %+v", c.Op, c.Name, o)
		}
	}
}

// otherStatuses sends the genuine, signed body with every other HTTP status: most signatures do
// not cover it.
func otherStatuses(p *querier) {
	for _, op := range p.ops() {
		genuine, wanted := p.Answer(op, Change{}), p.status(op)
		for status := 100; status < 600; status++ {
			if status == wanted {
				continue
			}
			x := copied(genuine)
			x.Status = status
			if o := p.answered(op, x); !o.unknown() {
				p.Errorf("%s: the genuine body under HTTP %d: %s", op, status, o.state)
			}
		}
	}
}

func bareStatuses(p *querier) {
	for _, op := range p.ops() {
		genuine, wanted := p.Answer(op, Change{}), p.status(op)
		bare := []supplier.Exchange{p.Signed(op, nil), p.Signed(op, []byte("{}")), p.Signed(op, []byte("<html>Bad Gateway</html>"))}
		for status := 100; status < 600; status++ {
			x := bare[status%len(bare)]
			if status == wanted && bytes.Equal(x.Body, genuine.Body) {
				continue // an answer that consists only of its status
			}
			x.Status = status
			if o := p.answered(op, x); !o.unknown() {
				p.Errorf("%s: HTTP %d with %q: %s", op, status, x.Body, o.state)
			}
		}
	}
}

func otherOrdersAnswer(p *querier) {
	for _, op := range p.ops() {
		if !p.has(op, "OrderRef") {
			continue
		}
		for _, ref := range []string{
			"SO20260301000002", strings.ToLower(Reference), Reference + " ", Reference + "0",
			Reference[:len(Reference)-2],
		} {
			if o := p.answered(op, p.Answer(op, Change{OrderRef: ref})); !o.unknown() {
				p.Errorf("%s: an answer about %q: %s", op, ref, o.state)
			}
		}
	}
	if p.Has[Query] != nil && !p.has(Query, "OrderRef") {
		p.Errorf("an answer to a query that names no order cannot be believed")
	}
}

// otherRefundsAnswer has answers about another refund of the same payment, and about one of
// another sum.
func otherRefundsAnswer(p *querier) {
	if p.Has[RefundQuery] != nil && !p.has(RefundQuery, "RefundNo") {
		p.Errorf("an answer to a query that names no refund cannot be believed")
	}
	for _, op := range p.ops() {
		if op != Refund && op != RefundQuery {
			continue
		}
		for _, no := range []string{"R20260301000002", strings.ToLower(RefundNo), RefundNo + " ", RefundNo + "0"} {
			// Where a list is the answer, another's refund means that ours is not there.
			o := p.answered(op, p.Answer(op, Change{RefundNo: no}))
			if p.has(op, "RefundNo") && !o.unknown() && o.state != string(supplier.RefundNotFound) {
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

func otherAccountsAnswer(p *querier) {
	ours := p.New(&Line{}).Identity()
	for _, op := range p.ops() {
		if !p.has(op, "Account") {
			continue
		}
		o := p.answered(op, p.Answer(op, Change{Account: "9999999999"}))
		if o.unknown() {
			continue
		}
		other := false
		if op != Pay && op != Query && op != Close { // an answer about a refund or a payout says nothing else
			p.Errorf("%s: an answer of another account: %s", op, o.state)
		}
		for name, value := range ours {
			other = other || value != "" && o.says.Identity[name] != value
		}
		if !other {
			p.Errorf("%s: an answer of another account looks like ours: %+v", op, o)
		}
	}
	// An answer that names no account gets the identity of the caller.
	for _, op := range p.ops() {
		if says := p.answered(op, p.Answer(op, Change{})).says; op == Query || op == Close {
			for name, value := range ours {
				if value != "" && says.Identity[name] != value {
					p.Errorf("%s: the genuine answer has %s %q, want %q", op, name, says.Identity[name], value)
				}
			}
		}
	}
}

func longAnswer(p *querier) {
	for _, op := range p.ops() {
		genuine := p.Answer(op, Change{})
		long := append(bytes.Clone(genuine.Body), bytes.Repeat([]byte(" "), supplier.MaxAnswer+1-len(genuine.Body))...)
		x := p.Signed(op, long)
		if o := p.answered(op, x); !o.unknown() || o.kept.Class != supplier.ClassBadAnswer {
			p.Errorf("%s: %d bytes: %s, class %s", op, len(x.Body), o.state, o.kept.Class)
		}
	}
}

// malformed are bodies that are not answers, or that two programs may read differently.
var malformed = []string{
	"{", "null", "[]", `""`, "0", "true", "not JSON", "<xml></xml>", "{}{}", "{\"a\":\"\x00\"}", `{"a":"\u0000"}`, `{"a":"\ud83d"}`,
	"{\"a\":\"\xff\"}",
	"\ufeff{}", strings.Repeat("[", 40) + strings.Repeat("]", 40),
}

func malformedAnswer(p *querier) {
	for _, op := range p.ops() {
		for _, body := range malformed {
			x := p.Signed(op, []byte(body))
			if o := p.answered(op, x); !o.unknown() {
				p.Errorf("%s: %q: %s", op, body, o.state)
			}
		}
	}
}

func doubledInAnswer(p *querier) {
	for _, op := range p.ops() {
		if p.has(op, "Duplicate") {
			if o := p.answered(op, p.Answer(op, Change{Duplicate: true})); !o.unknown() || o.kept.Class != supplier.ClassBadAnswer {
				p.Errorf("%s: a doubled field: %s, class %s", op, o.state, o.kept.Class)
			}
		}
	}
}

func oddAnswerAmounts(p *querier) {
	for _, op := range p.ops() {
		if !p.has(op, "Amount") {
			continue
		}
		for _, text := range append([]string{"0"}, oddAmounts...) {
			if o := p.answered(op, p.Answer(op, Change{Amount: text})); !o.unknown() {
				p.Errorf("%s: amount %q: %s, %d %s", op, text, o.state, o.says.Amount, o.says.Currency)
			}
		}
	}
}

// paidWithout leaves out one part of an answer that says paid, or refunded.
func paidWithout(p *querier) {
	for _, op := range []Op{Refund, RefundQuery} {
		for _, part := range []string{"OrderRef", "RefundNo", "Amount", "Status"} {
			if o := p.lacking(op, part); o != nil && !o.unknown() && o.state != string(supplier.RefundNotFound) {
				p.Errorf("%s without %s: %s", op, part, o.state)
			}
		}
	}
	payoutWithout(p)
	for _, part := range []string{"Amount", "Currency", "TradeNo", "OrderRef", "Status"} {
		if p.has(Query, part) {
			if o := p.answered(Query, p.Answer(Query, Change{Without: part})); !o.unknown() {
				p.Errorf("without %s: %s, %+v", part, o.state, o.says)
			}
		}
	}
}

// lacking is the outcome of an answer that lacks a part; nil where it never has it.
func (p *querier) lacking(op Op, without string) *outcome {
	if !p.has(op, without) {
		return nil
	}
	o := p.answered(op, p.Answer(op, Change{Without: without}))
	return &o
}

func unknownAnswerWord(p *querier) {
	for _, op := range p.ops() {
		if !p.has(op, "Status") {
			continue
		}
		for _, word := range []string{"BACKSTOP_UNKNOWN_WORD", " ", "paid ", "SUCCESS\u200b"} {
			if o := p.answered(op, p.Answer(op, Change{Status: word})); !o.unknown() || o.kept.Class != supplier.ClassUnknown {
				p.Errorf("%s: the word %q: %s, class %s", op, word, o.state, o.kept.Class)
			}
		}
	}
}
