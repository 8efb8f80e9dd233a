package console

import (
	"strings"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// onException runs an act about the exception of the path and leads back to it.
func (s *handlers) onException(c *fiber.Ctx, call act.Call) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	call.Ref.Row = id
	return s.actAndLeadTo(c, "/exceptions/"+console.ExceptionID(id), call)
}

// commentException keeps what somebody has to say about an exception.
func (s *handlers) commentException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.NoteAct})
}

func (s *handlers) assignException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.AssignAct, Params: params(map[string]any{"to": web.Field(c, "person")})})
}

// settleException ends an exception; one about money by its amount, an outcome and
// a reference.
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

// reopenException opens an exception again that was ended.
func (s *handlers) reopenException(c *fiber.Ctx) error {
	return s.onException(c, act.Call{Kind: exception.ReopenAct})
}
