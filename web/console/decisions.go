package console

import (
	"errors"
	"net/http"

	"backstop/internal/act"
	"backstop/views/panel"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// localForms is where a request keeps the decisions that its page offers.
const localForms = "forms"

// decisions gives the pages of objects the forms of what may be decided about them, and adds the
// routes that propose it.
func (s *handlers) decisions(list []web.Route) []web.Route {
	for _, o := range web.Objects {
		permission := s.Proposes(o.Kind)
		if permission == "" {
			continue
		}
		for i, r := range list {
			if r.Path == o.Path || r.Path == o.Path+"/unmask" {
				list[i].Handler = s.offering(o, r.Handler)
			}
		}
		list = append(list, web.Route{
			Method: http.MethodPost, Path: o.Path + "/propose", Audience: web.ForOperator, Permission: permission,
			Handler: s.propose(o.Kind, o.No),
		})
	}
	return list
}

// offering reads what the viewer may propose about the object of a page, for Page.
func (s *handlers) offering(o web.Object, page fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if s.Actor(c).Merchants != nil { // proposing does not exist for them
			return page(c)
		}
		no, err := o.No(c)
		if err != nil {
			return err
		}
		about, offers, err := s.Approvals.OffersOf(c.UserContext(), s.Actor(c), o.Kind, no)
		if err != nil && !errors.Is(err, act.ErrNotFound) {
			return err
		}
		if len(offers) > 0 {
			c.Locals(localForms, &panel.DecisionForms{Action: o.At(no) + "/propose", Key: act.NewKey(), Subject: about, Offers: offers})
		}
		return page(c)
	}
}
