package api

import (
	"net/http"
	"time"

	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/testmode"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// testRoutes are the routes that only test mode has; docs/testmode.md describes them.
func (s *handlers) testRoutes() []web.Route {
	if s.Sandbox == nil {
		return nil
	}
	return []web.Route{{
		Method: http.MethodPost, Path: "/api/v1/test/orders/:order_no/:scenario", Audience: web.ForMerchant, Handler: s.playPayment,
	}}
}

type playedView struct {
	OrderNo   string         `json:"order_no"`
	Status    string         `json:"status"` // of the order, afterwards
	Callbacks []answeredView `json:"callbacks"`
	LateAt    *string        `json:"late_at"` // when a late payment will be made
}

type answeredView struct {
	Status  int    `json:"status"`
	Outcome string `json:"outcome"`
	Body    string `json:"body"`
}

// playPayment has the sandbox pay an order of the calling merchant.
func (s *handlers) playPayment(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	o, err := order.ByNo(c.UserContext(), s.DB.Read, no)
	if err != nil {
		return err
	}
	if o.MerchantID != web.MerchantOf(c).ID {
		return order.ErrNotFound
	}
	played, err := s.Sandbox.Play(c.UserContext(), o, testmode.Scenario(c.Params("scenario")))
	if err != nil {
		return err
	}
	if o, err = order.ByNo(c.UserContext(), s.DB.Read, no); err != nil {
		return err
	}
	return c.JSON(playedOf(o, played))
}

func playedOf(o *order.Order, played testmode.Played) playedView {
	v := playedView{OrderNo: o.OrderNo, Status: string(o.Status), Callbacks: []answeredView{}, LateAt: stampOf(played.At)}
	for _, a := range played.Answers {
		v.Callbacks = append(v.Callbacks, answeredView{a.Status, a.Outcome, a.Body})
	}
	return v
}

func stampOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	us := t.UnixMicro()
	return notify.StampOr(&us)
}
