package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"backstop/internal/act"
	"backstop/internal/base/field"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// onAct is the route of an act: its body has the reason and the parameters that the Kind declares.
func (s *handlers) onAct(r web.ActRoute) web.Route {
	k := s.Acts.Kind(r.Kind)
	request, read := r.Request, r.Read
	if request == nil {
		request, read = bodyOf(k), readAct
	}
	return web.Route{
		Method: http.MethodPost, Path: r.Path, Audience: web.ForMonitor, Scope: k.Scope, Permission: k.Permission, Person: k.Scope == "",
		Request: request, Answer: r.Answer,
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

// bodyOf returns the fields of an act's body: the parameters that its Kind declares, and the reason.
func bodyOf(k act.Kind) []field.Field {
	if k.NoReason {
		return k.Params.Fields
	}
	return append(slices.Clone(k.Params.Fields), field.Field{Name: reasonField, Kind: field.Line})
}

const reasonField = "reason"

// readAct takes over the body of an act. Its Kind checks the values.
func readAct(c *fiber.Ctx, call *act.Call) (err error) {
	values := *requestOf[map[string]any](c)
	call.Reason, _ = values[reasonField].(string)
	delete(values, reasonField)
	call.Params, err = json.Marshal(values)
	return err
}

// reasonRequest is the body of an act without parameters of its own.
type reasonRequest struct {
	Reason string `json:"reason" max:"10000"`
}

// noReason is recorded if a program gives no reason.
const noReason = "through the API, without a reason"

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
