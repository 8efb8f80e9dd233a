package console

import (
	"net/http"
	"net/url"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/console"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) storyPage(c *fiber.Ctx) error {
	story, err := s.readStory(c)
	if err != nil {
		return err
	}
	no := story.Order.OrderNo
	if story.Did, err = s.done(c, "order", no); err != nil {
		return err
	}
	if story.Unmask, err = s.masked(c, console.UnmaskOrder, no, orderPath(no)); err != nil {
		return err
	}
	if story.Proposals, err = s.Console.ApprovalsOfOrder(c.UserContext(), no); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, orders.Story(s.storyFrame(c), story))
}

// storyPart returns a part of the history to a script, and redirects any other request to the
// page.
func (s *handlers) storyPart(draw func(*ui.Page, orders.StoryData) templ.Component) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if !web.IsFragment(c) {
			to := orderPath(c.Params("order_no"))
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

// readStory reads the order's history, masked.
func (s *handlers) readStory(c *fiber.Ctx) (orders.StoryData, error) {
	no, err := web.OrderNo(c)
	if err != nil {
		return orders.StoryData{}, err
	}
	phase := console.Phase(c.Query("phase"))
	if phase != "" && !slices.Contains(console.Phases, phase) {
		return orders.StoryData{}, web.InvalidField("phase", "no phase of a story has this name")
	}
	story, err := s.Console.Story(c.UserContext(), no)
	if err != nil {
		return orders.StoryData{}, err
	}
	story.Mask()
	data := s.storyData(c, story, phase)
	data.Colleagues, err = s.mentionable(c, access.ViewOrders)
	return data, err
}

func (s *handlers) storyData(c *fiber.Ctx, story *console.Story, phase console.Phase) orders.StoryData {
	may := func(p access.Permission) bool { return s.Policy.Allows(web.Operator(c).Roles, p) }
	by := s.Actor(c)
	return orders.StoryData{
		Story: story, Phase: phase,
		CanResend: may(access.Resend), ResendKey: act.NewKey(), CanNote: may(access.Comment), NoteKey: act.NewKey(),
		CanAsk: may(access.QueryOrders), AskKey: act.NewKey(),
		CanControl: may(access.ControlBreakers), CanExport: may(access.ExportEvidence),
		Approvers: func(a *approval.Approval) []string { return s.Approvals.May(by, a, "").Roles },
	}
}

// storyFrame returns the page around a history, whose links change a part of it.
func (s *handlers) storyFrame(c *fiber.Ctx) *ui.Page {
	p := s.Page(c)
	p.Parts = true
	return p
}

// unmaskOrder shows the order's page unmasked.
func (s *handlers) unmaskOrder(c *fiber.Ctx, done web.Acted) error {
	no := done.Ref.ID
	return s.unmasked(c, done, orderPath(no), func(u panel.Unmask) error {
		story, err := s.Console.Story(c.UserContext(), no)
		if err != nil {
			return err
		}
		data := s.storyData(c, story, "")
		data.Unmask = u
		return s.Render(c, http.StatusOK, orders.Story(s.storyFrame(c), data))
	})
}

// storyDiff compares two callbacks of the order, ?a= and ?b=.
func (s *handlers) storyDiff(c *fiber.Ctx) error {
	no, of, err := s.storyCallbacks(c, c.Query("a"), c.Query("b"))
	if err != nil {
		return err
	}
	p := s.Page(c)
	return s.pageOrPart(c, orders.Diff(p, no, of[0], of[1]), orders.DiffPanel(p, no, of[0], of[1]))
}

// storyRaw shows one callback of the order as received.
func (s *handlers) storyRaw(c *fiber.Ctx) error {
	no, of, err := s.storyCallbacks(c, c.Params("event_id"))
	if err != nil {
		return err
	}
	p := s.Page(c)
	return s.pageOrPart(c, orders.Raw(p, no, of[0]), orders.RawPanel(p, no, of[0]))
}

// storyCallbacks finds callbacks in the order's history, and reads and masks the bodies that
// were omitted because the history is long.
func (s *handlers) storyCallbacks(c *fiber.Ctx, eventIDs ...string) (orderNo string, found []*console.Callback, err error) {
	story, err := s.readStory(c)
	if err != nil {
		return "", nil, err
	}
	for _, id := range eventIDs {
		callback := story.Callback(id)
		if callback == nil {
			return "", nil, act.ErrNotFound
		}
		if callback.Omitted {
			if err := s.Console.ReadBody(c.UserContext(), callback); err != nil {
				return "", nil, err
			}
			story.MaskBody(callback)
		}
		found = append(found, callback)
	}
	return story.Order.OrderNo, found, nil
}

// pageOrPart responds with a page or, to a script, with the part of it.
func (s *handlers) pageOrPart(c *fiber.Ctx, page, part templ.Component) error {
	if web.IsFragment(c) {
		page = part
	}
	return s.Render(c, http.StatusOK, page)
}
