package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

// searchPage finds what people hold in their hands: a number, its end, a code.
// One hit is opened at once.
func (s *Server) searchPage(c *fiber.Ctx) error {
	f := readFilter(c)
	q := strings.TrimSpace(f.text("q"))
	if f.err != nil {
		return f.err
	}
	if q == "" {
		return s.render(c, http.StatusOK, views.Search(s.page(c), "", nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.listTime)
	defer cancel()
	found, err := s.console.Search(ctx, q)
	if err != nil {
		return slow(ctx, err)
	}
	switch {
	case len(found.Orders) == 1 && len(found.Merchants) == 0:
		return c.Redirect("/orders/"+url.PathEscape(found.Orders[0].OrderNo), http.StatusSeeOther)
	case len(found.Orders) == 0 && len(found.Merchants) == 1 && !found.Exceptions:
		return c.Redirect("/orders?merchant="+url.QueryEscape(found.Merchants[0].Code), http.StatusSeeOther)
	case len(found.Orders) == 0 && len(found.Merchants) == 0 && found.Exceptions:
		return c.Redirect("/exceptions?no="+url.QueryEscape(q), http.StatusSeeOther)
	}
	return s.render(c, http.StatusOK, views.Search(s.page(c), q, found))
}
