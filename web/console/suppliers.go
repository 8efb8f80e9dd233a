package console

import (
	"context"
	"net/http"

	"backstop/views/pages"

	"github.com/gofiber/fiber/v2"
)

// suppliersPage lists the suppliers.
func (s *handlers) suppliersPage(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), s.listTime)
	defer cancel()
	all, err := s.Console.Suppliers(ctx, s.Config.Timezone)
	if err != nil {
		return slow(ctx, err)
	}
	return s.Render(c, http.StatusOK, pages.Suppliers(s.Page(c), all))
}
