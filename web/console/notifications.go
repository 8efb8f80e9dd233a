package console

import (
	"context"
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) notifications() listPage[console.Delivery] {
	return listPage[console.Delivery]{
		spec: console.DeliveryList, read: s.Console.Deliveries, columns: orders.NotificationColumns,
		bars: s.Console.AttemptBars, barsBy: "merchant",
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []console.Delivery) (templ.Component, error) {
			return orders.Notifications(p, l, rows, s.Policy.Allows(p.Roles, access.ResendMany)), nil
		},
	}
}

func (s *handlers) notificationPage(c *fiber.Ctx) error {
	n, page, err := s.notification(c)
	if err != nil {
		return err
	}
	u, err := s.masked(c, console.UnmaskNotification, n.PublicID, page)
	if err != nil {
		return err
	}
	n.Mask()
	return s.sendNotification(c, n, u)
}

// notificationRef refers to the notification in the path.
func (s *handlers) notificationRef(c *fiber.Ctx) (act.Ref, error) {
	n, _, err := s.notification(c)
	if err != nil {
		return act.Ref{}, err
	}
	return act.Ref{ID: n.PublicID}, nil
}

func (s *handlers) unmaskNotification(c *fiber.Ctx, done web.Acted) error {
	n, page, err := s.notification(c)
	if err != nil {
		return err
	}
	return s.unmasked(c, done, page, func(u panel.Unmask) error { return s.sendNotification(c, n, u) })
}

// deliveryRef refers to a delivery of the notification in the path, whatever it is about.
func (s *handlers) deliveryRef(c *fiber.Ctx) (act.Ref, error) {
	delivery, err := strconv.ParseInt(web.Field(c, "delivery"), 10, 64)
	if err != nil {
		return act.Ref{}, notify.ErrNoDelivery
	}
	n, err := s.Console.Notification(c.UserContext(), c.Params("notification"), console.Which{Delivery: delivery})
	if err != nil {
		return act.Ref{}, err
	}
	return act.Ref{Row: n.ID, Part: n.PublicID}, nil
}

// notification reads the notification that the path names, and returns its page.
func (s *handlers) notification(c *fiber.Ctx) (n *console.Notification, page string, err error) {
	delivery, err := strconv.ParseInt(c.Query("delivery", "0"), 10, 64)
	if err != nil {
		return nil, "", notify.ErrNoDelivery
	}
	n, err = s.Console.Notification(c.UserContext(), c.Params("notification"), console.Which{Delivery: delivery})
	if err != nil {
		return nil, "", err
	}
	if page = "/notifications/" + n.PublicID; delivery != 0 {
		page += "?delivery=" + strconv.FormatInt(delivery, 10)
	}
	return n, page, nil
}

func (s *handlers) sendNotification(c *fiber.Ctx, n *console.Notification, u panel.Unmask) error {
	role := web.Operator(c).Roles
	return s.Render(c, http.StatusOK, orders.NotificationPage(s.Page(c), orders.NotificationData{
		Notification: n, Unmask: u, CanResend: s.Policy.Allows(role, access.Resend) && n.EventType != notify.Ping && !n.ToSubscriber,
		Key:        act.NewKey(),
		CanControl: s.Policy.Allows(role, access.ControlBreakers),
	}))
}
