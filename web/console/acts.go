package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/field"
	"backstop/internal/base/text"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// onAct is the route of an act of operators: its form has a key, the reason, and the parameters that
// the Kind declares.
func (s *handlers) onAct(r web.ActRoute) web.Route {
	k := s.Acts.Kind(r.Kind)
	return web.Route{
		Method: http.MethodPost, Path: r.Path, Audience: web.ForOperator, Permission: k.Permission,
		Handler: func(c *fiber.Ctx) error {
			call := act.Call{Reason: web.Field(c, "reason"), Amount: strings.TrimSpace(web.Field(c, "amount"))}
			var err error
			if call.Key, err = formKey(c); err != nil {
				return err
			}
			if r.Ref != nil {
				if call.Ref, err = r.Ref(c); err != nil {
					return err
				}
			}
			if r.Read != nil {
				err = r.Read(c, &call)
			} else {
				call.Params, err = formParams(c, "", k.Params.Fields, nil)
			}
			if err != nil {
				return err
			}
			if k.Fresh {
				if err := s.fresh(c); err != nil {
					return err
				}
			}
			done, err := s.Run(c, r, call)
			if err != nil {
				return err
			}
			if r.Then != nil {
				return r.Then(c, done)
			}
			return showDone(c, r.Back(done.Ref))
		},
	}
}

// showDone leads to the page that shows what the form did.
func showDone(c *fiber.Ctx, page string) error {
	with := "?"
	if strings.Contains(page, "?") {
		with = "&"
	}
	return c.Redirect(page+with+"form="+url.QueryEscape(web.Field(c, "form_key")), http.StatusSeeOther)
}

var tWholeNumber = text.Text{ZH: "请填整数", EN: "use a whole number"}

// formParams reads parameters from the fields of a form, whose names begin with prefix. money
// reads one of Money.
func formParams(c *fiber.Ctx, prefix string, fields []field.Field, money func() (int64, error)) (json.RawMessage, error) {
	values := map[string]any{}
	for _, f := range fields {
		name := prefix + f.Name
		text := web.Field(c, name)
		switch {
		case f.Kind == field.Money:
			minor, err := money()
			if err != nil {
				return nil, err
			}
			values[f.Name] = minor
		case !c.Request().PostArgs().Has(name), f.Kind == field.Flag && text == "":
		case f.Kind == field.Flag:
			values[f.Name] = text != "no"
		case f.Kind == field.Number:
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return nil, web.Invalid(name, tWholeNumber)
			}
			values[f.Name] = n
		default: // of several checkboxes, what is checked
			all := bytes.Join(c.Request().PostArgs().PeekMulti(name), []byte(","))
			values[f.Name] = strings.TrimSpace(strings.ReplaceAll(string(all), "\r\n", "\n"))
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic("console: " + err.Error()) // texts, numbers and flags only
	}
	return raw, nil
}

// formKey returns the key of a form, which takes effect once.
func formKey(c *fiber.Ctx) (string, error) {
	key := web.Field(c, "form_key")
	if key == "" {
		return "", web.Invalid("form_key", web.OpenAgain)
	}
	return key, nil
}

// done returns what the form in ?form= did, if it concerned this very subject or, if id is
// empty, one of this kind.
func (s *handlers) done(c *fiber.Ctx, object, id string) (*audit.Row, error) {
	return s.Acts.Done(c.UserContext(), c.Query("form"), object, id)
}

// keepAct records in the audit what is not an act of the registry: a login, an export.
func (s *handlers) keepAct(c *fiber.Ctx, a audit.Act) error {
	a.Remote = s.Client(c).String()
	return s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error { return s.Audit.Write(ctx, tx, a) })
}

// byRow refers to the row whose id is in the path.
func byRow(name string) func(*fiber.Ctx) (act.Ref, error) {
	return func(c *fiber.Ctx) (ref act.Ref, err error) {
		ref.Row, err = idOf(c, name)
		return ref, err
	}
}

// byID refers to what has the name or number in the path.
func byID(read func(*fiber.Ctx) (string, error)) func(*fiber.Ctx) (act.Ref, error) {
	return func(c *fiber.Ctx) (ref act.Ref, err error) {
		ref.ID, err = read(c)
		return ref, err
	}
}

// always refers to the one subject that there is.
func always(id string) func(*fiber.Ctx) (act.Ref, error) {
	return func(*fiber.Ctx) (act.Ref, error) { return act.Ref{ID: id}, nil }
}

// resendable refers to one of the order's notifications.
func resendable(c *fiber.Ctx) (act.Ref, error) {
	no, err := web.OrderNo(c)
	if err != nil {
		return act.Ref{}, err
	}
	ref := act.Ref{ID: no, Part: web.Field(c, "notification")}
	if delivery := web.Field(c, "delivery"); delivery != "" {
		if ref.Row, err = strconv.ParseInt(delivery, 10, 64); err != nil {
			return ref, notify.ErrNoDelivery
		}
	}
	return ref, nil
}

// showOrder leads to the order, which shows by itself what becomes of it.
func showOrder(c *fiber.Ctx, done web.Acted) error {
	return c.Redirect(orderPath(done.Ref.ID), http.StatusSeeOther)
}

// onPage is a page of its own, whatever the act is about.
func onPage(page string) func(act.Ref) string { return func(act.Ref) string { return page } }

// The pages of what acts are about.
func ofOrder(of act.Ref) string        { return orderPath(of.ID) }
func ofIncident(of act.Ref) string     { return incidentPath(of.Row) }
func ofException(of act.Ref) string    { return exceptionPath(of.Row) }
func ofNotification(of act.Ref) string { return "/notifications/" + of.Part }
func ofDispute(of act.Ref) string      { return disputePath(of.ID) }
func ofCompensation(of act.Ref) string { return "/compensations/" + strconv.FormatInt(of.Row, 10) }
func ofMerchant(of act.Ref) string     { return merchantPath(of.ID) }
func ofQueue(of act.Ref) string        { return "/queues/" + of.ID }
