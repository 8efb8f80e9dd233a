package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/payout"
	"backstop/internal/list"
)

// PayoutList declares the list of payouts.
var PayoutList = fundList("payouts", "po", payout.Moves, list.Field{Name: "payout_no", Match: byNumber("po.payout_no = ?")})

// Payout is a payout in the list, with its steps.
type Payout struct {
	payout.Payout `bun:",extend"`

	Supplier string `bun:"supplier,scanonly"` // code
	Merchant string `bun:"merchant,scanonly"` // code
}

// Payouts returns one page of payouts.
func (b *Reader) Payouts(ctx context.Context, q list.Query, s list.Slice) (list.Page[Payout], error) {
	page, err := list.Read(ctx, b.db, q, s, func(p *Payout) int64 { return p.ID })
	if err != nil {
		return page, err
	}
	all := make([]*payout.Payout, len(page.Rows))
	for i := range page.Rows {
		all[i] = &page.Rows[i].Payout
	}
	return page, payout.Fill(ctx, b.db.Read, all...)
}

// PayoutDetail is one payout with everything that happened to it. Texts from outside are masked.
type PayoutDetail struct {
	Payout
	Behind
	History []booking.Change // oldest first
	Steps   []payout.Step    // debit, credit, reversal, as far as they exist
}

// PayoutDetail reads a payout by its number. Errors: act.ErrNotFound.
func (b *Reader) PayoutDetail(ctx context.Context, no string) (*PayoutDetail, error) {
	d := new(PayoutDetail)
	err := b.db.Read.NewRaw("SELECT "+fundColumns("po")+" FROM payouts AS po WHERE po.payout_no = ?", no).Scan(ctx, &d.Payout)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, act.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("read a payout: %w", err)
	}
	d.Failure = MaskText(d.Failure)
	if err := payout.Fill(ctx, b.db.Read, &d.Payout.Payout); err != nil {
		return nil, err
	}
	if d.Steps, err = payout.StepsOf(ctx, b.db.Read, []int64{d.ID}); err != nil {
		return nil, err
	}
	if d.History, err = booking.History(ctx, b.db.Read, booking.OfPayout, d.ID); err != nil {
		return nil, err
	}
	for i := range d.History {
		d.History[i].Detail = MaskText(d.History[i].Detail)
	}
	d.Behind, err = b.behind(ctx, behindOf{
		id: d.ID, no: d.PayoutNo, kind: compensation.OfPayout, supplier: d.Supplier, approval: d.ApprovalID,
		exceptions: []string{exception.PayoutStuck, exception.PayoutReturned, exception.PayoutAfterReversal, exception.SupplierShort},
		refs:       booking.Refs(booking.OfPayout, d.ID),
	})
	return d, err
}
