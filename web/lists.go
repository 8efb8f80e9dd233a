package web

import (
	"net/http"

	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) callbacksPage(c *fiber.Ctx) error {
	f := readFilter(c)
	want := callback.Query{
		OrderNo: f.text("no"), Supplier: f.text("supplier"), Outcome: f.text("outcome"), Refused: f.text("refused") != "no",
		Before: f.id("before"), Limit: console.PageSize,
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	rows, next, err := callback.List(ctx, s.o.DB.Read, want)
	if err != nil {
		return err
	}
	choices, err := s.choices(ctx)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, views.Callbacks(s.page(c), query(c), rows, next, choices, s.o.Config.PublicURL))
}

func (s *Server) notificationsPage(c *fiber.Ctx) error {
	f := readFilter(c)
	want := console.DeliveryFilter{
		OrderNo: f.text("no"), Status: f.text("status"), Merchant: f.text("merchant"), Type: f.text("type"), Before: f.id("before"),
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	page, err := s.console.Deliveries(ctx, want)
	if err != nil {
		return err
	}
	choices, err := s.choices(ctx)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, views.Notifications(s.page(c), query(c), page, choices))
}

func (s *Server) exceptionsPage(c *fiber.Ctx) error {
	f := readFilter(c)
	want := compensation.Query{
		OrderNo: f.text("no"), Kind: f.text("kind"), State: f.text("state"), Before: f.id("before"), Limit: console.PageSize,
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	items, next, err := compensation.List(ctx, s.o.DB.Read, want)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, views.Exceptions(s.page(c), query(c), items, next))
}
