package suppliertest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"backstop/internal/supplier"
)

func lateAnswer(p *querier) {
	for _, op := range p.ops() {
		ctx, end := context.WithCancel(context.Background())
		line := &Line{Reply: func(*http.Request, []byte) supplier.Exchange {
			end()
			return p.Answer(op, Change{})
		}}
		if o := p.call(ctx, p.New(line), op); !o.unknown() || o.kept.Class != supplier.ClassTimeout || len(line.Sent()) == 0 {
			p.Errorf("%s: an answer after the context ended: %s, class %s, %d sent", op, o.state, o.kept.Class, len(line.Sent()))
		}
	}
}

func nothingSent(p *querier) {
	ctx, end := context.WithCancel(context.Background())
	end()
	for _, op := range p.ops() {
		line := &Line{Reply: func(*http.Request, []byte) supplier.Exchange { return p.Answer(op, Change{}) }}
		if o := p.call(ctx, p.New(line), op); !o.unknown() || o.kept.Class != supplier.ClassTimeout || len(line.Sent()) != 0 {
			p.Errorf("%s: with an ended context: %s, class %s, %d sent", op, o.state, o.kept.Class, len(line.Sent()))
		}
	}
}

// noAnswer makes the client fail, once with nothing and once with a genuine answer beside the
// failure.
func noAnswer(p *querier) {
	for _, op := range p.ops() {
		for _, class := range []supplier.Class{supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS, supplier.ClassBadAnswer} {
			half := p.Answer(op, Change{})
			half.Class = class
			for _, x := range []supplier.Exchange{{Class: class}, half} {
				if o := p.answered(op, x); !o.unknown() || o.kept.Class != class {
					p.Errorf("%s: a call that ended %s: %s, class %s", op, class, o.state, o.kept.Class)
				}
			}
		}
	}
}

func sameOnRepeat(p *querier) {
	for _, op := range p.ops() {
		line := &Line{Reply: func(*http.Request, []byte) supplier.Exchange { return supplier.Exchange{Class: supplier.ClassTimeout} }}
		a := p.New(line)
		pay := p.payment()
		for range 3 {
			if op == Pay {
				if s, err := supplier.AbilitiesOf(a).Start(context.Background(), pay); err != nil || s.State != supplier.StartUnknown {
					p.Errorf("%s: %v, state %s", op, err, s.State)
				}
				continue
			}
			p.call(context.Background(), a, op)
		}
		sent := line.Sent()
		if len(sent) != 3 {
			p.Errorf("%s: three calls sent %d requests", op, len(sent))
			return
		}
		for _, s := range sent[1:] {
			if first, again := p.key(sent[0]), p.key(s); again != first {
				p.Errorf("%s: a repeat is another call\n%s\nthan\n%s", op, again, first)
			}
		}
		first := p.key(sent[0])
		if op == Payout || op == PayoutQuery {
			p.namesPayout(op, first)
			continue
		}
		if op == Refund && !strings.Contains(first, RefundNo) {
			p.Errorf("%s: the call does not name the refund: %s", op, first)
		}
		if op == RefundQuery && (strings.Contains(first, RefundNo) || strings.Contains(first, p.Refund.TradeNo) && p.Refund.TradeNo != "") {
			continue
		}
		if !strings.Contains(first, Reference) && (p.ExternalID == "" || !strings.Contains(first, p.ExternalID)) {
			p.Errorf("%s: the call does not name the payment: %s", op, first)
		}
	}
}

func authorizationIsNotKept(p *querier) {
	for _, op := range p.ops() {
		o := p.answered(op, p.Answer(op, Change{}))
		for _, sent := range p.line.Sent() {
			_, token, _ := strings.Cut(sent.Request.Header.Get("Authorization"), " ")
			if token != "" && bytes.Contains(o.kept.Request, []byte(token)) {
				p.Errorf("%s: the authorization shows in what is kept of the request", op)
			}
		}
	}
}

func concurrentCalls(p *querier) {
	const callers, rounds = 8, 5
	ops := p.ops()
	wrong := make(chan string, callers*rounds)
	var wg sync.WaitGroup
	for caller := range callers {
		op := ops[caller%len(ops)]
		genuine := p.Answer(op, Change{})
		wg.Go(func() {
			for range rounds {
				if o := p.answered(op, genuine); !p.same(op, o) {
					wrong <- fmt.Sprintf("%s: %+v", op, o)
				}
			}
		})
	}
	wg.Wait()
	close(wrong)
	for text := range wrong {
		p.Errorf("concurrent callers mix up answers: %s", text)
		return
	}
}
