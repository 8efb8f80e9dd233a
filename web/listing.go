package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

// listTime bounds the queries of one list: whoever waits longer narrows the filter.
const listTime = 2 * time.Second

// errSlow says that a list took too long to find.
var errSlow = &apiError{status: http.StatusServiceUnavailable, code: "too_wide", message: "this takes too long: narrow the filter or the time"}

// listing is a request for one page of a list.
type listing struct {
	*filter
	s     *Server
	p     *views.Page
	query views.Query
	span  console.Slice
	view  views.Window
	news  bool // only how many rows are newer than the cursor
}

// list reads what all lists have in common. Names are the filters that there
// are; others in the address are left out of it. Without always, the list shows
// the last day where nothing is said of the time.
func (s *Server) list(c *fiber.Ctx, always bool, names ...string) *listing {
	l := &listing{filter: readFilter(c), s: s, p: s.page(c), query: views.Query{Path: strings.TrimSuffix(c.Path(), views.NewsPath), Values: url.Values{}}}
	l.news = c.Locals(localNews) != nil
	for _, name := range append(names, "window", "to") {
		if value := l.text(name); value != "" {
			l.query.Values.Set(name, value)
		}
	}
	l.readWindow(always)
	l.span.Rows = cmp.Or(operator(c).PageRows, console.PageSize)
	if l.err != nil {
		return l
	}
	l.span.At, l.err = s.cursors.parse(l.name(), l.text("cursor"))
	if l.news {
		if l.span.Rows, l.span.Uncounted = newsMost, true; l.err == nil && !l.span.At.Newer {
			l.err = errCursor
		}
	}
	return l
}

// newsMost is how far new rows are counted.
const newsMost = 99

// news has a list answer how many rows came since its page was drawn: rows do
// not move under the pointer, so that a script asks and the person decides.
// Without a script it leads to the page.
func (s *Server) news(list fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Get("HX-Request") != "true" {
			return c.Redirect(strings.TrimSuffix(c.Path(), views.NewsPath), http.StatusSeeOther)
		}
		c.Locals(localNews, true)
		return list(c)
	}
}

// sayNews draws how many rows a page of newer ones has.
func sayNews[T any](c *fiber.Ctx, l *listing, page console.Page[T]) error {
	return l.s.render(c, http.StatusOK, views.News(l.p, l.query, len(page.Rows), page.Newer.ID != 0))
}

// name is the list with its filter, which a cursor belongs to.
func (l *listing) name() string { return l.query.Path + "?" + l.query.Values.Encode() }

// readWindow sets the span: so much time before now, or before the end of a day
// in the person's zone.
func (l *listing) readWindow(always bool) {
	name, now := l.text("window"), l.p.Now.In(l.p.Zone)
	if name == "" && !always {
		name = views.DayWindow
	}
	i := slices.IndexFunc(views.Windows, func(w views.WindowChoice) bool { return w.Name == name })
	if name != "" && i < 0 {
		l.blame("window", "use one of the windows of the list")
		return
	}
	end := now
	if to := l.text("to"); to != "" {
		day, err := time.ParseInLocation(time.DateOnly, to, l.p.Zone)
		if err != nil {
			l.blame("to", "use a day such as 2026-11-20")
			return
		}
		// The days of a month may have 23 or 25 hours: days are counted, not hours.
		if end = day.AddDate(0, 0, 1); i < 0 {
			i = slices.IndexFunc(views.Windows, func(w views.WindowChoice) bool { return w.Name == views.DayWindow })
		}
		l.span.To = end.UnixMicro()
	}
	l.view = views.Window{Always: always, To: end.UnixMicro()}
	if i < 0 {
		return
	}
	choice := views.Windows[i]
	from := end.Add(-choice.Span)
	if choice.Days > 0 && l.span.To > 0 {
		from = end.AddDate(0, 0, -choice.Days)
	}
	l.span.From, l.view.From, l.view.Name = from.UnixMicro(), from.UnixMicro(), choice.Name
}

// context bounds the list's queries.
func (l *listing) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), l.s.listTime)
}

// slow turns the end of the list's time into what the person can do about it.
func slow(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errSlow
	}
	return err
}

// around is what the page shows around its rows.
func around[T any](l *listing, page console.Page[T]) views.List {
	now := l.p.Now.UnixMicro()
	news := console.Cursor{ID: cmp.Or(page.Newest, db.IDAt(now)), Newer: true}
	if l.span.At != (console.Cursor{}) || l.span.To > 0 && l.span.To <= now {
		news = console.Cursor{} // nothing can come before what is on this page
	}
	return views.List{
		News:  l.s.cursors.text(l.name(), news),
		Query: l.query, Window: l.view, Rows: l.span.Rows, First: l.span.At == (console.Cursor{}),
		Older: l.s.cursors.text(l.name(), page.Older), Newer: l.s.cursors.text(l.name(), page.Newer),
		Reached: page.Reached, Count: page.Count, More: page.More, Empty: len(page.Rows) == 0,
	}
}

// choices are what the selects of lists offer.
func (s *Server) choices(ctx context.Context) (c views.Choices, err error) {
	if c.Merchants, err = s.console.Merchants(ctx); err != nil {
		return c, err
	}
	c.Suppliers, err = s.console.Suppliers(ctx)
	return c, err
}
