package console

import (
	"context"
	"encoding/json"
	"strconv"

	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/notify"
)

// Resend is a notification that can be resent, and what it would wait for.
type Resend struct {
	PublicID string
	Delivery *notify.Delivery
	Merchant string       // code of the merchant with this breaker
	Breaker  *breaker.Row // as stored; nil = nothing holds it back
}

// Resent is the newest act by which an operator resent one of an order's notifications, with
// the delivery's current state.
type Resent struct {
	Act      *audit.Row
	Delivery *notify.Delivery
	Breaker  *breaker.Row // that it waits for; nil = none
}

// held returns the breaker that a delivery waits for, read from its row; nil = none.
func (b *Reader) held(ctx context.Context, x *notify.Delivery) (*breaker.Row, error) {
	r, err := breaker.Read(ctx, b.db.Read, x.Recipient())
	if err != nil || !notify.Waits(r, b.settings.Merchants(), x) {
		return nil, err
	}
	return r, nil
}

// resend returns what a resend of a notification would send.
func (b *Reader) resend(ctx context.Context, id string, x *notify.Delivery) (*Resend, error) {
	r := &Resend{PublicID: id, Delivery: x}
	if m := b.settings.Merchants().ByID(x.RecipientID); m != nil {
		r.Merchant = m.Code
	}
	var err error
	r.Breaker, err = b.held(ctx, x)
	return r, err
}

// addResend finds the notification that an operator would resend: the newest one that is not
// being sent right now.
func (b *Reader) addResend(ctx context.Context, s *Story) (err error) {
	for i := range s.Deliveries {
		newest := &s.Deliveries[i]
		if newest.Status == notify.Sending {
			continue
		}
		var of []*notify.Delivery
		for j := range s.Deliveries {
			if x := &s.Deliveries[j]; x.EventID == newest.EventID && x.Status != notify.Sending {
				of = append(of, x)
			}
		}
		s.Resend, err = b.resend(ctx, newest.PublicID(), notify.Neediest(of))
		return err
	}
	return nil
}

// addResent finds the last resend and the state of its delivery.
func (b *Reader) addResent(ctx context.Context, s *Story) (err error) {
	var last *audit.Row
	for _, i := range s.Items {
		if i.Act != nil && i.Act.Action == notify.ResendAct && (last == nil || i.Act.Number > last.Number) {
			last = i.Act
		}
	}
	if last == nil {
		return nil
	}
	var params struct{ Delivery string }
	if json.Unmarshal([]byte(last.Params), &params) != nil {
		return nil
	}
	for i := range s.Deliveries {
		x := &s.Deliveries[i]
		if strconv.FormatInt(x.ID, 10) != params.Delivery {
			continue
		}
		s.Resent = &Resent{Act: last, Delivery: x}
		if x.Status.Waiting() {
			s.Resent.Breaker, err = b.held(ctx, x)
		}
	}
	return err
}
