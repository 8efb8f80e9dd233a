package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/base/calendar"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// searchPage searches for what operators have at hand: a number, the end of one, a code, a name,
// also of a page or an act. A single hit is opened at once. For the script of the palette it sends
// the lines of all hits instead.
func (s *handlers) searchPage(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	q := strings.TrimSpace(f.Text("q"))
	if f.Err != nil {
		return f.Err
	}
	palette := c.Query("palette") != ""
	if palette && !web.IsFragment(c) {
		return c.Redirect("/search?q="+url.QueryEscape(q), http.StatusSeeOther)
	}
	p := s.Page(c)
	d := search.Finds{Q: q, Pages: search.Matching(s.places(p.Roles), q), Acts: search.Matching(s.starts(p.Roles), q)}
	ctx, cancel := context.WithTimeout(context.Background(), s.listTime)
	defer cancel()
	if q != "" {
		var err error
		if d.Found, err = s.Console.Search(ctx, q); err != nil {
			return slow(ctx, err)
		}
		if !s.Policy.Allows(p.Roles, access.ViewNotifications) {
			d.Merchants = nil
		}
		if !s.Policy.Allows(p.Roles, access.ViewCallbacks) {
			d.Suppliers = nil
		}
		if !s.Policy.Allows(p.Roles, access.ViewExceptions) {
			d.Exceptions = nil
		}
	}
	if palette {
		return s.Render(c, http.StatusOK, search.PaletteHits(p, d.Palette(p)))
	}
	if q != "" {
		if only := d.Only(); only != "" {
			return c.Redirect(only, http.StatusSeeOther)
		}
		if d.None() && d.Amount && !console.IsEnding(q) {
			return s.searchAmount(ctx, c, q)
		}
	}
	return s.Render(c, http.StatusOK, search.Search(p, d))
}

// places returns the pages with names that somebody of these roles may open.
func (s *handlers) places(roles access.Roles) (all []search.Place) {
	for _, r := range s.Routes() {
		if icon := r.Menu.Icon + r.Menu.Aside; icon != "" && s.Policy.Allows(roles, r.Permission) {
			all = append(all, search.Place{Path: r.Path, Icon: icon, Label: r.Menu.Label})
		}
	}
	return all
}

// starts returns the acts that somebody of these roles may begin.
func (s *handlers) starts(roles access.Roles) (all []search.Place) {
	for _, x := range search.Starts {
		permission := x.Permission
		if x.Act != "" {
			permission = s.Acts.Kind(x.Act).Permission
		}
		if s.Policy.Allows(roles, permission) && s.possible(x) {
			all = append(all, x.Place)
		}
	}
	if s.Policy.Allows(roles, s.Acts.Kind(breaker.MoveAct(breaker.CloseIt)).Permission) {
		all = append(all, s.openBreakers()...)
	}
	for _, spec := range console.BatchLists() {
		_, object := console.BatchList(spec.Name)
		for _, action := range s.Batches.Actions(act.Actor{Roles: roles}, object) {
			all = append(all, search.BatchStart(spec.Name, action))
		}
	}
	return all
}

// maxBreakers bounds the open breakers that the palette offers to close.
const maxBreakers = 20

// openBreakers returns where the open breakers of merchants are closed.
func (s *handlers) openBreakers() (all []search.Place) {
	merchants := s.Settings.Current().Merchants
	for _, r := range s.Breakers.All() {
		if m := merchants.ByID(r.OwnerID); m != nil && !m.Subscriber && r.Tripped() && len(all) < maxBreakers {
			all = append(all, search.CloseBreaker(m))
		}
	}
	return all
}

// possible reports whether the page of an act can offer it now.
func (s *handlers) possible(x search.Start) bool {
	switch {
	case x.Queue != "":
		return s.Pauses.Paused(x.Queue) == x.Resumes
	case x.Act == alert.TestAct:
		targets, _ := s.Alerts()
		return len(targets) > 0
	}
	return true
}

// searchAmount opens the only order with an amount, or the list of orders.
func (s *handlers) searchAmount(ctx context.Context, c *fiber.Ctx, q string) error {
	span := list.Slice{From: calendar.AddDays(s.DB.NowTime(), -31).UnixMicro(), Rows: 1, Uncounted: true}
	page, err := s.Console.Orders(ctx, list.Query{Spec: console.OrderList, Scope: list.All()}.With("amount", q), span)
	if err != nil {
		return slow(ctx, err)
	}
	if len(page.Rows) == 1 && page.Older == (list.Cursor{}) {
		return c.Redirect(orderPath(page.Rows[0].OrderNo), http.StatusSeeOther)
	}
	return c.Redirect(ui.AmountLink(q), http.StatusSeeOther)
}
