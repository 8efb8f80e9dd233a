package api

import (
	"net/http"

	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) refundRoutes() []web.Route {
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/api/v1/orders/:order_no/refunds", Audience: web.ForMerchant, Handler: s.createRefund,
			Request: refund.Request{}, Answer: refund.View{},
		},
		merchants("/api/v1/orders/:order_no/refunds", s.orderRefunds, nil, page[refund.View]{}),
		merchants("/api/v1/refunds/:refund_no", s.getRefund, nil, refund.View{}),
		{
			Method: http.MethodPost, Path: "/api/v1/refunds/:refund_no/cancel", Audience: web.ForMerchant, Handler: s.cancelRefund,
			Answer: refund.View{},
		},
		reads("/api/v1/admin/refunds", access.ViewOrders, s.listRefunds, refundsQuery{}, page[adminRefundView]{}),
	}
}

func (s *handlers) createRefund(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	r := requestOf[refund.Request](c)
	r.OrderNo = no
	made, created, err := s.Refunds.Create(c.UserContext(), web.MerchantOf(c), *r)
	if err != nil {
		return err
	}
	if created {
		c.Status(http.StatusCreated)
	}
	return c.JSON(s.Refunds.ViewOf(made))
}

func (s *handlers) orderRefunds(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	o, err := order.ByNo(c.UserContext(), s.DB.Read, no)
	if err == nil && o.MerchantID != web.MerchantOf(c).ID {
		err = order.ErrNotFound
	}
	if err != nil {
		return err
	}
	all, err := refund.OfOrder(c.UserContext(), s.DB.Read, o.ID)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(all, 0, s.Refunds.ViewOf))
}

func (s *handlers) getRefund(c *fiber.Ctx) error {
	no, err := web.RefundNo(c)
	if err != nil {
		return err
	}
	r, err := refund.ByNo(c.UserContext(), s.DB.Read, no)
	if err == nil && r.MerchantID != web.MerchantOf(c).ID {
		err = refund.ErrNotFound
	}
	if err != nil {
		return err
	}
	return c.JSON(s.Refunds.ViewOf(r))
}

func (s *handlers) cancelRefund(c *fiber.Ctx) error {
	no, err := web.RefundNo(c)
	if err != nil {
		return err
	}
	r, err := s.Refunds.Cancel(c.UserContext(), web.MerchantOf(c), no)
	if err != nil {
		return err
	}
	return c.JSON(s.Refunds.ViewOf(r))
}

// adminRefundView is a refund with the fields that only operators see.
type adminRefundView struct {
	refund.View
	Supplier string `json:"supplier"`
	Adopted  bool   `json:"adopted"` // made at the supplier itself
}

type refundsQuery struct {
	RefundNo string `query:"refund_no" doc:"The refund's number."`
	OrderNo  string `query:"order_no" doc:"The order's number."`
	codes
	State string `query:"state" doc:"The refund's status."`
	paging
}

func (refundsQuery) choices() map[string][]string {
	return map[string][]string{"state": refund.Moves.Words()}
}

func (s *handlers) listRefunds(c *fiber.Ctx) error {
	return listed(s, c, console.RefundList, s.Console.Refunds, func(r console.Refund) adminRefundView {
		return adminRefundView{View: s.Refunds.ViewOf(&r.Refund), Supplier: r.Supplier, Adopted: r.Adopted != ""}
	})
}
