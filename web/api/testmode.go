package api

import (
	"time"

	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/testmode"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

type playedView struct {
	OrderNo   string         `json:"order_no"`
	Status    string         `json:"status" doc:"of the order, afterwards"`
	Callbacks []answeredView `json:"callbacks"`
	LateAt    *string        `json:"late_at" doc:"when a late payment will be made"`
}

type answeredView struct {
	Status  int    `json:"status"`
	Outcome string `json:"outcome"`
	Body    string `json:"body"`
}

// playPayment has the sandbox pay an order of the calling merchant. Outside of test mode there is no sandbox.
func (s *handlers) playPayment(c *fiber.Ctx) error {
	if s.Sandbox == nil {
		return testmode.ErrLive
	}
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
