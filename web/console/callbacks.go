package console

import (
	"context"
	"net/http"
	"strconv"

	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) callbacks() listPage[callback.Row] {
	return listPage[callback.Row]{
		spec: console.CallbackList, read: s.Console.Callbacks, columns: orders.CallbackColumns,
		bars: s.Console.CallbackBars, barsBy: "supplier",
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []callback.Row) (templ.Component, error) {
			return orders.Callbacks(p, l, s.Config.PublicURL), nil
		},
	}
}

func (s *handlers) callbackPage(c *fiber.Ctx) error {
	detail, err := s.callback(c)
	if err != nil {
		return err
	}
	id := strconv.FormatInt(detail.ID, 10)
	u, err := s.masked(c, console.UnmaskCallback, id, "/callbacks/"+id)
	if err != nil {
		return err
	}
	detail.Mask()
	return s.Render(c, http.StatusOK, orders.CallbackPage(s.Page(c), detail, u))
}

func (s *handlers) unmaskCallback(c *fiber.Ctx, done web.Acted) error {
	return s.unmasked(c, done, "/callbacks/"+strconv.FormatInt(done.Ref.Row, 10), func(u panel.Unmask) error {
		detail, err := s.callback(c)
		if err != nil {
			return err
		}
		return s.Render(c, http.StatusOK, orders.CallbackPage(s.Page(c), detail, u))
	})
}

// callback reads the callback that the path names.
func (s *handlers) callback(c *fiber.Ctx) (*console.CallbackDetail, error) {
	id, err := idOf(c, "callback")
	if err != nil {
		return nil, err
	}
	return s.Console.CallbackDetail(c.UserContext(), id)
}
