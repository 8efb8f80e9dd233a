package payment_test

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// pure runs the decisions of the program, with the rules by which a worker trusts answers.
type pure struct {
	*payment.Pure
	s     supplier.Entry
	w     *paymenttest.World
	kept  []kept
	heard map[string]bool // references of which the supplier has known

	failsUnknown, believesAll bool // controls
}

type kept struct {
	answer  supplier.Answer
	message *payment.Message
}

func (p *pure) Pay() {
	ref, end := p.Begin()
	if end == nil {
		return
	}
	said := p.w.Start(ref)
	if p.failsUnknown && said.State == supplier.StartUnknown {
		said.State = supplier.StartRefused
	}
	end(said)
}

func (p *pure) Take(c supplier.Callback) {
	p.Confirm(&payment.Message{Supplier: p.s, Content: c, Source: payment.ByCallback(p.s, payment.Record{Body: []byte(c.EventKey)})})
}

func (p *pure) Kept() int { return len(p.kept) }
func (p *pure) Crash()    { p.kept = nil }
func (p *pure) Cancel()   { p.End(order.ByCancel) }
func (p *pure) Expire()   { p.End(order.ByTimeout) }

func (p *pure) Pass(d time.Duration) { p.Pure.Pass(d.Microseconds()) }

// Query does the minimum of what a worker does: the full behaviour is tested on a database.
func (p *pure) Query() {
	o := p.Order
	if o.Status != order.Paying && o.Status != order.Closing {
		return
	}
	p.Queried()
	ref, began := o.OrderNo, o.CreatedAt
	i := slices.IndexFunc(p.Attempts, (*payment.Attempt).IsOpen)
	if i >= 0 {
		ref, began = p.Attempts[i].SupplierRef, p.Attempts[i].CreatedAt
	} else if o.Status == order.Paying {
		return // it may be paid again
	}
	a := p.w.Query(ref, o.Amount)
	if a.Says.OrderRef != ref && a.State != supplier.AnswerUnknown {
		a = supplier.Answer{State: supplier.AnswerUnknown}
	}
	never := a.State == supplier.AnswerNotFound && (p.Now()-began >= paymenttest.QueryAfter.Microseconds() && !p.heard[ref] ||
		p.believesAll)
	p.heard[ref] = p.heard[ref] || a.State != supplier.AnswerUnknown && a.State != supplier.AnswerNotFound
	if o.Status == order.Closing && (never || a.State == supplier.AnswerPaying) {
		switch {
		case i >= 0 && !p.believesAll:
			closed := p.w.Close(ref, o.Amount)
			if closed.State == supplier.AnswerClosed || never && closed.State == supplier.AnswerNotFound {
				a.State = supplier.AnswerClosed
			}
		case never, p.Now() >= o.ExpiresAt:
			a.State = supplier.AnswerClosed
		}
		a.Says.OrderRef = ref
	}
	k := kept{answer: a}
	if a.State == supplier.AnswerPaid || a.State == supplier.AnswerFailed || a.State == supplier.AnswerClosed {
		c := a.Says
		c.Status = supplier.Status(a.State)
		k.message = &payment.Message{Supplier: p.s, Content: c, Source: payment.ByCall(p.s, p.CallID())}
	}
	p.kept = append(p.kept, k)
}

func (p *pure) Land(n int) supplier.Answer {
	k := p.kept[n]
	p.kept = slices.Delete(p.kept, n, n+1)
	if k.message != nil {
		p.Confirm(k.message)
	}
	return k.answer
}

func (p *pure) Books() paymenttest.Books {
	b := paymenttest.Books{Order: p.Order, Attempts: p.Attempts, History: p.History, Notices: p.Notices}
	b.Entries = p.Entries
	for _, x := range p.Exceptions {
		b.Held = append(b.Held, paymenttest.Held{Kind: x.Kind, TradeNo: x.Subject, Ref: x.HeldRef})
	}
	return b
}

func pureModel(t *testing.T, change func(*pure)) func(w *paymenttest.World) paymenttest.Machine {
	f := paymenttest.New(t, dbtest.Default(t), paymenttest.Options{
		URL: "http://127.0.0.1:1/n", Fakes: paymenttest.NewFakes("f1"), Steps: payment.Steps{
			Query: []time.Duration{time.Minute},
			Close: []time.Duration{0, time.Minute},
		},
	})
	s := f.Entry(t, "f1")
	return func(w *paymenttest.World) paymenttest.Machine {
		p := &pure{
			Pure: payment.NewPure(f.Processor, s, f.M1.ID, 1999, (30 * time.Minute).Microseconds(), paymenttest.Currency), s: s, w: w,
			heard: map[string]bool{},
		}
		change(p)
		return p
	}
}

// Whatever happens in whatever order, an order is paid once, by money that is there, and
// ends; nothing is written to a database.
func TestTheDecisionsHoldInEveryStory(t *testing.T) {
	t.Parallel()
	paymenttest.Stories(t, 1_000_000, pureModel(t, func(*pure) {}))
}

// Controls: each does one thing that the rules forbid.
func TestAWrongRuleIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pure){
		"an unknown start is a failure": func(p *pure) { p.failsUnknown = true },
		"not found is believed at once": func(p *pure) { p.believesAll = true },
		"held money pays and stays":     func(p *pure) { p.KeepsHeld = true },
	} {
		broken := paymenttest.Breaks(t, 4_000_000, pureModel(t, change))
		t.Logf("%s: %s", name, broken)
		if broken == "" {
			t.Errorf("%s, and no invariant breaks: the stories show nothing", name)
		}
	}
}
