package console

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/base/money"
	"backstop/internal/console"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) ordersPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "supplier", "amount", "risk")
	if amount := l.Text("amount"); amount != "" && len(money.Sums(amount)) == 0 {
		l.Blame("amount", "use an amount such as 3499.00 or 3499.00 CNY")
	}
	if l.Err != nil {
		return l.Err
	}
	want := console.OrderFilter{
		No: l.Text("no"), Status: l.Text("status"), Merchant: l.Text("merchant"), Supplier: l.Text("supplier"), Amount: l.Text("amount"), Risk: l.Text("risk"), Slice: l.span,
	}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.Console.Orders(ctx, want)
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
	return s.Render(c, http.StatusOK, pages.Orders(l.p, list, page.Rows, choices))
}

func (s *handlers) callbacksPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "supplier", "outcome", "refused")
	if l.Err != nil {
		return l.Err
	}
	want := console.CallbackFilter{OrderNo: l.Text("no"), Supplier: l.Text("supplier"), Outcome: l.Text("outcome"), Taken: l.Text("refused") == "no", Slice: l.span}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.Console.Callbacks(ctx, want)
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
	return s.Render(c, http.StatusOK, pages.Callbacks(l.p, list, page.Rows, choices, s.Config.PublicURL))
}

func (s *handlers) notificationsPage(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "type", "risk")
	if l.Err != nil {
		return l.Err
	}
	want := l.deliveryFilter()
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.Console.Deliveries(ctx, want)
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
	return s.Render(c, http.StatusOK, pages.Notifications(l.p, list, page.Rows, choices, s.Policy.Allows(l.p.Role, access.ResendMany)))
}

// deliveryFilter is what the list of notifications is asked for.
func (l *listing) deliveryFilter() console.DeliveryFilter {
	return console.DeliveryFilter{
		OrderNo: l.Text("no"), Status: l.Text("status"), Merchant: l.Text("merchant"), Type: l.Text("type"), Risk: l.Text("risk"), Slice: l.span,
	}
}

func (s *handlers) exceptionsPage(c *fiber.Ctx) error {
	l := s.list(c, true, "no", "kind", "state", "risk")
	if l.Err != nil {
		return l.Err
	}
	want := console.ExceptionFilter{OrderNo: l.Text("no"), Kind: l.Text("kind"), State: l.Text("state"), Risk: l.Text("risk"), Slice: l.span}
	ctx, cancel := l.context()
	defer cancel()
	page, err := s.Console.Exceptions(ctx, want)
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
	return s.Render(c, http.StatusOK, pages.Exceptions(l.p, list, page.Rows))
}

// decorate reads what stands around a list's rows, which come from the tables.
func decorate[T any](ctx context.Context, l *listing, page console.Page[T], tables ...string) (ui.List, pages.Choices, error) {
	list := around(l, page)
	list.Anything = !list.Empty
	for _, table := range tables {
		if list.Anything {
			break
		}
		there, err := l.s.Console.Anything(ctx, table)
		if err != nil {
			return list, pages.Choices{}, err
		}
		list.Anything = there
	}
	choices, err := l.s.choices(ctx)
	return list, choices, err
}

// callbackBars is what came of callbacks over a list's time; none of a supplier
// that does not exist.
func (s *handlers) callbackBars(ctx context.Context, supplier string, span console.Slice) ([]console.Bar, error) {
	id := int64(0)
	if supplier != "" {
		var err error
		if id, err = s.Console.SupplierID(ctx, supplier); err != nil || id == 0 {
			return nil, err
		}
	}
	return s.Console.CallbackBars(ctx, id, span)
}

// attemptBars is what came of attempts over a list's time.
func (s *handlers) attemptBars(ctx context.Context, merchant string, span console.Slice) ([]console.Bar, error) {
	id := int64(0)
	if merchant != "" {
		var err error
		if id, err = s.Console.MerchantID(ctx, merchant); err != nil || id == 0 {
			return nil, err
		}
	}
	return s.Console.AttemptBars(ctx, id, span)
}
