package console

import (
	"net/http"

	"backstop/views/pages"

	"github.com/gofiber/fiber/v2"
)

// queuesPage shows the queues. It needs neither Redis nor Asynqmon.
func (s *handlers) queuesPage(c *fiber.Ctx) error {
	p := s.Page(c)
	q, err := s.Console.Queues(c.UserContext(), s.Queues)
	if err != nil {
		return err
	}
	flows, err := s.Console.QueueFlows(c.UserContext(), q)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.QueuesPage(p, q, flows, s.system(p)))
}
