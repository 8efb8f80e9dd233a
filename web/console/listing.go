package console

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// listTime bounds the queries of one list; beyond it the filter must be narrowed.
const listTime = 2 * time.Second

// listPage defines one list of the console: what is read, and how it is rendered.
type listPage[T any] struct {
	spec *list.Spec
	// path is the list's address; "" = its name.
	path string
	// within restricts the list to what its path names; nil = nothing.
	within func(list.Query) list.Query
	// always: without a window the list covers all time, otherwise the last day.
	always bool
	read   func(context.Context, list.Query, list.Slice) (list.Page[T], error)
	// number is the field that finds a single row, and only the URL of that row's page; nil = list it.
	number string
	only   func(T) string
	// bars reads the chart above the list, for a value of barsBy, the one field that it follows; with
	// another filter there is no chart, because it would count what the list does not show. nil = none.
	bars   func(ctx context.Context, value string, span list.Slice) ([]console.Bar, error)
	barsBy string
	// draw draws the page; nil = it is nothing but the list.
	draw    func(ctx context.Context, p *ui.Page, l ui.List, rows []T) (templ.Component, error)
	columns []ui.Column[T] // of the page and of an export; nil = no export
	// ofRole are the columns that a role begins with, in low rows, until the person chooses others.
	ofRole map[string][]string
}

// ofRoles returns the columns with which somebody of these roles begins; nil = as declared.
func (x listPage[T]) ofRoles(roles access.Roles) []string {
	for _, role := range roles.Names() {
		if columns := x.ofRole[role]; columns != nil {
			return columns
		}
	}
	return nil
}

// listed returns the list with its columns and rows.
func (x listPage[T]) listed(p *ui.Page, l ui.List, rows []T) ui.List {
	l.Choices = ui.Headings(x.columns)
	drawn := ui.Arrange(x.columns, l.Values.Get("columns"), x.ofRoles(p.Roles))
	return l.Listed(p, ui.Headings(drawn), ui.Cells(p, drawn, rows))
}

// page returns the page of the list.
func (x listPage[T]) page(ctx context.Context, p *ui.Page, l ui.List, rows []T) (templ.Component, error) {
	if x.draw == nil {
		return ui.PlainList(p, l.As(search.TextsOf(x.spec.Name))), nil
	}
	return x.draw(ctx, p, l, rows)
}

// serve returns the handler of one of the console's lists.
func serve[T any](s *handlers, page listPage[T]) fiber.Handler {
	return func(c *fiber.Ctx) error { return send(s, c, http.StatusOK, page) }
}

// send responds with a page of a list; for ?newer=, with the number of newer rows, which a
// script requests because rows must not move under the pointer by themselves; for ?format=, with
// the whole list as a file.
func send[T any](s *handlers, c *fiber.Ctx, status int, page listPage[T]) error {
	l := s.listAt(c, page.spec, cmp.Or(page.path, "/"+page.spec.Name), page.always)
	if l.Err != nil {
		return l.Err
	}
	if page.within != nil {
		l.filter = page.within(l.filter)
	}
	if asText(c) {
		return sendText(s, c, page, l)
	}
	ctx, cancel := l.context()
	defer cancel()
	if l.since != 0 {
		return l.sendNewer(ctx, c)
	}
	if format, err := web.ReadFormat(c); err != nil {
		return err
	} else if format != "" {
		return export(s, c, page, l, format)
	}
	if len(c.Context().QueryArgs().PeekMulti("columns")) > 1 {
		return c.Redirect(l.address(), http.StatusSeeOther) // a form; an address has them in one word
	}
	if page.ofRoles(l.p.Roles) != nil && c.Cookies(web.DensityCookie) == "" {
		l.p.Compact = true
	}
	l.span.Totals = true
	rows, err := page.read(ctx, l.filter, l.span)
	if err != nil {
		return slow(ctx, err)
	}
	if page.only != nil && l.filter.Get(page.number) != "" && len(rows.Rows) == 1 && len(l.query.Filter().Values) == 1 {
		return c.Redirect(page.only(rows.Rows[0]), http.StatusSeeOther)
	}
	around, err := around(ctx, l, rows)
	if err == nil {
		around.Views, err = s.viewBar(ctx, c, l)
	}
	other := func(t list.Term) bool { return t.Name != page.barsBy }
	if err == nil && page.bars != nil && !l.p.Limited && !slices.ContainsFunc(l.filter.Terms, other) {
		around.Bars, err = page.bars(ctx, l.filter.Get(page.barsBy), l.span)
	}
	if err != nil {
		return slow(ctx, err)
	}
	drawn, err := page.page(ctx, l.p, page.listed(l.p, around, rows.Rows), rows.Rows)
	if err != nil {
		return slow(ctx, err)
	}
	return s.Render(c, status, drawn)
}

// listing is a request for a list.
type listing struct {
	*web.Filter
	s      *handlers
	p      *ui.Page
	query  ui.Query // the filter as in the URL
	filter list.Query
	span   list.Slice
	view   ui.Window
	since  int64 // only count the rows newer than this one; 0 = a page
}

// list reads a request for a list. Parameters that are not fields of the list are dropped from
// its URL.
func (s *handlers) list(c *fiber.Ctx, spec *list.Spec, always bool) *listing {
	return s.listAt(c, spec, "/"+spec.Name, always)
}

// listAt is list for one with an address that is not its name.
func (s *handlers) listAt(c *fiber.Ctx, spec *list.Spec, path string, always bool) *listing {
	return s.listOn(c, s.Page(c), spec, path, always)
}

// listOn is listAt for a page that is known.
func (s *handlers) listOn(c *fiber.Ctx, p *ui.Page, spec *list.Spec, path string, always bool) *listing {
	l := &listing{Filter: web.ReadFilter(c), s: s, p: p, query: ui.Query{Path: path, Values: url.Values{}}}
	var err error
	l.filter, err = list.Parse(spec, s.Scope(c), l.Text)
	if l.Err == nil {
		l.Err = err
	}
	if columns := chosenColumns(c); columns != "" {
		if len(columns) > maxColumns || !web.IsStorable(columns) {
			l.Blame("columns", fmt.Sprintf("use at most %d bytes", maxColumns))
		}
		l.query.Values.Set("columns", columns)
	}
	names := []string{windowParam, fromParam, toParam}
	for _, f := range spec.Fields {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if value := l.Text(name); value != "" {
			l.query.Values.Set(name, value)
		}
	}
	l.readTime(always)
	l.span.Rows = cmp.Or(web.Operator(c).PageRows, list.PageSize)
	if l.Err == nil {
		l.span.At, l.Err = s.cursors.parse(l.name(), l.Text("cursor"))
	}
	if text := l.Text("newer"); l.Err == nil && text != "" {
		var at list.Cursor
		if at, l.Err = s.cursors.parse(l.name(), text); l.Err == nil && !at.Newer {
			l.Err = web.ErrCursor
		}
		l.since = at.ID
	}
	return l
}

// maxNewer bounds the count of newer rows.
const maxNewer = 99

// sendNewer returns the number of newer rows to a script, and redirects any other request to
// the page.
func (l *listing) sendNewer(ctx context.Context, c *fiber.Ctx) error {
	if !web.IsFragment(c) {
		return c.Redirect(l.address(), http.StatusSeeOther)
	}
	n, more, err := l.filter.Newer(ctx, l.s.DB, l.span, l.since, maxNewer)
	if err != nil {
		return slow(ctx, err)
	}
	return l.s.Render(c, http.StatusOK, ui.NewerRows(l.p, l.query, int(n), more))
}

// address returns the URL of the list with its filter, at its newest page.
func (l *listing) address() string {
	if len(l.query.Values) == 0 {
		return l.query.Path
	}
	return l.name()
}

// name returns the list with its filter, to which a cursor belongs.
func (l *listing) name() string { return l.query.Path + "?" + l.query.Values.Encode() }

// context bounds the list's queries.
func (l *listing) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), l.s.listTime)
}

// slow converts a list timeout to ErrSlow.
func slow(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return web.ErrSlow
	}
	return err
}

// around returns what the page shows around its rows.
func around[T any](ctx context.Context, l *listing, page list.Page[T]) (ui.List, error) {
	now := l.p.Now.UnixMicro()
	since := list.Cursor{ID: cmp.Or(page.Newest, db.IDAt(now)), Newer: true}
	if l.span.At != (list.Cursor{}) || l.span.To > 0 && l.span.To <= now {
		since = list.Cursor{} // nothing can precede what is on this page
	}
	v := ui.List{
		Query: l.query, Spec: l.filter.Spec, Window: l.view, Rows: l.span.Rows, First: l.span.At == (list.Cursor{}),
		Since: l.s.cursors.text(l.name(), since), Older: l.s.cursors.text(l.name(), page.Older),
		Newer:   l.s.cursors.text(l.name(), page.Newer),
		Reached: page.Reached, Count: page.Count, More: page.More, Sums: page.Totals.Sums, SumsMore: page.Totals.More,
		Causes: page.Totals.Causes, Empty: len(page.Rows) == 0, Anything: len(page.Rows) > 0,
	}
	var err error
	if v.Empty {
		if v.Anything, err = l.filter.Any(ctx, l.s.DB); err != nil {
			return v, err
		}
	}
	if v.Empty && v.First && v.Anything {
		if v.Droppable, err = l.droppable(ctx); err != nil {
			return v, err
		}
	}
	if l.p.Limited { // the values of others are among them
		return v, nil
	}
	v.Suggested, err = l.filter.Spec.Suggestions(ctx, l.s.DB.Lists)
	return v, err
}

// dropTime bounds the search for filters to drop: an empty list is shown without it too.
const dropTime = 500 * time.Millisecond

// droppable returns the filters of the address without which, each dropped alone, the list has rows.
func (l *listing) droppable(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	for i, t := range l.filter.Terms {
		if l.query.Values.Get(t.Name) == "" {
			continue // of the path
		}
		q := l.filter
		q.Terms = slices.Delete(slices.Clone(q.Terms), i, i+1)
		switch n, _, err := q.Count(ctx, l.s.DB, l.span, 1); {
		case ctx.Err() != nil:
			return names, nil
		case err != nil:
			return nil, err
		case n > 0:
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// cursorMAC is how many bytes of the MAC a cursor contains: 96 bits cannot be guessed, and URLs
// stay short.
const cursorMAC = 12

// cursors signs where pages begin. A cursor is valid only with its own list and filter.
type cursors struct{ key []byte }

// text returns a cursor for a URL; "" for the zero Cursor.
func (s cursors) text(name string, c list.Cursor) string {
	if c == (list.Cursor{}) {
		return ""
	}
	direction := byte('o')
	if c.Newer {
		direction = 'n'
	}
	values := binary.BigEndian.AppendUint64([]byte{direction}, uint64(c.ID))
	return base64.RawURLEncoding.EncodeToString(append(values, s.mac(name, values)...))
}

// parse parses a cursor. name is the list's path and filter.
func (s cursors) parse(name, text string) (list.Cursor, error) {
	if text == "" {
		return list.Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 9+cursorMAC || !hmac.Equal(raw[9:], s.mac(name, raw[:9])) {
		return list.Cursor{}, web.ErrCursor
	}
	return list.Cursor{ID: int64(binary.BigEndian.Uint64(raw[1:9])), Newer: raw[0] == 'n'}, nil
}

func (s cursors) mac(name string, values []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(values) // of fixed length, so the two parts cannot be confused
	h.Write([]byte(name))
	return h.Sum(nil)[:cursorMAC]
}
