package console

import (
	"context"
	"net/http"
	"time"

	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/views/overview"
	"backstop/views/partners"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) overview(c *fiber.Ctx) error {
	p, r := s.Page(c), console.RangeOf(c.Query("range"))
	p.Live = true
	panels, oldest := map[string]templ.Component{}, time.Now()
	for _, t := range s.topics() {
		draw, at, err := s.live.Get(t, r.Name)
		if err != nil {
			return err
		}
		panels[t.Name] = draw(p)
		if at.Before(oldest) {
			oldest = at
		}
	}
	return s.Render(c, http.StatusOK, overview.Overview(p, overview.OverviewData{
		Range: r, Read: oldest, System: s.system(p),
		Guide: panels["guide"], Risk: panels["risk"], Todo: panels["todo"], Outcomes: panels["outcomes"],
		Health: panels["merchants-health"], Suppliers: panels["suppliers-health"], Queues: panels["queues"],
	}))
}

// system returns the engines of the installation, and what the viewer may see of them.
func (s *handlers) system(p *ui.Page) overview.System {
	return overview.System{
		Engine: s.QueueEngine, Database: s.DB.Engine(), Inspect: s.Policy.Allows(p.Role, access.InspectQueues),
	}
}

// viewer returns what the person may see of what needs an operator.
func (s *handlers) viewer(p *ui.Page) console.Viewer {
	return console.Viewer{Alerts: s.Policy.Allows(p.Role, access.ViewAlerts), Decides: s.decides(p)}
}

// panel returns one panel of the overview and the time to a script, and redirects any other
// request to the page.
func (s *handlers) panel(t topic) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := console.RangeOf(c.Query("range"))
		if !web.IsFragment(c) {
			return c.Redirect("/?range="+r.Name, http.StatusSeeOther)
		}
		draw, at, err := s.live.Get(t, r.Name)
		if err != nil {
			return err
		}
		p := s.Page(c)
		return s.Render(c, http.StatusOK, templ.Join(draw(p), ui.LiveTime(p, at)))
	}
}

// topics returns all panels in display order.
func (s *handlers) topics() []topic {
	return []topic{
		{Name: "guide", Every: 2 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			state, err := s.readGuide(ctx)
			return func(p *ui.Page) templ.Component { return overview.GuidePanel(p, s.guideOf(p, state), false) }, err
		}},
		{Name: "risk", Every: 2 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			v, err := s.Console.Risk(ctx)
			return func(p *ui.Page) templ.Component { return overview.RiskPanel(p, v) }, err
		}},
		{Name: "outcomes", Every: 5 * time.Second, Ranged: true, Read: func(ctx context.Context, of string) (drawing, error) {
			v, err := s.Console.Outcomes(ctx, console.RangeOf(of))
			return func(p *ui.Page) templ.Component {
				return overview.OutcomesPanel(p, v, s.Config.NotifyObjective.Share())
			}, err
		}},
		{Name: "todo", Every: 2 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			v, err := s.Console.Attention(ctx)
			return func(p *ui.Page) templ.Component {
				return overview.TodoPanel(p, overview.NewAttention(p, v, s.viewer(p), console.AttentionFilter{}))
			}, err
		}},
		{Name: "merchants-health", Every: 5 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			v, err := s.Console.Health(ctx)
			return func(p *ui.Page) templ.Component { return overview.HealthPanel(p, v) }, err
		}},
		{Name: "suppliers-health", Every: 5 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			v, err := s.Console.Suppliers(ctx, s.Config.Timezone)
			return func(p *ui.Page) templ.Component { return partners.SupplierPanel(p, v) }, err
		}},
		{Name: "queues", Every: 2 * time.Second, Read: func(ctx context.Context, _ string) (drawing, error) {
			v, err := s.Console.Queues(ctx, s.Queues)
			return func(p *ui.Page) templ.Component { return overview.QueuesPanel(p, v, s.system(p)) }, err
		}},
	}
}
