package console

import (
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/work"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// idOf reads an id from the path. Errors: act.ErrNotFound.
func idOf(c *fiber.Ctx, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, act.ErrNotFound
	}
	return id, nil
}

func (s *handlers) callbackPage(c *fiber.Ctx) error {
	detail, err := s.callback(c)
	if err != nil {
		return err
	}
	id := strconv.FormatInt(detail.ID, 10)
	u, err := s.masked(c, console.UnmaskCallback, id, "/callbacks/"+id)
	if err != nil {
		return err
	}
	detail.Mask()
	return s.Render(c, http.StatusOK, orders.CallbackPage(s.Page(c), detail, u))
}

func (s *handlers) unmaskCallback(c *fiber.Ctx) error {
	detail, err := s.callback(c)
	if err != nil {
		return err
	}
	page := "/callbacks/" + strconv.FormatInt(detail.ID, 10)
	return s.unmasked(c, console.UnmaskCallback, act.Ref{Row: detail.ID}, page, func(u panel.Unmask) error {
		return s.Render(c, http.StatusOK, orders.CallbackPage(s.Page(c), detail, u))
	})
}

// callback reads the callback that the path names.
func (s *handlers) callback(c *fiber.Ctx) (*console.CallbackDetail, error) {
	id, err := idOf(c, "callback")
	if err != nil {
		return nil, err
	}
	return s.Console.CallbackDetail(c.UserContext(), id)
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

func (s *handlers) unmaskNotification(c *fiber.Ctx) error {
	n, page, err := s.notification(c)
	if err != nil {
		return err
	}
	return s.unmasked(c, console.UnmaskNotification, act.Ref{ID: n.PublicID}, page, func(u panel.Unmask) error {
		return s.sendNotification(c, n, u)
	})
}

// notification reads the notification that the path names, and returns its page.
func (s *handlers) notification(c *fiber.Ctx) (n *console.Notification, page string, err error) {
	delivery, err := strconv.ParseInt(c.Query("delivery", "0"), 10, 64)
	if err != nil {
		return nil, "", notify.ErrNoDelivery
	}
	n, err = s.Console.Notification(c.UserContext(), c.Params("notification"), delivery)
	if err != nil {
		return nil, "", err
	}
	if page = "/notifications/" + n.PublicID; delivery != 0 {
		page += "?delivery=" + strconv.FormatInt(delivery, 10)
	}
	return n, page, nil
}

func (s *handlers) sendNotification(c *fiber.Ctx, n *console.Notification, u panel.Unmask) error {
	role := web.Operator(c).Role
	return s.Render(c, http.StatusOK, orders.NotificationPage(s.Page(c), orders.NotificationData{
		Notification: n, Unmask: u, CanResend: s.Policy.Allows(role, access.Resend) && n.EventType != notify.Ping && !n.ToSubscriber,
		Key:        act.NewKey(),
		CanControl: s.Policy.Allows(role, access.ControlBreakers),
	}))
}

func (s *handlers) exceptionPage(c *fiber.Ctx) error { return s.sendException(c, http.StatusOK, nil) }

func (s *handlers) unmaskException(c *fiber.Ctx) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	return s.unmasked(c, console.UnmaskException, act.Ref{Row: id}, exceptionPath(id), func(u panel.Unmask) error {
		x, err := s.Console.Exception(c.UserContext(), id)
		if err != nil {
			return err
		}
		return s.showException(c, http.StatusOK, work.ExceptionData{Exception: x, Unmask: u})
	})
}

// sendException responds with an exception's page, with a note that was refused; nil = none was.
func (s *handlers) sendException(c *fiber.Ctx, status int, refused *panel.RefusedNote) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	x, err := s.Console.Exception(c.UserContext(), id)
	if err != nil {
		return err
	}
	x.Mask()
	u, err := s.masked(c, console.UnmaskException, console.ExceptionID(id), exceptionPath(id))
	if err != nil {
		return err
	}
	return s.showException(c, status, work.ExceptionData{Exception: x, Unmask: u, Refused: refused})
}

// showException adds to an exception what its reader may do, and responds with the page.
func (s *handlers) showException(c *fiber.Ctx, status int, data work.ExceptionData) error {
	x, role := data.Exception, web.Operator(c).Role
	id := x.ID
	did, err := s.done(c, console.ExceptionObject, console.ExceptionID(id))
	if err != nil {
		return err
	}
	may := func(p access.Permission) bool { return s.Policy.Allows(role, p) }
	data.Saved, data.Key, data.CanComment = did != nil && !data.Unmask.Done, act.NewKey(), may(access.Comment)
	data.CanAssign, data.CanAsk, data.CanRun = may(access.AssignExceptions), may(access.QueryOrders), may(access.RunCompensations)
	data.CanReopen = !x.State.Open() && x.Reopens() && may(exception.ReopenPermission(&x.Item))
	data.MayDecide = s.Policy.RolesWith(access.ProposeMoney)
	if data.Colleagues, err = s.mentionable(c, access.ViewExceptions); err != nil {
		return err
	}
	if data.Decided, data.Offers, err = s.Approvals.OffersOf(c.UserContext(), s.Actor(c), console.ExceptionObject,
		console.ExceptionID(id)); err != nil {
		return err
	}
	if data.CanAssign {
		if data.People, err = s.Operators.WhoMay(c.UserContext(), s.Policy, access.AssignExceptions); err != nil {
			return err
		}
	}
	return s.Render(c, status, work.ExceptionPage(s.Page(c), data))
}
