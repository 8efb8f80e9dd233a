package console

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
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// listTime bounds the queries of one list: whoever waits longer narrows the filter.
const listTime = 2 * time.Second

// listing is a request for one page of a list.
type listing struct {
	*web.Filter
	s     *handlers
	p     *ui.Page
	query ui.Query
	span  console.Slice
	view  ui.Window
	news  bool // only how many rows are newer than the cursor
}

// list reads what all lists have in common. Names are the filters that there
// are; others in the address are left out of it. Without always, the list shows
// the last day where nothing is said of the time.
func (s *handlers) list(c *fiber.Ctx, always bool, names ...string) *listing {
	l := &listing{Filter: web.ReadFilter(c), s: s, p: s.Page(c), query: ui.Query{Path: strings.TrimSuffix(c.Path(), ui.NewsPath), Values: url.Values{}}}
	l.news = c.Locals(newerOnly) != nil
	for _, name := range append(names, "window", "to") {
		if value := l.Text(name); value != "" {
			l.query.Values.Set(name, value)
		}
	}
	l.readWindow(always)
	l.span.Rows = cmp.Or(web.Operator(c).PageRows, console.PageSize)
	if l.Err != nil {
		return l
	}
	l.span.At, l.Err = s.cursors.parse(l.name(), l.Text("cursor"))
	if l.news {
		if l.span.Rows, l.span.Uncounted = newsMost, true; l.Err == nil && !l.span.At.Newer {
			l.Err = web.ErrCursor
		}
	}
	return l
}

// newerOnly is set where only the number of newer rows is asked for.
const newerOnly = "newer only"

// newsMost is how far new rows are counted.
const newsMost = 99

// news has a list answer how many rows came since its page was drawn: rows do
// not move under the pointer, so that a script asks and the person decides.
// Without a script it leads to the page.
func (s *handlers) news(list fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Get("HX-Request") != "true" {
			return c.Redirect(strings.TrimSuffix(c.Path(), ui.NewsPath), http.StatusSeeOther)
		}
		c.Locals(newerOnly, true)
		return list(c)
	}
}

// sayNews draws how many rows a page of newer ones has.
func sayNews[T any](c *fiber.Ctx, l *listing, page console.Page[T]) error {
	return l.s.Render(c, http.StatusOK, ui.News(l.p, l.query, len(page.Rows), page.Newer.ID != 0))
}

// name is the list with its filter, which a cursor belongs to.
func (l *listing) name() string { return l.query.Path + "?" + l.query.Values.Encode() }

// readWindow sets the span: so much time before now, or before the end of a day
// in the person's zone.
func (l *listing) readWindow(always bool) {
	name, now := l.Text("window"), l.p.Now.In(l.p.Zone)
	if name == "" && !always {
		name = ui.DayWindow
	}
	i := slices.IndexFunc(ui.Windows, func(w ui.WindowChoice) bool { return w.Name == name })
	if name != "" && i < 0 {
		l.Blame("window", "use one of the windows of the list")
		return
	}
	end := now
	if to := l.Text("to"); to != "" {
		day, err := time.ParseInLocation(time.DateOnly, to, l.p.Zone)
		if err != nil {
			l.Blame("to", "use a day such as 2026-11-20")
			return
		}
		// The days of a month may have 23 or 25 hours: days are counted, not hours.
		if end = day.AddDate(0, 0, 1); i < 0 {
			i = slices.IndexFunc(ui.Windows, func(w ui.WindowChoice) bool { return w.Name == ui.DayWindow })
		}
		l.span.To = end.UnixMicro()
	}
	l.view = ui.Window{Always: always, To: end.UnixMicro()}
	if i < 0 {
		return
	}
	choice := ui.Windows[i]
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
		return web.ErrSlow
	}
	return err
}

// around is what the page shows around its rows.
func around[T any](l *listing, page console.Page[T]) ui.List {
	now := l.p.Now.UnixMicro()
	news := console.Cursor{ID: cmp.Or(page.Newest, db.IDAt(now)), Newer: true}
	if l.span.At != (console.Cursor{}) || l.span.To > 0 && l.span.To <= now {
		news = console.Cursor{} // nothing can come before what is on this page
	}
	return ui.List{
		News:  l.s.cursors.text(l.name(), news),
		Query: l.query, Window: l.view, Rows: l.span.Rows, First: l.span.At == (console.Cursor{}),
		Older: l.s.cursors.text(l.name(), page.Older), Newer: l.s.cursors.text(l.name(), page.Newer),
		Reached: page.Reached, Count: page.Count, More: page.More, Empty: len(page.Rows) == 0,
	}
}

// choices are what the selects of lists offer.
func (s *handlers) choices(ctx context.Context) (c pages.Choices, err error) {
	if c.Merchants, err = s.Console.Merchants(ctx); err != nil {
		return c, err
	}
	c.Suppliers, err = s.Console.Suppliers(ctx)
	return c, err
}
