package web

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"

	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/views"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *Server) overview(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	steps, err := s.console.FirstSteps(ctx)
	if err != nil {
		return err
	}
	p, r := s.page(c), console.RangeOf(c.Query("range"))
	p.Live = true
	system := s.system(p.Role)
	panels := map[string]templ.Component{}
	for _, t := range s.board.topics {
		draw, _, err := s.board.get(t, r)
		if err != nil {
			return err
		}
		panels[t.name] = draw(p, system)
	}
	return s.render(c, http.StatusOK, views.Overview(p, views.OverviewData{
		Range: r, Steps: steps, System: system, APIURL: s.o.Config.PublicURL, Example: example(), CallbackURL: s.o.Config.PublicURL + callbackPath,
		Risk: panels["risk"], Todo: panels["todo"], Outcomes: panels["outcomes"], Health: panels["merchants-health"], Queues: panels["queues"],
	}))
}

// example makes keys that nobody else has.
func example() views.Example {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return views.Example{
		SupplierKey: rand.Text(), APIKey: "sk_live_" + strings.ToLower(rand.Text()),
		SigningSecret: "whsec_" + base64.StdEncoding.EncodeToString(secret),
	}
}

// system is what the installation stands on, as far as a role may see it.
func (s *Server) system(role string) views.System {
	return views.System{Engine: s.o.QueueEngine, Database: s.o.DB.Engine(), Inspect: s.policy.Allows(role, access.InspectQueues), Alerts: s.policy.Allows(role, access.ViewAlerts)}
}

// panel answers one panel of the overview alone, and when it was drawn. Who comes
// by its address gets the whole page.
func (s *Server) panel(t topic) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := console.RangeOf(c.Query("range"))
		if c.Get("HX-Request") != "true" {
			return c.Redirect("/?range="+r.Name, http.StatusSeeOther)
		}
		draw, _, err := s.board.get(t, r)
		if err != nil {
			return err
		}
		p := s.page(c)
		return s.render(c, http.StatusOK, templ.Join(draw(p, s.system(p.Role)), views.LiveTime(p)))
	}
}
