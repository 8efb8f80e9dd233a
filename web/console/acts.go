package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// act runs the act of a form, once per form, however often it is sent.
func (s *handlers) act(c *fiber.Ctx, call act.Call) (act.Outcome, error) {
	if call.Key = web.Field(c, "form_key"); call.Key == "" {
		return act.Outcome{}, web.InvalidField("form_key", "open the page again and send the form from there")
	}
	call.By, call.Reason = s.Actor(c), web.Field(c, "reason")
	return s.Acts.Run(c.UserContext(), call)
}

// actAndShow runs an act and redirects to a page, which shows what was done.
func (s *handlers) actAndShow(c *fiber.Ctx, page string, call act.Call) error {
	if _, err := s.act(c, call); err != nil {
		return err
	}
	return c.Redirect(page+"?"+doneQuery(c), http.StatusSeeOther)
}

// params are the parameters of an act.
func params(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic("console: " + err.Error()) // texts only
	}
	return raw
}

// done is what the form of ?form= has done, if it was about this very subject, or about
// one of its kind where id is empty.
func (s *handlers) done(c *fiber.Ctx, object, id string) (*audit.Row, error) {
	return s.Acts.Done(c.UserContext(), c.Query("form"), object, id)
}

// doneQuery names the form to the page that shows what it has done.
func doneQuery(c *fiber.Ctx) string { return "form=" + url.QueryEscape(web.Field(c, "form_key")) }

// keepAct writes into the audit what is no act of the registry: a login, an export.
func (s *handlers) keepAct(c *fiber.Ctx, a audit.Act) error {
	a.Remote = s.Client(c).String()
	return s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error { return s.Audit.Write(ctx, tx, a) })
}

// note keeps a note about an order.
func (s *handlers) note(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	return s.actAndShow(c, orderPath(no), act.Call{Kind: order.NoteAct, Ref: act.Ref{ID: no}})
}

// resend sends one of the order's notifications again. Where the merchant's breaker
// holds it back, the operator chooses how it goes on.
func (s *handlers) resend(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	call := act.Call{Kind: notify.ResendAct, Ref: act.Ref{ID: no, Part: web.Field(c, "notification")}, Params: params(map[string]any{"how": web.Field(c, "how")})}
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

// onException runs an act on the exception of the path and redirects to it.
func (s *handlers) onException(c *fiber.Ctx, call act.Call) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	call.Ref.Row = id
	return s.actAndShow(c, "/exceptions/"+console.ExceptionID(id), call)
}

func (s *handlers) commentException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.NoteAct})
}

func (s *handlers) assignException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.AssignAct, Params: params(map[string]any{"to": web.Field(c, "person")})})
}

// settleException ends an exception; one about money by its amount, an outcome and a
// reference.
func (s *handlers) settleException(c *fiber.Ctx) error {
	call := act.Call{
		Kind: exception.SettleAct, Amount: strings.TrimSpace(web.Field(c, "amount")),
		Params: params(map[string]any{"outcome": web.Field(c, "outcome"), "reference": web.Field(c, "reference")}),
	}
	if web.Field(c, "ignore") != "" {
		call.Kind = exception.IgnoreAct
	}
	return s.onException(c, call)
}

func (s *handlers) reopenException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.ReopenAct})
}
