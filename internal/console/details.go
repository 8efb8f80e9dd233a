package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/exception"
	"backstop/internal/notify"
)

// detailRows bounds how many attempts or acts a detail page shows.
const detailRows = 200

// CallbackDetail is one callback, refused or not, with its full content.
type CallbackDetail struct {
	Callback
	OrderNo string `bun:"order_no"` // as named in the message
	OrderID int64  `bun:"order_id"` // 0 = no such order
	Refused bool   `bun:"-"`
}

// CallbackDetail reads one callback. Errors: act.ErrNotFound.
func (b *Reader) CallbackDetail(ctx context.Context, id int64) (*CallbackDetail, error) {
	for _, q := range []string{
		"SELECT " + storyCallback +
			", c.body, c.order_no, c.order_id FROM callbacks AS c LEFT JOIN callback_repeats AS cr ON cr.callback_id = c.id WHERE c.id = ?",
		"SELECT c.id, c.outcome, c.received_at, c.remote_addr, c.method, c.query, c.headers, length(c.body) AS size, c.supplier, c.body, c.steps" +
			" FROM refused_callbacks AS c WHERE c.id = ?",
	} {
		var rows []CallbackDetail
		if err := b.db.Read.NewRaw(q, id).Scan(ctx, &rows); err != nil {
			return nil, fmt.Errorf("read a callback: %w", err)
		}
		if len(rows) == 0 {
			continue
		}
		c := &rows[0]
		c.Refused = strings.Contains(q, refusedTable)
		return c, nil
	}
	return nil, act.ErrNotFound
}

// Notification is one notification with its attempts, oldest first.
type Notification struct {
	Delivery
	Body     string // as sent to the merchant
	Attempts []notify.Attempt
	Cut      bool // there are more attempts
	Resend   *Resend
}

// Notification reads the notification with a public id: the merchant's or, because others may
// subscribe to the event, that of the given delivery (0 = none given). Errors: act.ErrNotFound.
func (b *Reader) Notification(ctx context.Context, id string, delivery int64) (*Notification, error) {
	event, err := notify.FindEvent(ctx, b.db.Read, id)
	if errors.Is(err, notify.ErrNoDelivery) {
		return nil, act.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	var rows []Delivery
	q := b.selectDeliveries(&rows).Where("d.event_id = ? AND d.subject_id = ?", event.ID, event.SubjectID)
	if delivery != 0 {
		q = q.Where("d.id = ?", delivery)
	}
	if err := q.OrderExpr("d.to_subscriber, d.id DESC").Limit(1).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a notification: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	n := &Notification{Delivery: rows[0], Body: event.Body}
	n.PublicID = id
	n.addMoney()
	if n.Resend, err = b.resend(ctx, id, &n.Delivery.Delivery); err != nil {
		return nil, err
	}
	err = b.db.Read.NewSelect().Model(&n.Attempts).ModelTableExpr(notify.AllAttempts+" AS na").Where("na.delivery_id = ?",
		n.ID).OrderExpr("na.id").Limit(detailRows + 1).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read a notification's attempts: %w", err)
	}
	n.Body = notify.ShownBody(n.EventType, n.Body)
	n.Parked = b.holds(&n.Delivery.Delivery)
	n.Cut = len(n.Attempts) > detailRows
	n.Attempts = n.Attempts[:min(len(n.Attempts), detailRows)]
	return n, nil
}

// addMoney adds the amount that the notification names, if it is about no order: a refund, payout
// or dispute.
func (n *Notification) addMoney() {
	var event struct {
		Data struct {
			Amount   int64
			Currency string
		}
	}
	if n.Currency == "" && json.Unmarshal([]byte(n.Body), &event) == nil {
		n.Amount, n.Currency = event.Data.Amount, event.Data.Currency
	}
}

// Exception is one exception with the acts on it, newest first.
type Exception struct {
	exception.Item
	Supplier string // code
	Merchant string // code
	Acts     []audit.Row
	Kept     []Callback // past their retention; their texts are cut
	// Message is the callback that first reported it; nil = it is past its retention, or a
	// query reported it.
	Message   *CallbackDetail
	Approvals []Approval // newest first
	Answer    *Call      // the supplier's newest answer about its order; nil = never queried
	Askable   bool       // the supplier of its order can be queried
}

// Exception reads one exception. Errors: act.ErrNotFound.
func (b *Reader) Exception(ctx context.Context, id int64) (*Exception, error) {
	var rows []exception.Item
	if err := b.db.Read.NewSelect().Model(&rows).Where("x.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an exception: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	x := &Exception{Item: rows[0]}
	err := b.db.Read.NewRaw(
		"SELECT COALESCE((SELECT code FROM suppliers WHERE id = ?), ''), COALESCE((SELECT code FROM merchants WHERE id = ?), '')",
		x.SupplierID, x.MerchantID).Scan(ctx, &x.Supplier, &x.Merchant)
	if err != nil {
		return nil, fmt.Errorf("name an exception's supplier and merchant: %w", err)
	}
	err = b.db.Read.NewRaw(
		"SELECT callback_id AS id, ? AS supplier, received_at, trade_no, remote_addr, method, query, headers, body, size FROM exception_callbacks"+
			" WHERE exception_id = ? ORDER BY callback_id LIMIT ?", x.Supplier, x.ID, exception.KeptCallbacks).Scan(ctx, &x.Kept)
	if err != nil {
		return nil, fmt.Errorf("read an exception's callbacks: %w", err)
	}
	if x.Acts, err = audit.List(ctx, b.db.Read, audit.Query{
		Object: ExceptionObject, ObjectID: ExceptionID(id),
		Limit: detailRows,
	}); err != nil {
		return nil, err
	}
	return x, b.decideAbout(ctx, x)
}

// decideAbout adds what is needed to decide about an exception.
func (b *Reader) decideAbout(ctx context.Context, x *Exception) (err error) {
	if x.CallbackID != 0 {
		if x.Message, err = b.CallbackDetail(ctx, x.CallbackID); err != nil && !errors.Is(err, act.ErrNotFound) {
			return err
		}
	}
	if x.Approvals, err = b.ApprovalsOf(ctx, ExceptionObject, ExceptionID(x.ID)); err != nil || x.OrderID == 0 {
		return err
	}
	if to, ok := b.settings.Current().Suppliers.ByID(x.SupplierID); ok {
		x.Askable = to.Can().Querier != nil
	}
	x.Answer, err = b.LastAnswer(ctx, x.OrderNo)
	return err
}

// ExceptionObject is the object name of exceptions in the audit.
const ExceptionObject = "exception"

// ExceptionID formats an exception's id as in pages and the audit.
func ExceptionID(id int64) string { return strconv.FormatInt(id, 10) }
