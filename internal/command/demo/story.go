package demo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/simulator"
)

// ending is what happens to an order.
type ending string

// Endings.
const (
	paid        ending = "paid"
	repeated    ending = "repeated"     // paid, and the supplier sends the callback three times
	wrongAmount ending = "wrong amount" // the supplier reports less than the order's amount
	forged      ending = "forged"       // a forged callback, then the genuine one
	flipped     ending = "flipped"      // one byte changed in transit, then the genuine callback
	late        ending = "late"         // paid after the order was closed
	unknown     ending = "unknown"      // a payment for an order that does not exist
	disputed    ending = "disputed"     // paid, and then disputed by the buyer: a third is won, a third is lost, the others wait for evidence
	never       ending = "never called" // no callback at all: the order times out
	refunded    ending = "refunded"     // paid, and then refunded in two parts
	paidOut     ending = "paid out"     // paid, and then the merchant draws a part of it
	lost        ending = "lost"         // paid, but the callback never arrives: the server must query the supplier
)

// endings has the endings, and how many of 100 orders get each.
var endings = []struct {
	ending ending
	share  int
}{
	{paid, 35},
	{paidOut, 4},
	{refunded, 6},
	{lost, 5},
	{disputed, 2},
	{repeated, 14},
	{wrongAmount, 6},
	{forged, 6},
	{flipped, 6},
	{late, 6},
	{unknown, 4},
	{never, 6},
}

// shownFirst is the number of orders with which a demo begins: the longest stories, one of each
// drawing. The next one is refunded, so that there is soon an order worth a look.
const shownFirst = 3

// story is one order from its creation to its end.
type story struct {
	*stage
	n         int
	ending    ending
	shop      *shop
	payer     *simulator.Account
	amount    int64
	starts    bool          // the merchant starts the payment (pay)
	hesitates time.Duration // wait before the buyer pays
	forgery   int           // status of the answer to a forgery; 0 = none was sent
	orderNo   string        // once it is created
}

// cast chooses the story of order n at random.
func (s *stage) cast(n int) *story {
	one := &story{
		stage: s, n: n, payer: s.payers[s.dice.IntN(len(s.payers))],
		amount: 100 + s.dice.Int64N(50_000), starts: s.dice.IntN(2) == 0,
		hesitates: time.Duration(s.dice.IntN(1500)) * time.Millisecond,
	}
	roll := s.dice.IntN(100)
	for _, e := range endings {
		if one.ending = e.ending; roll < e.share {
			break
		}
		roll -= e.share
	}
	switch {
	case n <= shownFirst:
		one.ending = paidOut
	case n == shownFirst+1:
		one.ending = refunded
	}
	if (one.ending == lost || one.ending == refunded || one.ending == paidOut) && !s.o.Callable {
		one.ending = paid
	}
	if one.ending == lost {
		one.starts = true // an order without a started payment is queried only when it expires
	}
	if one.ending == disputed {
		one.payer = s.payers[slices.IndexFunc(s.payers, func(p *simulator.Account) bool { return p.Disputes() != nil })]
	}
	if one.ending == paidOut {
		one.payer = s.payers[slices.IndexFunc(s.payers, func(p *simulator.Account) bool { return p.Kind == one.drawn().kind() })]
	}
	roll = s.dice.IntN(100)
	for _, m := range s.shops {
		if one.shop = m; roll < m.share {
			break
		}
		roll -= m.share
	}
	return one
}

// play runs the story. Failures of the demo itself are printed.
func (o *story) play(ctx context.Context) {
	switch err := o.act(ctx); {
	case err != nil && ctx.Err() == nil:
		o.tally.trouble(o.ending, err)
	case err == nil && o.ending == refunded:
		o.tally.show(o.o.Console + "/orders/" + o.orderNo)
	}
}

func (o *story) act(ctx context.Context) error {
	made := order{OrderNo: "ord_unknown_" + o.number()}
	if o.ending != unknown {
		var err error
		if made, err = o.buy(ctx); err != nil {
			return err
		}
	}
	switch o.ending {
	case never:
		o.report(made, 0)
		return nil
	case late:
		if err := o.untilClosed(ctx, made); err != nil {
			return err
		}
	default:
		if err := pause(ctx, o.hesitates); err != nil {
			return err
		}
	}
	amount := o.amount
	if o.ending == wrongAmount {
		amount = amount/2 + 1
	}
	f, err := o.pays(made, amount)
	if err != nil {
		return err
	}
	if o.ending == lost {
		o.report(made, 0)
		return o.untilFound(ctx, made)
	}
	if o.ending == forged || o.ending == flipped {
		if err := o.sendForgery(ctx, f); err != nil {
			return err
		}
	}
	if err := o.callBack(ctx, made, f); err != nil {
		return err
	}
	switch o.ending {
	case disputed:
		return o.sendDispute(ctx, f)
	case refunded:
		return o.refund(ctx, made)
	case paidOut:
		return o.payOut(ctx)
	}
	return nil
}

// refund requests two refunds, each of a part of the payment. Those above the merchant's limit
// wait for two operators.
func (o *story) refund(ctx context.Context, made order) error {
	for i, part := range []int64{o.amount/3 + 1, o.amount / 4} {
		if err := pause(ctx, o.hesitates+500*time.Millisecond); err != nil {
			return err
		}
		r, err := o.to.refund(ctx, o.shop, made.OrderNo, newRefund{
			OutRefundNo: fmt.Sprintf("%s-r%d", o.number(), i+1), Amount: part,
			Reason: refundReasons[i],
		})
		if err != nil {
			return err
		}
		o.tally.log("%-12s %-14s → %-12s %10s %s of order %s: %s", o.ending, o.payer.Code, o.shop.code,
			money.Format(part, o.payer.Currency), o.payer.Currency, made.OrderNo, r.Status)
	}
	return nil
}

var refundReasons = [2]string{"one item is out of stock", "the parcel arrived damaged"}

// pays makes the buyer pay at the supplier.
func (o *story) pays(made order, amount int64) (simulator.Fact, error) {
	paid, err := o.suppliers.Set(o.payer.Code, made.OrderNo, simulator.Script{State: simulator.StatePaid, Amount: amount})
	if err != nil {
		return simulator.Fact{}, fmt.Errorf("pay %s: %w", made.OrderNo, err)
	}
	return simulator.Fact{Ref: made.OrderNo, TradeNo: paid.TradeNo, Amount: amount, Currency: o.payer.Currency, At: time.Now()}, nil
}

// disputeFee is the supplier's fee for a dispute, in minor units.
const disputeFee = 1500

// sendDispute reports that the buyer demands the payment back. Of three disputes one stays open; of
// the others the supplier takes the money, and gives it back where the dispute is won.
func (o *story) sendDispute(ctx context.Context, f simulator.Fact) error {
	d := simulator.DisputeFact{
		Payment: f, No: "du_" + f.TradeNo, Status: "needs_response", Amount: f.Amount, Currency: f.Currency, Fee: disputeFee,
		Reason: "product_not_received", DueBy: f.At.Add(7 * 24 * time.Hour),
	}
	events := []simulator.State{simulator.DisputeCreated}
	switch o.n % 3 {
	case 1:
		events = append(events, simulator.DisputeWithdrawn, simulator.DisputeUpdated, simulator.DisputeWon, simulator.DisputeReinstated)
	case 2:
		events = append(events, simulator.DisputeWithdrawn, simulator.DisputeLost)
	}
	for _, event := range events {
		switch d.Event = event; event {
		case simulator.DisputeWithdrawn:
			d.Withdrawn = true
		case simulator.DisputeUpdated:
			d.Status = "under_review"
		case simulator.DisputeWon, simulator.DisputeLost:
			d.Status = string(event)
		case simulator.DisputeReinstated:
			d.Reinstated = true
		}
		if err := o.sendDisputeEvent(ctx, d); err != nil {
			return err
		}
		d.N++
		if err := pause(ctx, o.hesitates); err != nil {
			return err
		}
	}
	return nil
}

func (o *story) sendDisputeEvent(ctx context.Context, d simulator.DisputeFact) error {
	d.At = time.Now()
	m, err := o.payer.Disputes().DisputeEvent(d)
	if err != nil {
		return fmt.Errorf("sign the dispute: %w", err)
	}
	status, err := o.to.call(ctx, o.payer.Code, m)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the dispute's event %q was %s", d.Event, answered(status))
	}
	return err
}

// buy creates the order and, often, starts the payment.
func (o *story) buy(ctx context.Context) (order, error) {
	w := newOrder{
		OutTradeNo: o.number(), Amount: o.amount, Currency: o.payer.Currency, Supplier: o.payer.Code,
		Subject: "demo: " + string(o.ending), NotifyURL: o.shop.server.URL(), ExpiresIn: 60,
	}
	switch o.ending {
	case late:
		w.ExpiresIn = 1
	case never:
		w.ExpiresIn = 5
	case lost:
		w.ExpiresIn = 10 // the supplier is queried then, at the latest
	}
	made, err := o.to.create(ctx, o.shop, w)
	if err != nil {
		return made, err
	}
	o.orderNo = made.OrderNo
	o.tally.made(o.shop, made)
	// Late and never must close when they expire: an order with a started payment would wait
	// in closing.
	if o.starts && o.ending != late && o.ending != never {
		return o.to.pay(ctx, o.shop, made.OrderNo)
	}
	// The supplier nevertheless has an unpaid payment.
	_, err = o.suppliers.Set(o.payer.Code, made.OrderNo, simulator.Script{State: simulator.StateUnpaid, Amount: o.amount})
	if err != nil {
		return made, fmt.Errorf("start %s: %w", made.OrderNo, err)
	}
	return made, nil
}

// foundTime is longer than the life of a lost order plus the time limit of a query.
const foundTime = 30 * time.Second

// untilFound waits until the server has queried the supplier and found the payment.
func (o *story) untilFound(ctx context.Context, made order) error {
	ctx, cancel := context.WithTimeout(ctx, foundTime)
	defer cancel()
	for {
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("order %s was paid, but the server did not find that out within %s: %w", made.OrderNo, foundTime, err)
		}
		current, err := o.to.get(ctx, o.shop, made.OrderNo)
		if err != nil {
			return err
		}
		if current.Status == "paid" {
			o.tally.foundOne(fmt.Sprintf("%-12s %-14s   order %s: paid, found by a query", o.ending, o.payer.Code, made.OrderNo))
			return nil
		}
	}
}

// closeTime is longer than the time limit to close an expired order (2 s).
const closeTime = 8 * time.Second

func (o *story) untilClosed(ctx context.Context, made order) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for {
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("order %s did not close within %s: %w", made.OrderNo, closeTime, err)
		}
		current, err := o.to.get(ctx, o.shop, made.OrderNo)
		if err != nil {
			return err
		}
		if current.Status == "closed" {
			return nil
		}
	}
}

func (o *story) sendForgery(ctx context.Context, f simulator.Fact) error {
	m, err := forge(o.payer, f, o.ending == flipped)
	if err != nil {
		return err
	}
	status, err := o.to.call(ctx, o.payer.Code, m)
	if err != nil {
		return err
	}
	o.forgery = status
	o.tally.forgery(status)
	return nil
}

// callBack sends the callback, three times if the story is repeated.
func (o *story) callBack(ctx context.Context, made order, f simulator.Fact) error {
	m, err := o.payer.Callback(f)
	if err != nil {
		return fmt.Errorf("sign the callback: %w", err)
	}
	times := 1
	if o.ending == repeated {
		times = 3
	}
	for range times {
		status, err := o.to.call(ctx, o.payer.Code, m)
		if err != nil {
			return err
		}
		o.report(made, status)
	}
	return nil
}

func (o *story) report(made order, status int) {
	answer := answered(status)
	if o.forgery != 0 {
		answer = fmt.Sprintf("forged: %s, genuine: %s", answered(o.forgery), answer)
	}
	o.tally.callback(o.ending, status, fmt.Sprintf("%-12s %-14s → %-12s %10s %s %s  %s", o.ending, o.payer.Code, o.shop.code,
		money.Format(o.amount, o.payer.Currency), o.payer.Currency, made.OrderNo, answer))
}

func (o *story) number() string { return fmt.Sprintf("%s-%d", o.run, o.n) }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
