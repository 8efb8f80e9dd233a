package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/order"
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// unmaskedFor is how long personal data stays on the screen of who asked for it.
const unmaskedFor = time.Minute

func (s *handlers) storyPage(c *fiber.Ctx) error {
	story, err := s.readStory(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	if story.Did, err = s.done(ctx, c, "order", story.Order.OrderNo); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.Story(s.storyFrame(c), story))
}

// storyPart answers a piece of the story to a script that asks for it, and leads
// everybody else to the page.
func (s *handlers) storyPart(draw func(*ui.Page, pages.StoryData) templ.Component) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Get("HX-Request") != "true" {
			to := "/orders/" + url.PathEscape(c.Params("order_no"))
			if phase := c.Query("phase"); phase != "" {
				to += "?phase=" + url.QueryEscape(phase)
			}
			return c.Redirect(to, http.StatusSeeOther)
		}
		story, err := s.readStory(c)
		if err != nil {
			return err
		}
		return s.Render(c, http.StatusOK, draw(s.Page(c), story))
	}
}

// readStory reads the order's story, masked, for the person who asks.
func (s *handlers) readStory(c *fiber.Ctx) (pages.StoryData, error) {
	no, err := web.OrderNo(c)
	if err != nil {
		return pages.StoryData{}, err
	}
	phase := console.Phase(c.Query("phase"))
	if phase != "" && !slices.Contains(console.Phases, phase) {
		return pages.StoryData{}, web.InvalidField("phase", "no phase of a story has this name")
	}
	ctx, cancel := web.Work()
	defer cancel()
	story, err := s.Console.Story(ctx, no)
	if err != nil {
		return pages.StoryData{}, err
	}
	story.Mask()
	return s.storyData(c, story, phase), nil
}

func (s *handlers) storyData(c *fiber.Ctx, story *console.Story, phase console.Phase) pages.StoryData {
	may := func(p access.Permission) bool { return s.Policy.Allows(web.Operator(c).Role, p) }
	return pages.StoryData{
		Story: story, Phase: phase,
		CanResend: may(access.Resend), ResendKey: act.NewKey(), CanNote: may(access.Comment), NoteKey: act.NewKey(),
		CanControl: may(access.ControlBreakers), CanUnmask: may(access.ViewPersonal), UnmaskKey: act.NewKey(), CanExport: may(access.ExportEvidence),
	}
}

// storyFrame is the page around a story, whose links change a part of it.
func (s *handlers) storyFrame(c *fiber.Ctx) *ui.Page {
	p := s.Page(c)
	p.Parts = true
	return p
}

// unmask shows personal data in this one answer, to who may see it and says why.
// The audit row is committed first. The browser leaves the answer by itself; sent
// a second time, the form shows nothing.
func (s *handlers) unmask(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	out, err := s.act(ctx, c, act.Call{Kind: order.UnmaskAct, Ref: act.Ref{ID: no}})
	if err != nil {
		return err
	}
	page := "/orders/" + url.PathEscape(no)
	if out.Repeated {
		return c.Redirect(page+"?"+doneQuery(c), http.StatusSeeOther)
	}
	story, err := s.Console.Story(ctx, no)
	if err != nil {
		return err
	}
	data := s.storyData(c, story, "")
	data.ShownUntil = s.DB.Now() + unmaskedFor.Microseconds()
	// The header needs no script, and a page that is left open shows nothing.
	c.Set("Refresh", strconv.Itoa(int(unmaskedFor/time.Second))+"; url="+page)
	return s.Render(c, http.StatusOK, pages.Story(s.storyFrame(c), data))
}

// storyDiff compares two callbacks of the order, ?a= and ?b=.
func (s *handlers) storyDiff(c *fiber.Ctx) error {
	story, err := s.readStory(c)
	if err != nil {
		return err
	}
	a, b := story.Callback(c.Query("a")), story.Callback(c.Query("b"))
	if a == nil || b == nil {
		return console.ErrNotFound
	}
	if err := s.readBodies(story.Story, a, b); err != nil {
		return err
	}
	return s.pageOrPart(c, pages.Diff(s.Page(c), story.Order.OrderNo, a, b), pages.DiffPanel(s.Page(c), story.Order.OrderNo, a, b))
}

// storyRaw shows one callback of the order as it came.
func (s *handlers) storyRaw(c *fiber.Ctx) error {
	story, err := s.readStory(c)
	if err != nil {
		return err
	}
	one := story.Callback(c.Params("event_id"))
	if one == nil {
		return console.ErrNotFound
	}
	if err := s.readBodies(story.Story, one); err != nil {
		return err
	}
	return s.pageOrPart(c, pages.Raw(s.Page(c), story.Order.OrderNo, one), pages.RawPanel(s.Page(c), story.Order.OrderNo, one))
}

// readBodies reads, and masks, what a long story left out of its callbacks.
func (s *handlers) readBodies(story *console.Story, callbacks ...*console.Callback) error {
	ctx, cancel := web.Work()
	defer cancel()
	for _, c := range callbacks {
		if !c.Omitted {
			continue
		}
		if err := s.Console.ReadBody(ctx, c); err != nil {
			return err
		}
		story.MaskBody(c)
	}
	return nil
}

// pageOrPart answers a page, or the part of it that a script asks for.
func (s *handlers) pageOrPart(c *fiber.Ctx, page, part templ.Component) error {
	if c.Get("HX-Request") == "true" {
		page = part
	}
	return s.Render(c, http.StatusOK, page)
}
