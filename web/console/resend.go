package console

import (
	"net/http"
	"net/url"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// resend sends one of the order's notifications again. Where the merchant's breaker
// holds it back, the person chooses what becomes of that.
func (s *handlers) resend(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	call := act.Call{Kind: notify.ResendAct, Ref: act.Ref{ID: no, Part: web.Field(c, "notification")}, Params: params(map[string]any{"how": web.Field(c, "how")})}
	if named := web.Field(c, "delivery"); named != "" {
		if call.Ref.Row, err = strconv.ParseInt(named, 10, 64); err != nil {
			return notify.ErrNoDelivery
		}
	}
	ctx, cancel := web.Work()
	defer cancel()
	if _, err := s.act(ctx, c, call); err != nil {
		return err
	}
	return c.Redirect("/orders/"+url.PathEscape(no), http.StatusSeeOther)
}
