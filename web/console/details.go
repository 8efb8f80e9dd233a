package console

import (
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/views/pages"
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
	id, err := idOf(c, "callback")
	if err != nil {
		return err
	}
	detail, err := s.Console.CallbackDetail(c.UserContext(), id)
	if err != nil {
		return err
	}
	masked := !s.Policy.Allows(web.Operator(c).Role, access.ViewPersonal)
	if masked {
		detail.Mask()
	}
	return s.Render(c, http.StatusOK, pages.CallbackPage(s.Page(c), detail, masked))
}

func (s *handlers) notificationPage(c *fiber.Ctx) error {
	delivery, err := strconv.ParseInt(c.Query("delivery", "0"), 10, 64)
	if err != nil {
		return notify.ErrNoDelivery
	}
	n, err := s.Console.Notification(c.UserContext(), c.Params("notification"), delivery)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	if !s.Policy.Allows(role, access.ViewPersonal) {
		n.Mask()
	}
	return s.Render(c, http.StatusOK, pages.NotificationPage(s.Page(c), pages.NotificationData{
		Notification: n, CanResend: s.Policy.Allows(role, access.Resend) && n.EventType != notify.Ping && !n.ToSubscriber,
		Key:        act.NewKey(),
		CanControl: s.Policy.Allows(role, access.ControlBreakers),
	}))
}

func (s *handlers) exceptionPage(c *fiber.Ctx) error { return s.sendException(c, http.StatusOK, nil) }

// sendException responds with an exception's page, with a note that was refused; nil = none was.
func (s *handlers) sendException(c *fiber.Ctx, status int, refused *pages.RefusedNote) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	x, err := s.Console.Exception(c.UserContext(), id)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	masked := !s.Policy.Allows(role, access.ViewPersonal)
	if masked {
		x.Mask()
	}
	did, err := s.done(c, console.ExceptionObject, console.ExceptionID(id))
	if err != nil {
		return err
	}
	may := func(p access.Permission) bool { return s.Policy.Allows(role, p) }
	data := pages.ExceptionData{
		Exception: x, Masked: masked, Saved: did != nil, Key: act.NewKey(), CanComment: may(access.Comment),
		CanAssign: may(access.AssignExceptions),
		CanReopen: !x.State.Open() && x.Reopens() && may(exception.ReopenPermission(&x.Item)), CanAsk: may(access.QueryOrders),
		CanRun:    may(access.RunCompensations),
		MayDecide: s.Policy.RolesWith(access.ProposeMoney), Refused: refused,
	}
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
	return s.Render(c, status, pages.ExceptionPage(s.Page(c), data))
}
