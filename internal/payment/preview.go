package payment

import (
	"context"
	"errors"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Preview is what a message would do.
type Preview struct {
	Outcome string
	Result  supplier.Result
	Steps   []supplier.Step
	Order   *order.Order // as it is; nil = none
	To      order.Status // "" = its status does not change
	// Exception is what would be opened; nil = none.
	Exception *exception.Item
	Before    int64 // the callback that brought the same message before; 0 = none
}

// errPreviewed rolls back the transaction of a preview.
var errPreviewed = errors.New("only previewed")

// Preview returns what Confirm would do with a message, and does nothing. It reads as Confirm
// does, in a transaction that is rolled back, so that both decide the same.
func (p *Processor) Preview(ctx context.Context, m *Message) (v Preview, err error) {
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		b := &batch{p: p, tx: tx, items: []*Message{m}}
		if err := b.read(ctx); err != nil {
			return err
		}
		d := b.decide(m)
		v = Preview{
			Outcome: d.outcome, Result: d.result, Steps: d.steps, Order: d.order, To: d.to, Exception: d.exception,
			Before: d.before,
		}
		return errPreviewed
	})
	if errors.Is(err, errPreviewed) {
		err = nil
	}
	return v, err
}
