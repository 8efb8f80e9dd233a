package console

import (
	"context"
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// idOf reads an id from the path; what is none leads nowhere.
func idOf(c *fiber.Ctx, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, console.ErrNotFound
	}
	return id, nil
}

func (s *handlers) callbackPage(c *fiber.Ctx) error {
	id, err := idOf(c, "callback")
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	detail, err := s.Console.CallbackDetail(ctx, id)
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
	ctx, cancel := web.Work()
	defer cancel()
	n, err := s.Console.Notification(ctx, c.Params("notification"), delivery)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	if !s.Policy.Allows(role, access.ViewPersonal) {
		n.Mask()
	}
	return s.Render(c, http.StatusOK, pages.NotificationPage(s.Page(c), pages.NotificationData{
		Notification: n, CanResend: s.Policy.Allows(role, access.Resend) && n.OrderNo != "" && !n.House, Key: newFormKey(),
		CanControl: s.Policy.Allows(role, access.ControlBreakers),
	}))
}

func (s *handlers) exceptionPage(c *fiber.Ctx) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	x, err := s.Console.Exception(ctx, id)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	if !s.Policy.Allows(role, access.ViewPersonal) {
		x.Mask()
	}
	did, err := s.done(ctx, c, console.ExceptionObject, console.ExceptionID(id))
	if err != nil {
		return err
	}
	data := pages.ExceptionData{
		Exception: x, Saved: did != nil, Key: newFormKey(), CanComment: s.Policy.Allows(role, access.Comment),
		CanAssign: s.Policy.Allows(role, access.AssignExceptions), CanSettle: s.Policy.Allows(role, settling(x.Kind)), MaySettle: s.Policy.RolesWith(settling(x.Kind)),
	}
	if data.CanAssign {
		if data.People, err = s.assignable(ctx); err != nil {
			return err
		}
	}
	return s.Render(c, http.StatusOK, pages.ExceptionPage(s.Page(c), data))
}

// assignable are the names of those who may take an exception in hand.
func (s *handlers) assignable(ctx context.Context) (names []string, err error) {
	all, err := s.Operators.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, op := range all {
		if op.DisabledAt == nil && s.Policy.Allows(op.Role, access.AssignExceptions) {
			names = append(names, op.Name)
		}
	}
	return names, nil
}

// onException runs an act about the exception of the path and leads back to it.
func (s *handlers) onException(c *fiber.Ctx, action string, params map[string]any, reasoned bool, do func(context.Context, db.Tx, int64) error) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	run := s.actPlainly
	if reasoned {
		run = s.act
	}
	act := audit.Act{Action: action, Object: console.ExceptionObject, ObjectID: console.ExceptionID(id), Params: params}
	_, err = run(ctx, c, act, func(ctx context.Context, tx db.Tx) error { return do(ctx, tx, id) })
	if err != nil {
		return err
	}
	return c.Redirect("/exceptions/"+console.ExceptionID(id)+"?"+doneQuery(c), http.StatusSeeOther)
}

// commentException keeps what somebody has to say about an exception.
func (s *handlers) commentException(c *fiber.Ctx) error {
	return s.onException(c, "exception.note", nil, true, func(ctx context.Context, _ db.Tx, id int64) error {
		_, err := s.Console.Exception(ctx, id)
		return err
	})
}

func (s *handlers) assignException(c *fiber.Ctx) error {
	person := web.Field(c, "person")
	return s.onException(c, "exception.assign", map[string]any{"to": person}, false, func(ctx context.Context, tx db.Tx, id int64) error {
		names, err := s.assignable(ctx)
		if err != nil {
			return err
		}
		for _, name := range append(names, "") {
			if name == person {
				return compensation.Assign(ctx, tx, s.DB, id, person)
			}
		}
		return web.InvalidField("person", "nobody of this name may take it in hand")
	})
}
