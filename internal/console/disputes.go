package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/ledger"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// DisputeList declares the list of disputes.
var DisputeList = fundList(
	"disputes", "dp", dispute.Moves,
	list.Field{Name: "dispute_no", Match: byNumber("(dp.dispute_no = ? OR dp.supplier_dispute_no = ?)")},
	list.Field{
		Name:  "order_no",
		Match: byNumber("dp.order_id <> 0 AND dp.order_id IN (SELECT o.id FROM orders AS o WHERE o.order_no = ?)"),
	},
	list.Field{Name: "due", Match: evidenceDue, Values: []string{DueAny, DueOver, "1d", "3d", "7d"}},
)

// Values of the filter by the deadline of evidence, beside a number of days from now.
const (
	DueAny  = "any"
	DueOver = "over" // it has passed
)

// awaited are the disputes for which evidence can be given by a deadline.
const awaited = "dp.status = 'opened' AND dp.due_by IS NOT NULL"

// evidenceDue matches the disputes whose evidence is still due, or was due without any.
func evidenceDue(_ context.Context, in list.Lookup, due string) (list.Match, error) {
	now := in.DB.Now()
	m := list.Match{Where: awaited, AnyAge: true, Candidates: func(context.Context, bun.IDB) (string, error) {
		return "SELECT * FROM disputes AS dp WHERE " + awaited, nil
	}}
	switch days, err := strconv.Atoi(strings.TrimSuffix(due, "d")); {
	case due == DueOver:
		m.Where, m.Args = awaited+" AND dp.due_by < ?", []any{now}
	case err == nil:
		m.Where, m.Args = awaited+" AND dp.due_by BETWEEN ? AND ?", []any{now, now + (time.Duration(days) * 24 * time.Hour).Microseconds()}
	}
	return m, nil
}

// dueRows is how many disputes with a deadline a page has, since they are sorted by it.
const dueRows = 500

// NextDue returns the dispute whose evidence is due next; nil = none is.
func (b *Reader) NextDue(ctx context.Context) (*dispute.Dispute, error) {
	var rows []dispute.Dispute
	if err := b.db.Read.NewRaw("SELECT dp.* FROM disputes AS dp WHERE "+awaited+" AND dp.due_by >= ? ORDER BY dp.due_by, dp.id LIMIT 1",
		b.db.Now()).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("find the next deadline of a dispute: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// Dispute is a dispute in the list.
type Dispute struct {
	dispute.Dispute `bun:",extend"`

	Supplier string `bun:"supplier,scanonly"` // code
	Merchant string `bun:"merchant,scanonly"` // code; "" = its payment is not known, or paid no order
}

// Disputes returns one page of disputes; those with a deadline are sorted by it.
func (b *Reader) Disputes(ctx context.Context, q list.Query, s list.Slice) (list.Page[Dispute], error) {
	byDue := q.Get("due") != ""
	if byDue {
		s.Rows = dueRows
	}
	page, err := list.Read(ctx, b.db, q, s, func(d *Dispute) int64 { return d.ID })
	for i := range page.Rows {
		page.Rows[i].Reason = MaskText(page.Rows[i].Reason)
	}
	if byDue {
		slices.SortStableFunc(page.Rows, func(x, y Dispute) int { return cmp.Compare(*x.DueBy, *y.DueBy) })
	}
	return page, err
}

// DisputeDetail is one dispute with everything that happened to it. Texts from outside are masked.
type DisputeDetail struct {
	Dispute
	Behind                       // entries, notifications and exceptions; a dispute makes no calls
	History  []booking.Change    // oldest first
	Evidence []dispute.Evidence  // oldest first
	Messages map[int64]*Callback // those of the history that are still kept, without their texts
}

// DisputeDetail reads a dispute by its number, ours or the supplier's. Errors: act.ErrNotFound.
func (b *Reader) DisputeDetail(ctx context.Context, no string) (*DisputeDetail, error) {
	found, err := dispute.ByNo(ctx, b.db.Read, no)
	if errors.Is(err, dispute.ErrNotFound) {
		return nil, act.ErrNotFound
	} else if err != nil {
		return nil, err
	}
	d := new(DisputeDetail)
	if err := b.db.Read.NewRaw("SELECT "+fundColumns("dp")+" FROM disputes AS dp WHERE dp.id = ?", found.ID).Scan(ctx,
		&d.Dispute); err != nil {
		return nil, fmt.Errorf("read a dispute: %w", err)
	}
	d.Reason = MaskText(d.Reason)
	if d.History, err = booking.History(ctx, b.db.Read, booking.OfDispute, d.ID); err != nil {
		return nil, err
	}
	if d.Evidence, err = dispute.EvidenceOf(ctx, b.db.Read, d.ID); err != nil {
		return nil, err
	}
	for i := range d.Evidence {
		d.Evidence[i].Text = MaskText(d.Evidence[i].Text)
	}
	if d.Entries, err = ledger.Lines(ctx, b.db.Read, booking.Refs(booking.OfDispute, d.ID)); err != nil {
		return nil, err
	}
	if err := b.addFundDeliveries(ctx, behindOf{id: d.ID, no: d.DisputeNo}, &d.Behind); err != nil {
		return nil, err
	}
	err = b.db.Read.NewSelect().Model(&d.Exceptions).Where("x.kind = ? AND x.supplier_id = ? AND x.subject = ?", exception.DisputeOpened,
		d.SupplierID, d.SupplierDisputeNo).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the exception of a dispute: %w", err)
	}
	return d, b.addDisputeMessages(ctx, d)
}

// addDisputeMessages reads which of the messages that changed the dispute are still kept.
func (b *Reader) addDisputeMessages(ctx context.Context, d *DisputeDetail) error {
	var ids []int64
	for _, h := range d.History {
		if h.SourceKind == booking.SourceCallback {
			ids = append(ids, h.SourceID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []*Callback
	err := b.db.Read.NewRaw("SELECT c.id, c.outcome, c.received_at, c.remote_addr FROM callbacks AS c WHERE c.id IN (?)",
		bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the messages about a dispute: %w", err)
	}
	d.Messages = make(map[int64]*Callback, len(rows))
	for _, c := range rows {
		d.Messages[c.ID] = c
	}
	return nil
}

// DisputeMove is one change of the status of one of the order's disputes.
type DisputeMove struct {
	booking.Change
	Of *dispute.Dispute
}

// storyDisputes is how many of an order's disputes its history has, the newest.
const storyDisputes = 50

// addDisputes adds the order's disputes with each change of their status.
func (b *Reader) addDisputes(ctx context.Context, s *Story) (err error) {
	if s.Disputes, err = dispute.OfOrder(ctx, b.db.Read, s.Order.ID); err != nil || len(s.Disputes) == 0 {
		return err
	}
	if left := len(s.Disputes) - storyDisputes; left > 0 {
		s.leaveOut(ItemDispute, int64(left))
		s.Disputes = s.Disputes[left:]
	}
	of := map[int64]*dispute.Dispute{}
	ids := make([]int64, len(s.Disputes))
	for i, d := range s.Disputes {
		d.Reason = MaskText(d.Reason)
		ids[i], of[d.ID] = d.ID, d
	}
	rows, err := booking.History(ctx, b.db.Read, booking.OfDispute, ids...)
	for _, h := range rows {
		s.Items = append(s.Items, Item{At: h.CreatedAt, Phase: DisputePhase, Dispute: &DisputeMove{h, of[h.SubjectID]}})
	}
	return err
}
