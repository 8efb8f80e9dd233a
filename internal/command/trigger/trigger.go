// Package trigger brings events about in test mode, so that a merchant's system receives their
// notifications.
package trigger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"backstop/client"
	"backstop/internal/testmode"
)

// Options of Run.
type Options struct {
	URL      string // of the server
	Key      string // an API key of test mode
	Event    string // one of Events
	Amount   int64  // minor units of Currency
	Currency string
	Out      io.Writer
}

// ErrEvent means an event that the sandbox cannot bring about.
var ErrEvent = errors.New("cannot be triggered")

// event is how a type of notification is brought about, once the order has been created.
type event struct {
	name string
	do   func(*run, context.Context) error
}

func events() []event {
	return []event{
		{"order.paid", (*run).pay},
		{"order.failed", func(r *run, ctx context.Context) error { return r.play(ctx, client.Fails) }},
		{"order.closed", (*run).cancel},
		{"refund.succeeded", func(r *run, ctx context.Context) error { return r.refund(ctx, "trigger") }},
		{"refund.failed", func(r *run, ctx context.Context) error { return r.refund(ctx, testmode.FailingReason) }},
	}
}

// Events are the types of notifications that can be brought about.
func Events() (names []string) {
	for _, e := range events() {
		names = append(names, e.name)
	}
	return names
}

// run is one event being brought about.
type run struct {
	o     Options
	c     *client.Client
	order *client.Order
}

const (
	// maxTime bounds a run.
	maxTime = 30 * time.Second
	// pollEvery is how often a refund is looked at until it has ended.
	pollEvery = 200 * time.Millisecond
)

// Run creates an order and brings the event about. Errors: ErrEvent, and those of the requests.
func Run(ctx context.Context, o Options) error {
	all := events()
	i := slices.IndexFunc(all, func(e event) bool { return e.name == o.Event })
	if i < 0 {
		return fmt.Errorf("%q %w: the sandbox has %s", o.Event, ErrEvent, strings.Join(Events(), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	r := &run{o: o, c: &client.Client{BaseURL: o.URL, APIKey: o.Key}}
	var err error
	r.order, err = r.c.CreateOrder(ctx, client.NewOrder{
		OutTradeNo: "trigger-" + rand.Text()[:16], Amount: o.Amount, Currency: o.Currency, Supplier: testmode.Code, Subject: o.Event,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "order %s created: %d %s\n", r.order.OrderNo, o.Amount, o.Currency)
	return all[i].do(r, ctx)
}

func (r *run) pay(ctx context.Context) error { return r.play(ctx, client.Pays) }

// play has the sandbox send the callbacks of a scenario.
func (r *run) play(ctx context.Context, as client.Scenario) error {
	played, err := r.c.PlayPayment(ctx, r.order.OrderNo, as)
	if err != nil {
		return err
	}
	for _, c := range played.Callbacks {
		fmt.Fprintf(r.o.Out, "callback of %s answered %d %s\n", testmode.Code, c.Status, c.Body)
	}
	fmt.Fprintf(r.o.Out, "order %s is %s\n", r.order.OrderNo, played.Status)
	return nil
}

func (r *run) cancel(ctx context.Context) error {
	o, err := r.c.CancelOrder(ctx, r.order.OrderNo)
	if err == nil {
		fmt.Fprintf(r.o.Out, "order %s is %s\n", o.OrderNo, o.Status)
	}
	return err
}

// refund pays the order, refunds it, and waits for the result.
func (r *run) refund(ctx context.Context, reason string) error {
	if err := r.pay(ctx); err != nil {
		return err
	}
	refund, err := r.c.CreateRefund(ctx, r.order.OrderNo, client.NewRefund{
		OutRefundNo: r.order.OutTradeNo, Amount: r.order.Amount, Reason: reason,
	})
	for err == nil && refund.FinishedAt == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("refund %s is still %s", refund.RefundNo, refund.Status)
		case <-time.After(pollEvery):
		}
		refund, err = r.c.Refund(ctx, refund.RefundNo)
	}
	if err == nil {
		fmt.Fprintf(r.o.Out, "refund %s is %s\n", refund.RefundNo, refund.Status)
	}
	return err
}
