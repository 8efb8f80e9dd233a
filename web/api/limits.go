package api

import (
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// limits are the routes that exist for callers who are limited to merchants, by path: all others are
// 404 for them. Lists filter by the caller's merchants, and acts check their subject.
func (s *handlers) limits() map[string]web.Limit {
	limits := map[string]web.Limit{
		"/api/v1/admin/orders/:order_no/query": web.OwnRow(s.Server, "SELECT merchant_id FROM orders WHERE order_no = ?", web.OrderNo),
		"/api/v1/admin/merchants/:code/ping":   web.OwnRow(s.Server, "SELECT id FROM merchants WHERE code = ?", ownCode),
	}
	for _, path := range []string{
		"/api/v1/admin/callbacks", compensationPath, "/api/v1/admin/supplier-calls", "/api/v1/admin/exceptions",
		"/api/v1/admin/refunds", "/api/v1/admin/payouts", "/api/v1/admin/disputes",
	} {
		limits[path] = web.ByHandler
	}
	return limits
}

func ownCode(c *fiber.Ctx) (string, error) { return c.Params("code"), nil }
