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

// today shows what needs an operator, the most money first, and how things are; with a filter, only the
// former; for ?format=, that as a file. Whoever is limited to merchants sees their figures.
func (s *handlers) today(c *fiber.Ctx) error {
	if own := s.Actor(c).Merchants; own != nil {
		risk, all, err := s.Console.Own(c.UserContext(), own)
		if err != nil {
			return err
		}
		return s.Render(c, http.StatusOK, overview.OwnToday(s.Page(c), risk, all))
	}
	f, err := readAttention(c)
	if err != nil {
		return err
	}
	format, err := web.ReadFormat(c)
	if err != nil {
		return err
	}
	p, r := s.Page(c), console.RangeOf(c.Query("range"))
	if format != "" {
		a, err := s.Console.Attention(c.UserContext())
		if err != nil {
			return err
		}
		return exportRead(s, c, exported[overview.AttentionRow]{
			format: format, name: "attention", filter: f.Values().Encode(), page: p, columns: overview.AttentionColumns,
		}, overview.NewAttention(p, a, s.viewer(p), f).Rows())
	}
	p.Live = true
	topics, of := s.topics(), r.Name
	if f.Any() {
		topics, of = []topic{s.attentionTopic()}, attentionOf(f)
	}
	d := overview.TodayData{Range: r, Filter: f, Read: time.Now(), System: s.system(p), Panels: map[string]templ.Component{}}
	for _, t := range topics {
		draw, at, err := s.live.Get(t, of)
		if err != nil {
			return err
		}
		d.Panels[t.Name] = draw(p)
		if at.Before(d.Read) {
			d.Read = at
		}
	}
	return s.Render(c, http.StatusOK, overview.Today(p, d))
}

// system returns the engines of the installation, and what the viewer may see of them.
func (s *handlers) system(p *ui.Page) overview.System {
	return overview.System{
		Engine: s.QueueEngine, Database: s.DB.Engine(), Inspect: s.Policy.Allows(p.Roles, access.InspectQueues),
	}
}

// viewer returns what the person may see of what needs an operator.
func (s *handlers) viewer(p *ui.Page) console.Viewer {
	return console.Viewer{Alerts: s.Policy.Allows(p.Roles, access.ViewAlerts), Decides: s.decides(p)}
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
		s.attentionTopic(),
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
