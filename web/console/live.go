package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/bulk"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/web"
	"backstop/web/console/live"

	"github.com/gofiber/fiber/v2"
)

// topic is one live panel, and drawing the panel with its figures.
type (
	topic   = live.Topic[*ui.Page]
	drawing = live.Drawing[*ui.Page]
)

// peekTime bounds the look at a session, which is not part of a request.
const peekTime = 3 * time.Second

// newLive keeps open consoles current until the server ends.
func (s *handlers) newLive() *live.Stream[*ui.Page] {
	l := live.New(live.Options[*ui.Page]{
		Topics: append(s.topics(), s.batchTopic(), s.attentionTopic(), s.bellTopic()), Page: s.livePage, At: ui.LiveTime, Log: s.Log,
	})
	s.AtShutdown(l.Close)
	return l
}

// livePage returns what a panel depends on besides its figures.
func (s *handlers) livePage(v live.View) *ui.Page {
	zone, err := time.LoadLocation(v.Zone)
	if err != nil {
		zone = time.UTC
	}
	return &ui.Page{
		Language: v.Language, Zone: zone, Role: v.Role, UserID: v.Operator, Now: s.DB.NowTime(), Texts: s.Texts, File: s.Files.URL,
	}
}

// stream keeps a console current by server-sent events. Requests other than from an event
// source are redirected to the page.
func (s *handlers) stream(c *fiber.Ctx) error {
	r, batch := console.RangeOf(c.Query("range")), c.Query("batch")
	if !strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream") {
		return c.Redirect("/?range="+r.Name, fiber.StatusSeeOther)
	}
	p, op, token := s.Page(c), web.Operator(c), c.Cookies(s.CookieName())
	w := live.Watch{
		View: live.View{Language: p.Language, Zone: p.Zone.String(), Role: op.Role, Of: r.Name}, Operator: op.ID,
		Seen: c.Get("Last-Event-ID"),
	}
	w.Allowed = func() bool { return s.mayWatch(token, w.Role) }
	if w.Seen == "" {
		w.Seen = c.Query("seen") // a new event source cannot set the header
	}
	if s.Policy.Allows(op.Role, access.ApproveMoney) {
		w.View.Operator = op.ID // nobody approves their own proposals
	}
	if names := c.Query("topics"); names != "" {
		w.Topics = slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == batchTopic })
	}
	if _, ok := bulk.ParseNo(batch); ok {
		w.Of, w.Topics = batch, []string{batchTopic, bellTopic}
	} else if slices.Contains(w.Topics, attentionTopic) {
		f, err := readAttention(c)
		if err != nil {
			return err
		}
		w.Of, w.Topics = attentionOf(f), []string{attentionTopic, bellTopic}
	}
	if err := s.live.Serve(c, w); errors.Is(err, live.ErrFull) {
		return web.ErrTooMany
	}
	return nil
}

// mayWatch reports whether the session is still open and its operator has the same role.
func (s *handlers) mayWatch(token, role string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), peekTime)
	defer cancel()
	op, err := s.Sessions.Peek(ctx, token)
	return err == nil && op.Role == role && !op.MustChange && s.Policy.Allows(op.Role, access.ViewOverview)
}
