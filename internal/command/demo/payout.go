package demo

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/simulator"
)

// drawing is what happens to a payout.
type drawing int

// Drawings.
const (
	answerLost drawing = iota // the supplier pays it, but its answer is lost: the server must query
	cameBack                  // paid, and then returned by the bank
	ordinary
)

// drawn returns what happens to the story's payout: a third of them each.
func (o *story) drawn() drawing { return drawing(o.n % 3) }

// kind returns the kind of the supplier that pays. One of them loses every first answer: the
// payout's number is not known before its call.
func (d drawing) kind() string {
	if d == answerLost {
		return "sortedparams"
	}
	return "alipay"
}

// account returns the code of the merchant's account.
func (d drawing) account() string {
	if d == answerLost {
		return "bank"
	}
	return "alipay"
}

// drawnTime is longer than the first wait before a query (10 s) and its time limit.
const drawnTime = 40 * time.Second

// payOut draws half of the payment. Ordinary payouts above the merchant's limit wait for two
// operators; the others stay below it.
func (o *story) payOut(ctx context.Context) error {
	what, amount := o.drawn(), o.amount/2
	if what != ordinary {
		amount = min(amount, autoLimit)
	}
	p, err := o.to.payOut(ctx, o.shop, newPayout{
		OutPayoutNo: o.number() + "-p", Amount: amount, Currency: o.payer.Currency, Supplier: o.payer.Code,
		Account: map[string]string{"code": what.account()}, NotifyURL: o.shop.server.URL(),
	})
	if err != nil {
		return err
	}
	say := func(said string) {
		o.tally.log("%-12s %-14s → %-12s %10s %s payout %s: %s", o.ending, o.payer.Code, o.shop.code,
			money.Format(amount, o.payer.Currency), o.payer.Currency, p.PayoutNo, said)
	}
	say(p.Status)
	if what == ordinary {
		return nil
	}
	if err := o.untilPayout(ctx, p.PayoutNo, "succeeded"); err != nil {
		return err
	}
	if what == answerLost {
		say("succeeded, found by a query")
		return nil
	}
	// The supplier tells it, which makes the server ask.
	if _, err := o.suppliers.SetPayout(o.payer.Code, p.PayoutNo, simulator.PayoutScript{
		State:    simulator.StateReturned,
		Callback: simulator.CallbackNow,
	}); err != nil {
		return fmt.Errorf("return payout %s: %w", p.PayoutNo, err)
	}
	if err := o.untilPayout(ctx, p.PayoutNo, "reversed"); err != nil {
		return err
	}
	say("returned by the bank, reversed")
	return nil
}

// untilPayout waits until a payout has a status.
func (o *story) untilPayout(ctx context.Context, no, status string) error {
	ctx, cancel := context.WithTimeout(ctx, drawnTime)
	defer cancel()
	last := ""
	for {
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("payout %s was %q, not %s, after %s: %w", no, last, status, drawnTime, err)
		}
		p, err := o.to.payout(ctx, o.shop, no)
		if err != nil {
			return err
		}
		if last = p.Status; last == status {
			return nil
		}
	}
}
