package console

import (
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// attentionPage shows what needs an operator, the most money first.
func (s *handlers) attentionPage(c *fiber.Ctx) error {
	p := s.Page(c)
	a, err := s.Console.Attention(c.UserContext())
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.AttentionPage(p, pages.NewAttention(a, s.system(p))))
}

// incidentPage shows one incident and what the operator may do about it.
func (s *handlers) incidentPage(c *fiber.Ctx) error {
	id, err := idOf(c, "incident")
	if err != nil {
		return err
	}
	x, err := s.Console.Incident(c.UserContext(), id)
	if err != nil {
		return err
	}
	data := pages.IncidentData{IncidentDetail: x, Key: act.NewKey(), CanHandle: s.Policy.Allows(web.Operator(c).Role, access.HandleAlerts)}
	if data.Did, err = s.done(c, alert.IncidentObject, strconv.FormatInt(id, 10)); err != nil {
		return err
	}
	if data.CanHandle {
		if data.People, err = s.Operators.WhoMay(c.UserContext(), s.Policy, access.HandleAlerts); err != nil {
			return err
		}
	}
	return s.Render(c, http.StatusOK, pages.IncidentPage(s.Page(c), data))
}

// onIncident runs an act on the incident in the path and shows it. All acts share one form, so
// each takes its own fields of it.
func (s *handlers) onIncident(kind string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := idOf(c, "incident")
		if err != nil {
			return err
		}
		call := act.Call{Kind: kind, Ref: act.Ref{Row: id}}
		switch kind {
		case alert.AssignAct:
			call.Params = params(map[string]any{"to": web.Field(c, "person")})
		case alert.SnoozeAct:
			call.Params = params(map[string]any{"for": web.Field(c, "for")})
		}
		return s.actAndShow(c, incidentPath(id), call)
	}
}

func incidentPath(id int64) string { return "/attention/" + strconv.FormatInt(id, 10) }

// runbookPage shows the operations manual.
func (s *handlers) runbookPage(c *fiber.Ctx) error {
	return s.Render(c, http.StatusOK, pages.Runbook(s.Page(c)))
}
