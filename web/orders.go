package web

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/console"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) ordersPage(c *fiber.Ctx) error {
	f := readFilter(c)
	want := console.OrderFilter{
		No: f.text("no"), Status: f.text("status"), Merchant: f.text("merchant"), Supplier: f.text("supplier"), Before: f.id("before"),
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	page, err := s.console.Orders(ctx, want)
	if err != nil {
		return err
	}
	if want.No != "" && len(page.Rows) == 1 && len(c.Queries()) == 1 {
		return c.Redirect("/orders/"+url.PathEscape(page.Rows[0].OrderNo), http.StatusSeeOther)
	}
	choices, err := s.choices(ctx)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, views.Orders(s.page(c), query(c), page, choices))
}

// choices are what the selects of lists offer.
func (s *Server) choices(ctx context.Context) (c views.Choices, err error) {
	if c.Merchants, err = s.console.Merchants(ctx); err != nil {
		return c, err
	}
	c.Suppliers, err = s.console.Suppliers(ctx)
	return c, err
}

// query is the list's filter as it stands in the address.
func query(c *fiber.Ctx) views.Query {
	q := views.Query{Path: c.Path(), Values: url.Values{}}
	for name, value := range c.Queries() {
		if name != "lang" {
			q.Values.Set(name, value)
		}
	}
	return q
}
