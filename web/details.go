package web

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
	"backstop/views"

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

func (s *Server) callbackPage(c *fiber.Ctx) error {
	id, err := idOf(c, "callback")
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	detail, err := s.console.CallbackDetail(ctx, id)
	if err != nil {
		return err
	}
	masked := !s.policy.Allows(operator(c).Role, access.ViewPersonal)
	if masked {
		detail.Mask()
	}
	return s.render(c, http.StatusOK, views.CallbackPage(s.page(c), detail, masked))
}

func (s *Server) notificationPage(c *fiber.Ctx) error {
	delivery, err := strconv.ParseInt(c.Query("delivery", "0"), 10, 64)
	if err != nil {
		return notify.ErrNoDelivery
	}
	ctx, cancel := work()
	defer cancel()
	n, err := s.console.Notification(ctx, c.Params("notification"), delivery)
	if err != nil {
		return err
	}
	role := operator(c).Role
	if !s.policy.Allows(role, access.ViewPersonal) {
		n.Mask()
	}
	return s.render(c, http.StatusOK, views.NotificationPage(s.page(c), views.NotificationData{
		Notification: n, CanResend: s.policy.Allows(role, access.Resend) && n.OrderNo != "" && !n.House, Key: newFormKey(),
		CanControl: s.policy.Allows(role, access.ControlBreakers),
	}))
}

func (s *Server) exceptionPage(c *fiber.Ctx) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	x, err := s.console.Exception(ctx, id)
	if err != nil {
		return err
	}
	role := operator(c).Role
	if !s.policy.Allows(role, access.ViewPersonal) {
		x.Mask()
	}
	did, err := s.done(ctx, c, console.ExceptionObject, console.ExceptionID(id))
	if err != nil {
		return err
	}
	data := views.ExceptionData{
		Exception: x, Saved: did != nil, Key: newFormKey(), CanComment: s.policy.Allows(role, access.Comment),
		CanAssign: s.policy.Allows(role, access.AssignExceptions), CanSettle: s.policy.Allows(role, settling(x.Kind)), MaySettle: s.policy.RolesWith(settling(x.Kind)),
	}
	if data.CanAssign {
		if data.People, err = s.assignable(ctx); err != nil {
			return err
		}
	}
	return s.render(c, http.StatusOK, views.ExceptionPage(s.page(c), data))
}

// assignable are the names of those who may take an exception in hand.
func (s *Server) assignable(ctx context.Context) (names []string, err error) {
	all, err := s.o.Operators.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, op := range all {
		if op.DisabledAt == nil && s.policy.Allows(op.Role, access.AssignExceptions) {
			names = append(names, op.Name)
		}
	}
	return names, nil
}

// onException runs an act about the exception of the path and leads back to it.
func (s *Server) onException(c *fiber.Ctx, action string, params map[string]any, reasoned bool, do func(context.Context, db.Tx, int64) error) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	ctx, cancel := work()
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
func (s *Server) commentException(c *fiber.Ctx) error {
	return s.onException(c, "exception.note", nil, true, func(ctx context.Context, _ db.Tx, id int64) error {
		_, err := s.console.Exception(ctx, id)
		return err
	})
}

func (s *Server) assignException(c *fiber.Ctx) error {
	person := field(c, "person")
	return s.onException(c, "exception.assign", map[string]any{"to": person}, false, func(ctx context.Context, tx db.Tx, id int64) error {
		names, err := s.assignable(ctx)
		if err != nil {
			return err
		}
		for _, name := range append(names, "") {
			if name == person {
				return compensation.Assign(ctx, tx, s.o.DB, id, person)
			}
		}
		return invalidField("person", "nobody of this name may take it in hand")
	})
}
