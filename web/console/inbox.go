package console

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/inbox"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// bellTopic is the bell of the top bar.
const bellTopic = "bell"

// bellEvery is the maximum age of the count in the bell.
const bellEvery = 2 * time.Second

// bellTopic is the topic that reads the unread messages of the operator whose id it is given.
func (s *handlers) bellTopic() topic {
	return topic{
		Name: bellTopic, Every: bellEvery, Ranged: true, Own: true,
		Read: func(ctx context.Context, of string) (drawing, error) {
			id, err := strconv.ParseInt(of, 10, 64)
			if err != nil {
				return nil, err
			}
			n, more, err := inbox.Unread(ctx, s.DB.Read, id)
			return func(p *ui.Page) templ.Component { return ui.Bell(p, ui.Unread{N: n, More: more}) }, err
		},
	}
}

// bell returns the bell to a script, and redirects any other request to the inbox.
func (s *handlers) bell(c *fiber.Ctx) error {
	if !web.IsFragment(c) {
		return c.Redirect("/inbox", http.StatusSeeOther)
	}
	p := s.Page(c)
	return s.Render(c, http.StatusOK, ui.Bell(p, p.Unread))
}

// inboxPage lists the operator's own messages, the newest first.
func (s *handlers) inboxPage(c *fiber.Ctx) error {
	p, f := s.Page(c), web.ReadFilter(c)
	before, err := strconv.ParseInt(cmp.Or(f.Text("before"), "0"), 10, 64)
	if f.Err != nil || err != nil || before < 0 {
		return web.ErrCursor
	}
	data, err := inbox.List(c.UserContext(), s.DB.Read, p.UserID, before)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, work.Inbox(p, data))
}

// readInbox marks messages of the operator as read, and opens what one is about.
func (s *handlers) readInbox(c *fiber.Ctx) error {
	id, err := strconv.ParseInt(web.Field(c, "message"), 10, 64)
	if err != nil || id < 1 {
		return act.ErrNotFound
	}
	if err := inbox.Read(c.UserContext(), s.DB, web.Operator(c).ID, id, web.Field(c, "all") == "yes"); err != nil {
		return err
	}
	to := web.Field(c, "to")
	if to == "" {
		to = "/inbox"
	}
	return c.Redirect(safeNext(to), http.StatusSeeOther)
}

// mentionable returns the people whom a note can reach, for those who may write one.
func (s *handlers) mentionable(c *fiber.Ctx, see access.Permission) ([]string, error) {
	if !s.Policy.Allows(web.Operator(c).Roles, access.Comment) {
		return nil, nil
	}
	return s.Operators.WhoMay(c.UserContext(), s.Policy, see)
}
