package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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

// attentionTopic is the live list of what needs an operator; of is its filter, or the range of the
// whole page.
const attentionTopic = "attention"

func (s *handlers) attentionTopic() topic {
	return topic{
		Name: attentionTopic, Every: 2 * time.Second, Ranged: true,
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

// toToday redirects from where what needs an operator was a page of its own. What today cannot
// use is dropped.
func toToday(c *fiber.Ctx) error {
	f, err := readAttention(c)
	if err != nil {
		f = console.AttentionFilter{}
	}
	v := f.Values()
	for _, name := range []string{"format", "columns", "lang"} {
		if value := c.Query(name); value != "" && web.IsStorable(value) {
			v.Set(name, value)
		}
	}
	return c.Redirect(strings.TrimSuffix("/?"+v.Encode(), "?"), http.StatusSeeOther)
}

// attentionList returns the list to a script, and redirects any other request to the page.
func (s *handlers) attentionList(c *fiber.Ctx) error {
	f, err := readAttention(c)
	if err != nil {
		return err
	}
	if !web.IsFragment(c) {
		v := f.Values()
		if !f.Any() {
			v.Set("range", console.RangeOf(c.Query("range")).Name)
		}
		return c.Redirect("/?"+v.Encode(), http.StatusSeeOther)
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
		CanHandle: s.Policy.Allows(web.Operator(c).Roles, access.HandleAlerts),
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
