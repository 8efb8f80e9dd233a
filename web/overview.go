package web

import (
	"net/http"

	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) overview(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	o, err := s.console.Overview(ctx)
	if err != nil {
		return err
	}
	p := s.page(c)
	p.Live = true
	return s.render(c, http.StatusOK, views.Overview(p, views.OverviewData{
		Overview: o, Engine: s.o.QueueEngine, Database: s.o.DB.Engine(),
	}))
}
