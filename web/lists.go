package web

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/base/money"
	"backstop/internal/console"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) ordersPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "supplier", "amount", "risk")
	if amount := l.text("amount"); amount != "" && len(money.Sums(amount)) == 0 {
		l.blame("amount", "use an amount such as 3499.00 or 3499.00 CNY")
	}
	if l.err != nil {
		return l.err
	}
	want := console.OrderFilter{
		No: l.text("no"), Status: l.text("status"), Merchant: l.text("merchant"), Supplier: l.text("supplier"), Amount: l.text("amount"), Risk: l.text("risk"), Slice: l.span,
	}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.console.Orders(ctx, want)
	if err != nil {
		return slow(ctx, err)
	}
	if l.news {
		return sayNews(c, l, page)
	}
	if want.No != "" && len(page.Rows) == 1 && len(l.query.Values) == 1 {
		return c.Redirect("/orders/"+url.PathEscape(page.Rows[0].OrderNo), http.StatusSeeOther)
	}
	list, choices, err := decorate(ctx, l, page, "orders")
	if err != nil {
		return slow(ctx, err)
	}
	if want.Merchant == "" && want.No == "" && want.Risk == "" && want.Amount == "" {
		if list.Bars, err = s.callbackBars(ctx, want.Supplier, l.span); err != nil {
			return slow(ctx, err)
		}
	}
	return s.render(c, http.StatusOK, views.Orders(l.p, list, page.Rows, choices))
}

func (s *Server) callbacksPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "supplier", "outcome", "refused")
	if l.err != nil {
		return l.err
	}
	want := console.CallbackFilter{OrderNo: l.text("no"), Supplier: l.text("supplier"), Outcome: l.text("outcome"), Taken: l.text("refused") == "no", Slice: l.span}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.console.Callbacks(ctx, want)
	if err != nil {
		return slow(ctx, err)
	}
	if l.news {
		return sayNews(c, l, page)
	}
	list, choices, err := decorate(ctx, l, page, "callbacks", "refused_callbacks")
	if err != nil {
		return slow(ctx, err)
	}
	if want.OrderNo == "" {
		if list.Bars, err = s.callbackBars(ctx, want.Supplier, l.span); err != nil {
			return slow(ctx, err)
		}
	}
	return s.render(c, http.StatusOK, views.Callbacks(l.p, list, page.Rows, choices, s.o.Config.PublicURL))
}

func (s *Server) notificationsPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "type", "risk")
	if l.err != nil {
		return l.err
	}
	want := l.deliveryFilter()
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.console.Deliveries(ctx, want)
	if err != nil {
		return slow(ctx, err)
	}
	if l.news {
		return sayNews(c, l, page)
	}
	list, choices, err := decorate(ctx, l, page, "deliveries")
	if err != nil {
		return slow(ctx, err)
	}
	if want.OrderNo == "" && want.Risk == "" {
		if list.Bars, err = s.attemptBars(ctx, want.Merchant, l.span); err != nil {
			return slow(ctx, err)
		}
	}
	return s.render(c, http.StatusOK, views.Notifications(l.p, list, page.Rows, choices, s.policy.Allows(l.p.Role, access.ResendMany)))
}

// deliveryFilter is what the list of notifications is asked for.
func (l *listing) deliveryFilter() console.DeliveryFilter {
	return console.DeliveryFilter{
		OrderNo: l.text("no"), Status: l.text("status"), Merchant: l.text("merchant"), Type: l.text("type"), Risk: l.text("risk"), Slice: l.span,
	}
}

func (s *Server) exceptionsPage(c *fiber.Ctx) error {
	l := s.list(c, true, "no", "kind", "state", "risk")
	if l.err != nil {
		return l.err
	}
	want := console.ExceptionFilter{OrderNo: l.text("no"), Kind: l.text("kind"), State: l.text("state"), Risk: l.text("risk"), Slice: l.span}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.console.Exceptions(ctx, want)
	if err != nil {
		return slow(ctx, err)
	}
	if l.news {
		return sayNews(c, l, page)
	}
	list, _, err := decorate(ctx, l, page, "exceptions")
	if err != nil {
		return slow(ctx, err)
	}
	return s.render(c, http.StatusOK, views.Exceptions(l.p, list, page.Rows))
}

// decorate reads what stands around a list's rows, which come from the tables.
func decorate[T any](ctx context.Context, l *listing, page console.Page[T], tables ...string) (views.List, views.Choices, error) {
	list := around(l, page)
	list.Anything = !list.Empty
	for _, table := range tables {
		if list.Anything {
			break
		}
		there, err := l.s.console.Anything(ctx, table)
		if err != nil {
			return list, views.Choices{}, err
		}
		list.Anything = there
	}
	choices, err := l.s.choices(ctx)
	return list, choices, err
}

// callbackBars is what came of callbacks over a list's time; none of a supplier
// that does not exist.
func (s *Server) callbackBars(ctx context.Context, supplier string, span console.Slice) ([]console.Bar, error) {
	id := int64(0)
	if supplier != "" {
		var err error
		if id, err = s.console.SupplierID(ctx, supplier); err != nil || id == 0 {
			return nil, err
		}
	}
	return s.console.CallbackBars(ctx, id, span)
}

// attemptBars is what came of attempts over a list's time.
func (s *Server) attemptBars(ctx context.Context, merchant string, span console.Slice) ([]console.Bar, error) {
	id := int64(0)
	if merchant != "" {
		var err error
		if id, err = s.console.MerchantID(ctx, merchant); err != nil || id == 0 {
			return nil, err
		}
	}
	return s.console.AttemptBars(ctx, id, span)
}
