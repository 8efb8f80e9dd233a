package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// searchPage searches for what operators have at hand: a number, the end of one, a code. A
// single hit is opened at once.
func (s *handlers) searchPage(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	q := strings.TrimSpace(f.Text("q"))
	if f.Err != nil {
		return f.Err
	}
	if q == "" {
		return s.Render(c, http.StatusOK, pages.Search(s.Page(c), "", nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.listTime)
	defer cancel()
	found, err := s.Console.Search(ctx, q)
	if err != nil {
		return slow(ctx, err)
	}
	orders, merchants := len(found.Orders), len(found.Merchants)
	switch {
	case orders == 1 && merchants == 0:
		return c.Redirect(orderPath(found.Orders[0].OrderNo), http.StatusSeeOther)
	case orders == 0 && merchants == 1 && !found.Exceptions:
		return c.Redirect("/orders?merchant="+url.QueryEscape(found.Merchants[0].Code), http.StatusSeeOther)
	case orders == 0 && merchants == 0 && found.Exceptions:
		return c.Redirect("/exceptions?no="+url.QueryEscape(q), http.StatusSeeOther)
	case orders == 0 && merchants == 0 && found.Amount && !console.IsEnding(q):
		return s.searchAmount(ctx, c, q)
	}
	return s.Render(c, http.StatusOK, pages.Search(s.Page(c), q, found))
}

// searchAmount opens the only order with an amount, or the list of orders.
func (s *handlers) searchAmount(ctx context.Context, c *fiber.Ctx, q string) error {
	span := list.Slice{From: s.DB.NowTime().AddDate(0, 0, -31).UnixMicro(), Rows: 1, Uncounted: true}
	page, err := s.Console.Orders(ctx, list.Query{Spec: console.OrderList, Scope: list.All()}.With("amount", q), span)
	if err != nil {
		return slow(ctx, err)
	}
	if len(page.Rows) == 1 && page.Older == (list.Cursor{}) {
		return c.Redirect(orderPath(page.Rows[0].OrderNo), http.StatusSeeOther)
	}
	return c.Redirect(ui.AmountLink(q), http.StatusSeeOther)
}
