package console

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Texts from outside are masked wherever they are shown: in lists for everybody, on detail
// pages for those without the permission to see them.

// MaskText hides personal data in a text from outside, for a log.
func MaskText(text string) string { return maskerOf().text(text) }

// MaskCall hides personal data in a request to a supplier or in its answer, except the given
// values. A request begins with a line with method and path.
func MaskCall(message []byte, keep ...string) []byte {
	m := maskerOf(keep...)
	head, body, cut := bytes.Cut(message, []byte("\n"))
	if !cut || !requestLine.Match(head) {
		if requestLine.Match(message) {
			return []byte(m.text(string(message)))
		}
		return m.body(message)
	}
	return slices.Concat([]byte(m.text(string(head))), []byte("\n"), m.body(bytes.TrimLeft(body, "\r\n")))
}

var requestLine = regexp.MustCompile(`^[A-Z]{3,7} [^\s]+`)

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
	o.Subject, o.NotifyURL = m.words(o.Subject), m.address(o.NotifyURL)
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
func (s *Story) MaskBody(c *Callback) { c.Body = s.masker().body(c.Body) }

func maskerOfOrder(o *order.Order) masker {
	return maskerOf(o.OrderNo, o.OutTradeNo, o.SupplierTradeNo)
}

// masker keeps the numbers of the order and of its callbacks.
func (s *Story) masker() masker {
	m := maskerOfOrder(s.Order)
	for _, item := range s.Items {
		if c := item.Callback; c != nil && c.TradeNo != "" {
			m.keep = append(m.keep, c.TradeNo)
		}
	}
	return m
}

// mask masks a callback; its own trade number is kept, too.
func (c *Callback) mask(m masker) {
	m.keep = append(m.keep[:len(m.keep):len(m.keep)], maskerOf(c.TradeNo).keep...)
	c.Body, c.Query, c.Headers = m.body(c.Body), m.form(c.Query), m.headers(c.Headers)
	c.Supplier = m.words(c.Supplier)
	m.steps(c.Steps)
}

// Mask hides personal data of the buyer.
func (c *CallbackDetail) Mask() { c.mask(maskerOf(c.OrderNo)) }

// Mask hides personal data in the merchant's responses.
func (n *Notification) Mask() {
	m := maskerOf(n.OrderNo)
	m.delivery(&n.Delivery.Delivery)
	for i := range n.Attempts {
		m.attempt(&n.Attempts[i])
	}
}

// Mask hides personal data copied from messages.
func (x *Exception) Mask() {
	MaskException(&x.Item)
	for i := range x.Kept {
		x.Kept[i].mask(maskerOf(x.OrderNo))
	}
	if x.Message != nil {
		x.Message.Mask()
	}
}

// MaskException masks what an exception copies from a message.
func MaskException(x *exception.Item) { maskerOf(x.OrderNo).exception(x) }

// MaskCallback masks what a list row copies from a callback.
func MaskCallback(r *callback.Row) {
	m := maskerOf(r.OrderNo)
	r.Supplier = m.words(r.Supplier)
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
	says.TradeNo, says.RawStatus = m.words(says.TradeNo), m.words(says.RawStatus)
	return says
}

// mask masks what a listed attempt copies.
func (a *Attempt) mask() {
	m := maskerOf(a.OrderNo)
	a.URL, a.Error = m.address(a.URL), m.text(a.Error)
}

func (m masker) attempt(a *notify.Attempt) {
	a.URL, a.Error = m.address(a.URL), m.text(a.Error)
	a.ResponseBody, a.ResponseHeader = m.body(a.ResponseBody), m.headers(a.ResponseHeader)
}

func (m masker) delivery(d *notify.Delivery) {
	d.URL, d.LastError = m.address(d.URL), m.text(d.LastError)
}

// address masks a URL and drops its parameters. The addresses of other channels are the
// merchant's own settings.
func (m masker) address(url string) string {
	if !strings.HasPrefix(url, "http") {
		return url
	}
	return m.text(notify.Shown(url))
}

// steps are our own sentences, which contain numbers from the message.
func (m masker) steps(steps []supplier.Step) {
	for i := range steps {
		steps[i].Detail, steps[i].Message = m.text(steps[i].Detail), steps[i].Message.Map(m.text)
	}
}

func (m masker) exception(x *exception.Item) {
	if len(x.Detail) == 0 {
		return
	}
	m.ours = true
	masked, err := m.json(x.Detail, false)
	if err != nil {
		masked, _ = json.Marshal(hidden)
	}
	x.Detail = masked
}

// maskSubjects hides personal data in the subjects of orders.
func maskSubjects(rows []Order) {
	for i := range rows {
		rows[i].Subject = maskerOf(rows[i].OrderNo, rows[i].OutTradeNo).words(rows[i].Subject)
	}
}
