package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/mask"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Texts from outside are masked wherever they are shown: in lists for everybody, on detail
// pages for those without the permission to see them.

// masker masks what this package copies from messages.
type masker struct{ mask.Masker }

func maskerOf(keep ...string) masker { return masker{mask.Of(keep...)} }

// MaskText masks a sentence of ours, of an operator, or of a log.
func MaskText(text string) string { return mask.Of().Sentence(text) }

// Mask hides personal data in all texts of the history.
func (s *Story) Mask() {
	m := maskerOfOrder(s.Order)
	for _, item := range s.Items {
		if c := item.Callback; c != nil {
			c.mask(m)
		}
	}
	m = s.masker()
	o := *s.Order
	o.Subject, o.NotifyURL = m.Sentence(o.Subject), m.address(o.NotifyURL)
	s.Order = &o
	for _, item := range s.Items {
		if a := item.Attempt; a != nil {
			m.attempt(a)
		}
	}
	for i := range s.Exceptions {
		m.exception(&s.Exceptions[i])
	}
	for i := range s.Deliveries {
		m.delivery(&s.Deliveries[i])
	}
}

// MaskBody masks a body that was read later.
func (s *Story) MaskBody(c *Callback) { c.Body = s.masker().Body(c.Body) }

func maskerOfOrder(o *order.Order) masker {
	return maskerOf(o.OrderNo, o.OutTradeNo, o.SupplierTradeNo)
}

// masker keeps the numbers of the order and of its callbacks.
func (s *Story) masker() masker {
	m := maskerOfOrder(s.Order)
	for _, item := range s.Items {
		if c := item.Callback; c != nil && c.TradeNo != "" {
			m.Keep = append(m.Keep, c.TradeNo)
		}
	}
	return m
}

// mask masks a callback; its own trade number is kept, too.
func (c *Callback) mask(m masker) {
	m.Keep = append(m.Keep[:len(m.Keep):len(m.Keep)], maskerOf(c.TradeNo).Keep...)
	c.Body, c.Query, c.Headers = m.Body(c.Body), m.Form(c.Query), m.Headers(c.Headers)
	c.Supplier = m.Words(c.Supplier)
	m.steps(c.Steps)
}

// MaskException masks what an exception copies from a message.
func MaskException(x *exception.Item) { maskerOf(x.OrderNo).exception(x) }

// MaskCallback masks what a list row copies from a callback.
func MaskCallback(r *callback.Row) {
	m := maskerOf(r.OrderNo)
	r.Supplier = m.Words(r.Supplier)
	m.steps(r.Steps)
}

// MaskFinding masks what was found in a callback, and returns what it says, masked. The reference
// of an order is no personal data.
func MaskFinding(f *callback.Finding) (says supplier.Callback) {
	ref := ""
	if f.Content != nil {
		says, ref = *f.Content, f.Content.OrderRef
	}
	m := maskerOf(ref)
	m.steps(f.Steps)
	says.TradeNo, says.RawStatus = m.Words(says.TradeNo), m.Words(says.RawStatus)
	return says
}

// mask masks what a listed attempt copies.
func (a *Attempt) mask() {
	m := maskerOf(a.OrderNo)
	a.URL, a.Error = m.address(a.URL), m.Sentence(a.Error)
}

// MaskAttempt masks the answer to a ping, which is about no order.
func MaskAttempt(a *notify.Attempt) { maskerOf().attempt(a) }

func (m masker) attempt(a *notify.Attempt) {
	a.URL, a.Error = m.address(a.URL), m.Sentence(a.Error)
	a.ResponseBody, a.ResponseHeader = m.Body(a.ResponseBody), m.Headers(a.ResponseHeader)
}

func (m masker) delivery(d *notify.Delivery) {
	d.URL, d.LastError = m.address(d.URL), m.Sentence(d.LastError)
}

// address masks a URL and drops its parameters. The addresses of other channels are the
// merchant's own settings.
func (m masker) address(url string) string {
	if !strings.HasPrefix(url, "http") {
		return url
	}
	return m.Text(notify.Shown(url))
}

// steps are our own sentences, which contain numbers from the message.
func (m masker) steps(steps []supplier.Step) {
	for i := range steps {
		steps[i].Detail, steps[i].Message = m.Sentence(steps[i].Detail), steps[i].Message.Map(m.Sentence)
	}
}

func (m masker) exception(x *exception.Item) {
	if len(x.Detail) == 0 {
		return
	}
	m.Ours = true
	masked, err := m.JSON(x.Detail, false)
	if err != nil {
		masked, _ = json.Marshal(mask.Hidden)
	}
	x.Detail = masked
}

// maskSubjects hides personal data in the subjects of orders.
func maskSubjects(rows []Order) {
	for i := range rows {
		rows[i].Subject = maskerOf(rows[i].OrderNo, rows[i].OutTradeNo).Sentence(rows[i].Subject)
	}
}

// Audit names of viewing what is masked.
const (
	UnmaskOrder        = "order.unmask"
	UnmaskCallback     = "callback.unmask"
	UnmaskNotification = "notification.unmask"
	UnmaskException    = "exception.unmask"
)

// UnmaskActs record that an operator viewed an object unmasked. They change nothing. Ref.ID is the
// number of an order or the public id of a notification, Ref.Row the id of the others.
var UnmaskActs = []act.Kind{
	{Name: UnmaskOrder, Object: "order", Permission: access.ViewPersonal, Load: order.Load},
	{Name: UnmaskCallback, Object: "callback", Permission: access.ViewPersonal, Load: loadCallbacks},
	{Name: UnmaskNotification, Object: "notification", Permission: access.ViewPersonal, Load: loadNotifications},
	{Name: UnmaskException, Object: ExceptionObject, Permission: access.ViewPersonal, Load: exception.Load},
}

// loadCallbacks finds callbacks, also refused ones, by id.
func loadCallbacks(ctx context.Context, q bun.IDB, refs []act.Ref) (subjects []act.Subject, err error) {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = r.Row
	}
	var rows []struct {
		ID         int64
		OrderNo    string
		MerchantID int64
	}
	err = q.NewRaw("SELECT c.id, c.order_no, COALESCE(o.merchant_id, 0) AS merchant_id FROM callbacks AS c"+
		" LEFT JOIN orders AS o ON o.id = c.order_id WHERE c.id IN (?0)"+
		" UNION ALL SELECT id, '', 0 FROM refused_callbacks WHERE id IN (?0)", bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("find callbacks: %w", err)
	}
	for _, r := range rows {
		subjects = append(subjects, act.Subject{
			Row: r.ID, ID: strconv.FormatInt(r.ID, 10), MerchantID: r.MerchantID, OrderNo: r.OrderNo,
		})
	}
	return subjects, nil
}

// loadNotifications finds notifications by public id.
func loadNotifications(ctx context.Context, q bun.IDB, refs []act.Ref) (subjects []act.Subject, err error) {
	for _, r := range refs {
		event, err := notify.FindEvent(ctx, q, r.ID)
		if errors.Is(err, notify.ErrNoDelivery) {
			continue
		}
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, act.Subject{Row: event.ID, ID: r.ID, MerchantID: event.MerchantID})
	}
	return subjects, nil
}
