package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
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
	topics := append(s.topics(), s.batchTopic(), s.bellTopic())
	for _, o := range s.objects {
		topics = append(topics, s.versionTopic(o))
	}
	l := live.New(live.Options[*ui.Page]{Topics: topics, Page: s.livePage, At: ui.LiveTime, Log: s.Log})
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
		Language: v.Language, Zone: zone, Roles: v.Roles, UserID: v.Operator, Now: s.DB.NowTime(), Texts: s.Texts,
		Names: s.Settings.Current(), File: s.Files.URL,
	}
}

// stream keeps a console current by server-sent events: the overview, or the page in ?page=. Requests
// other than from an event source are redirected to the page.
func (s *handlers) stream(c *fiber.Ctx) error {
	r, page := console.RangeOf(c.Query("range")), c.Query("page")
	o, no := s.objectAt(page)
	if page != "" && o == nil {
		return act.ErrNotFound
	}
	if !strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream") {
		return c.Redirect(cmp.Or(page, "/?range="+r.Name), fiber.StatusSeeOther)
	}
	p, op, token := s.Page(c), web.Operator(c), c.Cookies(s.CookieName())
	w := live.Watch{
		View: live.View{Language: p.Language, Zone: p.Zone.String(), Roles: op.Roles, Of: r.Name}, Operator: op.ID,
		Seen: cmp.Or(c.Get("Last-Event-ID"), c.Query("seen")), // a new event source cannot set the header
	}
	permission := access.ViewOverview
	if s.Policy.Allows(op.Roles, access.ApproveMoney) {
		w.View.Operator = op.ID // nobody approves their own proposals
	}
	names := strings.Split(c.Query("topics"), ",")
	for _, t := range s.topics() {
		if slices.Contains(names, t.Name) {
			w.Topics = append(w.Topics, t.Name)
		}
	}
	switch {
	case op.Gate != "":
		return act.ErrNotFound
	case o == nil && !s.Policy.Allows(op.Roles, access.ViewOverview):
		return act.ErrNotFound
	}
	if o != nil {
		if permission = o.permission; !s.Policy.Allows(op.Roles, permission) {
			return act.ErrNotFound
		}
		if _, _, err := s.live.Get(s.versionTopic(o), no); err != nil {
			return err
		}
		w.Of, w.Topics = no, append([]string{o.name()}, o.also...)
		if s.Policy.Allows(op.Roles, access.ViewOverview) && s.Actor(c).Merchants == nil { // the inbox is for all merchants
			w.Topics = append(w.Topics, bellTopic)
		}
	} else if slices.Contains(w.Topics, attentionTopic) {
		f, err := readAttention(c)
		if err != nil {
			return err
		}
		if f.Any() {
			w.Of, w.Topics = attentionOf(f), []string{attentionTopic, bellTopic}
		}
	}
	w.Allowed = func() bool { return s.mayWatch(token, w.Roles, permission) }
	if err := s.live.Serve(c, w); errors.Is(err, live.ErrFull) {
		return web.ErrTooMany
	}
	return nil
}

// mayWatch reports whether the session is still open and its operator has the same roles, which have
// the permission.
func (s *handlers) mayWatch(token string, roles access.Roles, permission access.Permission) bool {
	ctx, cancel := context.WithTimeout(context.Background(), peekTime)
	defer cancel()
	op, err := s.Sessions.Peek(ctx, token)
	return err == nil && op.Roles == roles && op.Gate == "" && s.Policy.Allows(op.Roles, permission)
}
