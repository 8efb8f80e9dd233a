package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/console"
	"backstop/views/overview"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// attentionTopic is the live list of what needs an operator; of is its filter.
const attentionTopic = "attention"

func (s *handlers) attentionTopic() topic {
	return topic{
		Name: attentionTopic, Every: 2 * time.Second, Ranged: true, Asked: true,
		Read: func(ctx context.Context, of string) (drawing, error) {
			a, err := s.Console.Attention(ctx)
			if err != nil {
				return nil, err
			}
			f := attentionFilterOf(of)
			return func(p *ui.Page) templ.Component {
				return overview.AttentionList(p, overview.NewAttention(p, a, s.viewer(p), f))
			}, nil
		},
	}
}

// readAttention reads the filter of the list in a request.
func readAttention(c *fiber.Ctx) (console.AttentionFilter, error) {
	r := web.ReadFilter(c)
	f := console.AttentionFilter{
		Text: r.Text("text"), Matter: r.OneOf("matter", console.AttentionMatters),
		Who: r.OneOf("who", console.AttentionWho), Viewer: web.Operator(c).Name,
	}
	return f, r.Err
}

// attentionOf writes a filter as what a live drawing is of: with the viewer where it depends on
// one.
func attentionOf(f console.AttentionFilter) string {
	v := f.Values()
	if f.Who == console.Mine {
		v.Set("viewer", f.Viewer)
	}
	return v.Encode()
}

// attentionFilterOf reads it.
func attentionFilterOf(of string) console.AttentionFilter {
	v, _ := url.ParseQuery(of) // attentionOf wrote it
	return console.AttentionFilter{Text: v.Get("text"), Matter: v.Get("matter"), Who: v.Get("who"), Viewer: v.Get("viewer")}
}

// attentionPage shows what needs an operator, the most money first; for ?format=, as a file.
func (s *handlers) attentionPage(c *fiber.Ctx) error {
	f, err := readAttention(c)
	if err != nil {
		return err
	}
	format, err := web.ReadFormat(c)
	if err != nil {
		return err
	}
	p := s.Page(c)
	a, err := s.Console.Attention(c.UserContext())
	if err != nil {
		return err
	}
	d := overview.NewAttention(p, a, s.viewer(p), f)
	if format == "" {
		p.Live = true
		return s.Render(c, http.StatusOK, overview.AttentionPage(p, d))
	}
	return exportRead(s, c, exported[overview.AttentionRow]{
		format: format, name: "attention", filter: f.Values().Encode(), page: p, columns: overview.AttentionColumns,
	}, d.Rows())
}

// attentionList returns the list to a script, and redirects any other request to the page.
func (s *handlers) attentionList(c *fiber.Ctx) error {
	f, err := readAttention(c)
	if err != nil {
		return err
	}
	if !web.IsFragment(c) {
		to := "/attention"
		if v := f.Values(); len(v) > 0 {
			to += "?" + v.Encode()
		}
		return c.Redirect(to, http.StatusSeeOther)
	}
	draw, at, err := s.live.Get(s.attentionTopic(), attentionOf(f))
	if err != nil {
		return err
	}
	p := s.Page(c)
	return s.Render(c, http.StatusOK, templ.Join(draw(p), ui.LiveTime(p, at)))
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
	data := overview.IncidentData{
		IncidentDetail: x, Key: act.NewKey(),
		CanHandle: s.Policy.Allows(web.Operator(c).Role, access.HandleAlerts),
	}
	if data.Did, err = s.done(c, alert.IncidentObject, strconv.FormatInt(id, 10)); err != nil {
		return err
	}
	if data.CanHandle {
		if data.People, err = s.Operators.WhoMay(c.UserContext(), s.Policy, access.HandleAlerts); err != nil {
			return err
		}
	}
	return s.Render(c, http.StatusOK, overview.IncidentPage(s.Page(c), data))
}

func incidentPath(id int64) string { return "/attention/" + strconv.FormatInt(id, 10) }

// runbookPage shows the operations manual.
func (s *handlers) runbookPage(c *fiber.Ctx) error {
	return s.Render(c, http.StatusOK, overview.Runbook(s.Page(c)))
}
