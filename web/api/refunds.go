package api

import (
	"net/http"

	"backstop/internal/access"
	"backstop/internal/base/money"
	"backstop/internal/console"
	"backstop/internal/fund/refund"
	"backstop/internal/list"
	"backstop/internal/order"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// maxRefundReason bounds the reason for a refund, in characters.
const maxRefundReason = 200

func (s *handlers) refundRoutes() []web.Route {
	return []web.Route{
		{Method: http.MethodPost, Path: "/api/v1/orders/:order_no/refunds", Audience: web.ForMerchant, Handler: s.createRefund},
		{Method: http.MethodGet, Path: "/api/v1/orders/:order_no/refunds", Audience: web.ForMerchant, Handler: s.orderRefunds},
		{Method: http.MethodGet, Path: "/api/v1/refunds/:refund_no", Audience: web.ForMerchant, Handler: s.getRefund},
		{Method: http.MethodPost, Path: "/api/v1/refunds/:refund_no/cancel", Audience: web.ForMerchant, Handler: s.cancelRefund},
		{
			Method: http.MethodGet, Path: "/api/v1/admin/refunds", Audience: web.ForMonitor, Scope: access.Monitor,
			Permission: access.ViewOrders, Handler: s.listRefunds,
		},
	}
}

func (s *handlers) createRefund(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	f, err := readForm(c.Request().Body(), "out_refund_no", "amount", "reason", "notify_url")
	if err != nil {
		return err
	}
	r := refund.Request{
		OrderNo: no, OutRefundNo: f.text("out_refund_no", true, maxOutTradeNo), Amount: f.number("amount", true, 1, money.MaxMinor),
		Reason: f.text("reason", true, maxRefundReason), NotifyURL: f.text("notify_url", false, maxURL),
	}
	if problem := badOutTradeNo(r.OutRefundNo); problem != "" {
		f.blame("out_refund_no", problem)
	}
	if f.err != nil {
		return f.err
	}
	made, created, err := s.Refunds.Ask(c.UserContext(), web.MerchantOf(c), r)
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

func (s *handlers) listRefunds(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("refund_no", "order_no", "supplier", "merchant", "state", "cursor", "limit")
	q := list.Query{Spec: console.RefundList, Scope: list.All()}.With("refund_no", f.Text("refund_no")).With("order_no",
		f.Text("order_no")).
		With("state", f.OneOf("state", refund.Moves.Words()))
	found, err := readCoded(s, c, f, q, sliceOf(f), s.Console.Refunds)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, func(r console.Refund) adminRefundView {
		return adminRefundView{View: s.Refunds.ViewOf(&r.Refund), Supplier: r.Supplier, Adopted: r.Adopted != ""}
	}))
}
