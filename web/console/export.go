package console

import (
	"backstop/internal/audit"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// export returns everything matched by a list's filter as CSV, regardless of the page. It is
// streamed: each page is read after the previous one was written, so that neither memory nor a
// transaction grows with the list. An error after the first page closes the connection, which a
// browser reports as a failed download.
func export[T any](s *handlers, c *fiber.Ctx, page listPage[T], l *listing) error {
	if page.columns == nil {
		return web.InvalidField("format", "this list has no export")
	}
	// Another site's link must not write into the audit in the operator's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrForeign
	}
	read := func(span list.Slice) (list.Page[T], error) {
		ctx, cancel := l.context()
		defer cancel()
		rows, err := page.read(ctx, l.filter, span)
		return rows, slow(ctx, err)
	}
	span := l.span
	span.At, span.Uncounted = list.Cursor{}, true
	first, err := read(span) // at this point an error can still be returned
	if err != nil {
		return err
	}
	return stream(s, c, exported[T]{
		name: page.spec.Name, filter: l.query.Values.Encode(), page: l.p, columns: page.columns(l.p),
		each: func(fn func(T) error) error {
			return list.Each(span, func(span list.Slice) (list.Page[T], error) {
				if span.At == (list.Cursor{}) {
					return first, nil
				}
				return read(span)
			}, fn)
		},
	})
}

// exported is a table to be exported.
type exported[T any] struct {
	name, filter string
	page         *ui.Page
	columns      []pages.Column[T]
	each         func(fn func(T) error) error
}

// stream records an export in the audit, and sends it.
func stream[T any](s *handlers, c *fiber.Ctx, x exported[T]) error {
	by := "operator:" + web.Operator(c).Name
	return s.StreamCSV(c, web.CSV{
		Name: x.name + x.page.Now.In(x.page.Zone).Format("-20060102-150405"), By: by,
		Title: pages.ExportTitle(x.page, x.filter, by), Heads: pages.Heads(x.columns),
		Begin: func() error {
			return s.keepAct(c, audit.Act{
				Actor: by, Action: "list.export", Object: "list", ObjectID: x.name, Params: map[string]any{"filter": x.filter, "format": "csv"},
			})
		},
		Each: func(write func([]string) error) error {
			return x.each(func(row T) error {
				cells := make([]string, len(x.columns))
				for i, column := range x.columns {
					cells[i] = column.Cell(row)
				}
				return write(cells)
			})
		},
	})
}
