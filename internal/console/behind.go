package console

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/act"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// Behind is what proves the steps of a refund or a payout. Texts from outside are masked.
type Behind struct {
	Calls      []Call           // to the supplier, oldest first
	Entries    []ledger.Line    // oldest first
	Approval   *Approval        // nil = none was needed
	Item       *Compensation    // the newest one that makes its calls; nil = none
	Deliveries []Notified       // oldest first
	Exceptions []exception.Item // newest first
}

// Notified is a notification about something that is not an order.
type Notified struct {
	notify.Delivery
	PublicID string
}

// behindOf names what is read.
type behindOf struct {
	id, orderID, approval int64 // 0 = no order, no approval
	no, kind, supplier    string
	exceptions, refs      []string
}

// behindRows bounds the rows of each kind: the newest.
const behindRows = 100

func (b *Reader) behind(ctx context.Context, of behindOf) (d Behind, err error) {
	for _, read := range []func(context.Context, behindOf, *Behind) error{
		b.addItem, b.addFundCalls, b.addApproval, b.addFundDeliveries,
		b.addFundExceptions,
	} {
		if err := read(ctx, of, &d); err != nil {
			return d, err
		}
	}
	d.Entries, err = ledger.Lines(ctx, b.db.Read, of.refs)
	return d, err
}

func (b *Reader) addItem(ctx context.Context, of behindOf, d *Behind) error {
	var rows []compensation.Item
	err := b.db.Read.NewSelect().Model(&rows).Where("subject_id = ? AND subject_kind = ?", of.id,
		of.kind).OrderExpr("id DESC").Limit(1).Scan(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	all, err := b.withCodes(ctx, rows)
	if err == nil {
		d.Item = &all[0]
	}
	return err
}

// addFundCalls reads the calls. Without an order that leads to them, they are the calls of the
// tries of its compensations.
func (b *Reader) addFundCalls(ctx context.Context, of behindOf, d *Behind) error {
	q := b.db.Read.NewSelect().TableExpr("supplier_calls AS c").ColumnExpr("c.*, ? AS supplier", of.supplier)
	if of.orderID != 0 {
		q = q.Where("c.order_id = ? AND c.reference = ?", of.orderID, of.no)
	} else {
		q = q.Where(
			"c.id IN (SELECT ct.call_id FROM compensations AS cp JOIN compensation_tries AS ct ON ct.compensation_id = cp.id WHERE cp.subject_id = ? AND cp.subject_kind = ?)", of.id, of.kind)
	}
	if err := q.OrderExpr("c.id DESC").Limit(behindRows).Scan(ctx, &d.Calls); err != nil {
		return fmt.Errorf("read the calls of %s: %w", of.no, err)
	}
	slices.Reverse(d.Calls)
	return nil
}

// addApproval reads the decision about it, or the one that made it.
func (b *Reader) addApproval(ctx context.Context, of behindOf, d *Behind) (err error) {
	if of.approval == 0 {
		return nil
	}
	d.Approval, err = b.Approval(ctx, of.approval)
	if errors.Is(err, act.ErrNotFound) {
		return nil
	}
	return err
}

func (b *Reader) addFundDeliveries(ctx context.Context, of behindOf, d *Behind) error {
	var rows []notify.Delivery
	if err := b.db.Read.NewSelect().Model(&rows).Where("d.subject_id = ?",
		of.id).OrderExpr("d.id DESC").Limit(behindRows).Scan(ctx); err != nil {
		return fmt.Errorf("read the notifications of %s: %w", of.no, err)
	}
	slices.Reverse(rows)
	m := maskerOf(of.no)
	for i := range rows {
		m.delivery(&rows[i])
		d.Deliveries = append(d.Deliveries, Notified{rows[i], rows[i].PublicID()})
	}
	return nil
}

func (b *Reader) addFundExceptions(ctx context.Context, of behindOf, d *Behind) error {
	err := b.db.Read.NewSelect().Model(&d.Exceptions).Where("x.kind IN (?) AND x.id > ? AND x.subject = ?", bun.List(of.exceptions), of.id,
		of.no).
		OrderExpr("x.id DESC").Limit(behindRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the exceptions of %s: %w", of.no, err)
	}
	return nil
}
