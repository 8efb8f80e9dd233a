package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/advance"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// act runs the act of a form once, however often the form is sent.
func (s *handlers) act(c *fiber.Ctx, call act.Call) (act.Outcome, error) {
	var err error
	if call.Key, err = formKey(c); err != nil {
		return act.Outcome{}, err
	}
	call.By, call.Reason = s.Actor(c), web.Field(c, "reason")
	return s.Acts.Run(c.UserContext(), call)
}

// formKey returns the key of a form, which takes effect once.
func formKey(c *fiber.Ctx) (string, error) {
	key := web.Field(c, "form_key")
	if key == "" {
		return "", web.Invalid("form_key", web.OpenAgain)
	}
	return key, nil
}

// actAndShow runs an act and redirects to a page that shows the result.
func (s *handlers) actAndShow(c *fiber.Ctx, page string, call act.Call) error {
	if _, err := s.act(c, call); err != nil {
		return err
	}
	return c.Redirect(page+"?"+doneQuery(c), http.StatusSeeOther)
}

// params encodes the parameters of an act.
func params(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic("console: " + err.Error()) // strings only
	}
	return raw
}

// done returns what the form in ?form= did, if it concerned this very subject or, if id is
// empty, one of this kind.
func (s *handlers) done(c *fiber.Ctx, object, id string) (*audit.Row, error) {
	return s.Acts.Done(c.UserContext(), c.Query("form"), object, id)
}

// doneQuery identifies the form to the page that shows its result.
func doneQuery(c *fiber.Ctx) string { return "form=" + url.QueryEscape(web.Field(c, "form_key")) }

// keepAct records in the audit what is not an act of the registry: a login, an export.
func (s *handlers) keepAct(c *fiber.Ctx, a audit.Act) error {
	a.Remote = s.Client(c).String()
	return s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error { return s.Audit.Write(ctx, tx, a) })
}

// note stores a note about an order.
func (s *handlers) note(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	err = s.actAndShow(c, orderPath(no), act.Call{Kind: order.NoteAct, Ref: act.Ref{ID: no}})
	if refused := s.refusedNote(c, err); refused != nil {
		return s.sendStory(c, http.StatusUnprocessableEntity, refused)
	}
	return err
}

// askSupplier queries the order's supplier now, and shows the order with the answer.
func (s *handlers) askSupplier(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	if err := s.ask(c, no); err != nil {
		return err
	}
	return c.Redirect(orderPath(no)+"?"+doneQuery(c), http.StatusSeeOther)
}

// askAboutException queries the supplier of the exception's order now, and shows the exception
// with the answer.
func (s *handlers) askAboutException(c *fiber.Ctx) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	x, err := s.Console.Exception(c.UserContext(), id)
	if err != nil {
		return err
	}
	if err := s.ask(c, x.OrderNo); err != nil {
		return err
	}
	return c.Redirect(exceptionPath(id), http.StatusSeeOther)
}

// ask queries the supplier of an order now. The answer has been confirmed when it returns.
func (s *handlers) ask(c *fiber.Ctx, no string) error {
	out, err := s.act(c, act.Call{Kind: advance.QueryAct, Ref: act.Ref{ID: no}})
	if err == nil && out.After != nil { // nil = the form was sent a second time
		_, err = out.After(c.UserContext())
	}
	if errors.Is(err, advance.ErrCannotAsk) {
		return &web.Error{Status: http.StatusConflict, Code: "cannot_be_asked", Message: advance.ErrCannotAsk.Error()}
	}
	return err
}

// resend resends one of the order's notifications. If the merchant's breaker holds it back, the
// operator chooses what to do.
func (s *handlers) resend(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	call := act.Call{
		Kind: notify.ResendAct, Ref: act.Ref{ID: no, Part: web.Field(c, "notification")},
		Params: params(map[string]any{"how": web.Field(c, "how")}),
	}
	if delivery := web.Field(c, "delivery"); delivery != "" {
		if call.Ref.Row, err = strconv.ParseInt(delivery, 10, 64); err != nil {
			return notify.ErrNoDelivery
		}
	}
	if _, err := s.act(c, call); err != nil {
		return err
	}
	return c.Redirect(orderPath(no), http.StatusSeeOther)
}

// resendNotification resends a notification from its own page, whatever it is about.
func (s *handlers) resendNotification(c *fiber.Ctx) error {
	delivery, err := strconv.ParseInt(web.Field(c, "delivery"), 10, 64)
	if err != nil {
		return notify.ErrNoDelivery
	}
	n, err := s.Console.Notification(c.UserContext(), c.Params("notification"), delivery)
	if err != nil {
		return err
	}
	return s.actAndShow(c, "/notifications/"+n.PublicID, act.Call{
		Kind: notify.ResendAct, Ref: act.Ref{Row: n.ID, Part: n.PublicID}, Params: params(map[string]any{"how": web.Field(c, "how")}),
	})
}

// onException runs an act on the exception in the path and redirects to it.
func (s *handlers) onException(c *fiber.Ctx, call act.Call) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	call.Ref.Row = id
	return s.actAndShow(c, exceptionPath(id), call)
}

func (s *handlers) commentException(c *fiber.Ctx) error {
	err := s.onException(c, act.Call{Kind: exception.NoteAct})
	if refused := s.refusedNote(c, err); refused != nil {
		return s.sendException(c, http.StatusUnprocessableEntity, refused)
	}
	return err
}

func (s *handlers) assignException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.AssignAct, Params: params(map[string]any{"to": web.Field(c, "person")})})
}

func (s *handlers) reopenException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.ReopenAct})
}
