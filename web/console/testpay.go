package console

import (
	"net/http"

	"backstop/internal/order"
	"backstop/internal/testmode"
	"backstop/views/partners"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// testRoutes are the payment pages of test mode: for buyers, who sign in nowhere.
func (s *handlers) testRoutes() []web.Route {
	if s.Sandbox == nil {
		return nil
	}
	const path = testmode.PayPath + ":order_no"
	return []web.Route{
		{Method: http.MethodGet, Path: path, Audience: web.ForVisitor, Handler: s.testPayPage},
		{Method: http.MethodPost, Path: path, Audience: web.ForVisitor, Handler: s.testPay},
	}
}

func (s *handlers) testOrder(c *fiber.Ctx) (*order.Order, error) {
	no, err := web.OrderNo(c)
	if err != nil {
		return nil, err
	}
	return order.ByNo(c.UserContext(), s.DB.Read, no)
}

func (s *handlers) testPayPage(c *fiber.Ctx) error {
	o, err := s.testOrder(c)
	if err != nil {
		return err
	}
	return s.sendTestPay(c, o, nil)
}

// testPay makes the payment that a button asks for, and shows how its callbacks were answered.
func (s *handlers) testPay(c *fiber.Ctx) error {
	o, err := s.testOrder(c)
	if err != nil {
		return err
	}
	played, err := s.Sandbox.Play(c.UserContext(), o, testmode.Scenario(web.Field(c, "scenario")))
	if err != nil {
		return err
	}
	if o, err = order.ByNo(c.UserContext(), s.DB.Read, o.OrderNo); err != nil {
		return err
	}
	return s.sendTestPay(c, o, &played)
}

func (s *handlers) sendTestPay(c *fiber.Ctx, o *order.Order, played *testmode.Played) error {
	d := partners.TestPayData{Order: o, Played: played}
	if m := s.Settings.Merchants().ByID(o.MerchantID); m != nil {
		d.Merchant = m.Code
	}
	return s.Render(c, http.StatusOK, partners.TestPay(s.Page(c), d))
}
