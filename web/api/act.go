package api

import (
	"encoding/json"
	"net/http"

	"backstop/internal/act"
	"backstop/internal/base/field"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// onAct is the route of an act: its body has the reason and the parameters that the Kind declares.
func (s *handlers) onAct(r web.ActRoute) web.Route {
	k := s.Acts.Kind(r.Kind)
	read := r.Read
	if read == nil {
		read = func(c *fiber.Ctx, call *act.Call) error { return readAct(c, k, call) }
	}
	return web.Route{
		Method: http.MethodPost, Path: r.Path, Audience: web.ForMonitor, Scope: k.Scope, Permission: k.Permission, Person: k.Scope == "",
		Answer: r.Answer,
		Handler: func(c *fiber.Ctx) error {
			var call act.Call
			var err error
			if r.Ref != nil {
				if call.Ref, err = r.Ref(c); err != nil {
					return err
				}
			}
			if err := read(c, &call); err != nil {
				return err
			}
			done, err := s.Run(c, r, call)
			if err != nil {
				return err
			}
			return r.Then(c, done)
		},
	}
}

// Limits that are longer than any reason or text allowed: the act reports the actual ones.
const (
	maxReason = 10_000
	maxText   = 16_000
)

// readAct reads the body of an act. It may be empty if no parameter is required.
func readAct(c *fiber.Ctx, k act.Kind, call *act.Call) error {
	open := readOptional
	var known []string
	for _, p := range k.Params.Fields {
		known = append(known, p.Name)
		if p.Required {
			open = func(c *fiber.Ctx, known ...string) (*form, error) { return readForm(c.Request().Body(), known...) }
		}
	}
	if !k.Easy {
		known = append(known, "reason")
	}
	f, err := open(c, known...)
	if err != nil {
		return err
	}
	call.Reason = f.text("reason", false, maxReason)
	values := map[string]any{}
	for _, p := range k.Params.Fields {
		raw, given := f.raw(p.Name, p.Required)
		switch {
		case !given:
		case p.Kind == field.Number || p.Kind == field.Money:
			values[p.Name] = f.number(p.Name, p.Required, p.Min, p.Max)
		case p.Kind == field.Flag:
			values[p.Name] = f.flag(p.Name)
		case p.Kind == field.List || p.Kind == field.Object:
			values[p.Name] = raw
		default:
			values[p.Name] = f.text(p.Name, p.Required, maxText)
		}
	}
	if f.err != nil {
		return f.err
	}
	call.Params, err = json.Marshal(values)
	return err
}

// readOptional reads a body that may be empty if nothing in it is required.
func readOptional(c *fiber.Ctx, known ...string) (*form, error) {
	body := c.Request().Body()
	if len(body) == 0 {
		body = []byte("{}")
	}
	return readForm(body, known...)
}

// rowRef refers to the row whose id is in the path.
func rowRef(c *fiber.Ctx) (ref act.Ref, err error) {
	ref.Row, err = rowID(c)
	return ref, err
}

// byID refers to what has the name or number in the path.
func byID(read func(*fiber.Ctx) (string, error)) func(*fiber.Ctx) (act.Ref, error) {
	return func(c *fiber.Ctx) (ref act.Ref, err error) {
		ref.ID, err = read(c)
		return ref, err
	}
}
