// Package resend sends a message again, with the same body and id: a notification that ran out
// of attempts, or an alert. It makes the message due; the message's own schedule does the rest.
package resend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

const (
	// since is how old a notification may be to be resent when its merchant's breaker closes.
	since = 72 * time.Hour
	// step is how many of them one transaction opens.
	step = 500
)

// MadeBy is the maker of items that resend notifications after a breaker has closed.
const MadeBy = "breaker"

// Payload names one message, or the merchant whose exhausted notifications are to be resent.
type Payload struct {
	Delivery int64 `json:"delivery,omitempty"`
	Message  int64 `json:"message,omitempty"`
	Merchant int64 `json:"merchant,omitempty"`
}

// Options of the kind.
type Options struct {
	DB       *db.DB
	Schedule compensation.Schedule
	// Nudge wakes the workers for due notifications. It must not block.
	Nudge func([]queue.Nudge)
}

// Kind resends messages.
func Kind(o Options) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.Resend,
		Check: func(raw json.RawMessage) error { _, err := read(raw); return err },
		Run:   o.run,
	}
}

func read(raw json.RawMessage) (p Payload, err error) {
	if err = compensation.ReadPayload(raw, &p); err != nil {
		return p, err
	}
	given := 0
	for _, id := range []int64{p.Delivery, p.Message, p.Merchant} {
		if id > 0 {
			given++
		}
	}
	if given != 1 {
		return p, errors.New("the payload names no message, or several")
	}
	return p, nil
}

func (o Options) run(ctx context.Context, x compensation.Item) compensation.Result {
	p, err := read(x.Payload)
	switch {
	case err != nil:
		return compensation.DeadLetter(compensation.Payload, err.Error())
	case p.Merchant > 0:
		return o.merchant(ctx, p.Merchant)
	case p.Message > 0:
		return o.message(ctx, p.Message)
	}
	return o.delivery(ctx, p.Delivery)
}

func (o Options) delivery(ctx context.Context, id int64) compensation.Result {
	var nudges []queue.Nudge
	err := o.DB.SharedTx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		nudges, err = notify.SendExhausted(ctx, tx, o.DB, id)
		return err
	})
	switch {
	case err != nil:
		return compensation.Failed(err)
	case len(nudges) == 0:
		return compensation.AlreadyDone("the notification was delivered, or waits for its next attempt")
	}
	o.Nudge(nudges)
	return compensation.Succeeded("the notification is due again")
}

func (o Options) message(ctx context.Context, id int64) compensation.Result {
	again, err := alert.SendAgain(ctx, o.DB, o.DB, id)
	switch {
	case err != nil:
		return compensation.Failed(err)
	case !again:
		return compensation.AlreadyDone("the message was sent, or waits for its next attempt")
	}
	return compensation.Succeeded("the message is due again")
}

// Closed returns the item to open when a merchant's breaker has closed; generation tells one
// closing from the next.
func Closed(merchantID, generation int64) *compensation.Item {
	return &compensation.Item{
		Kind: compensation.Resend, Cause: compensation.MerchantUnreachable, SubjectKind: compensation.OfMerchant, SubjectID: merchantID,
		FromVersion: generation, MerchantID: merchantID, MadeBy: MadeBy,
		Payload: json.RawMessage(fmt.Sprintf(`{"merchant":%d}`, merchantID)),
	}
}

// exhausted reads the merchant's notifications that recently ran out of attempts, below an
// exception's id. What an operator has resolved stays resolved, and each is resent
// automatically once only.
const exhausted = "SELECT x.id AS exception_id, d.id AS delivery_id, x.order_no, x.amount, x.currency FROM exceptions AS x" +
	" JOIN deliveries AS d ON d.subject_id = x.order_id AND d.recipient_id = x.merchant_id AND d.status = ? AND NOT d.to_subscriber AND d.finished_at >= ?" +
	" WHERE x.kind = ? AND x.state IN (?) AND x.id > ? AND x.merchant_id = ?" +
	" AND NOT EXISTS (SELECT 1 FROM compensations AS c WHERE c.subject_id = d.id AND c.subject_kind = ? AND c.made_by = ?) ORDER BY x.id, d.id LIMIT ?"

// merchant opens a compensation for each of a merchant's exhausted notifications, a few per
// transaction.
func (o Options) merchant(ctx context.Context, id int64) compensation.Result {
	from := o.DB.Now() - since.Microseconds()
	opened := map[int64]bool{}
	for after := int64(0); ; {
		var rows []struct {
			ExceptionID, DeliveryID int64
			OrderNo                 string
			Amount                  int64
			Currency                string
		}
		err := o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			err := tx.NewRaw(exhausted, notify.Exhausted, from, exception.NotifyExhausted, bun.List(exception.Moves.Open()), after, id,
				compensation.OfDelivery, MadeBy, step).Scan(ctx, &rows)
			if err != nil {
				return fmt.Errorf("read a merchant's notifications: %w", err)
			}
			var items []*compensation.Item
			for _, r := range rows { // an order's exceptions lead to all of its notifications
				if opened[r.DeliveryID] {
					continue
				}
				opened[r.DeliveryID] = true
				items = append(items, &compensation.Item{
					Kind: compensation.Resend, Cause: compensation.MerchantUnreachable, SubjectKind: compensation.OfDelivery,
					SubjectID: r.DeliveryID,
					OrderNo:   r.OrderNo, MerchantID: id, Amount: r.Amount, Currency: r.Currency, MadeBy: MadeBy,
					Payload: json.RawMessage(fmt.Sprintf(`{"delivery":%d}`, r.DeliveryID)),
				})
			}
			w := tx.Writes()
			o.Schedule.Open(w, o.DB, items...)
			return w.Exec(ctx)
		})
		if err != nil {
			return compensation.Failed(err)
		}
		if len(rows) < step {
			return compensation.Succeeded(fmt.Sprintf("%d notifications are sent again", len(opened)))
		}
		after = rows[len(rows)-1].ExceptionID - 1 // its other deliveries may be on the next page
	}
}
