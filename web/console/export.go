package console

import (
	"cmp"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/sheet"
	"backstop/internal/base/text"
	"backstop/internal/list"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// export returns everything matched by a list's filter as a file, regardless of the page. It is
// streamed: each page is read after the previous one was written, so that neither memory nor a
// transaction grows with the list. An error after the first page closes the connection, which a
// browser reports as a failed download.
func export[T any](s *handlers, c *fiber.Ctx, page listPage[T], l *listing, format sheet.Format) error {
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
	if format == sheet.XLSX {
		if err := fits(l, span); err != nil {
			return err
		}
	}
	first, err := read(span) // at this point an error can still be returned
	if err != nil {
		return err
	}
	l.query = l.query.Filter() // columns are named by themselves
	filter := l.query.Values.Encode()
	if page.path != "" {
		filter = l.address()
	}
	return stream(s, c, exported[T]{
		format: format, name: page.spec.Name, filter: filter, page: l.p, columns: page.columns,
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

// exportRead returns rows that were read at once as a file.
func exportRead[T any](s *handlers, c *fiber.Ctx, x exported[T], rows []T) error {
	x.each = func(fn func(T) error) error {
		for _, row := range rows {
			if err := fn(row); err != nil {
				return err
			}
		}
		return nil
	}
	return exportEach(s, c, x)
}

// exportEach returns a table that is no list with a filter of its own as a file.
func exportEach[T any](s *handlers, c *fiber.Ctx, x exported[T]) error {
	// Another site's link must not write into the audit in the operator's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrForeign
	}
	return stream(s, c, x)
}

// fits checks that a list is not longer than an XLSX file.
func fits(l *listing, span list.Slice) error {
	ctx, cancel := l.context()
	defer cancel()
	n, more, err := l.filter.Newer(ctx, l.s.DB, span, 0, sheet.MaxRows)
	if err != nil {
		return slow(ctx, err)
	}
	if n == sheet.MaxRows && more {
		return tooLong(l)
	}
	return nil
}

// tooLong says how to split a list that is longer than an XLSX file: at the middle of its time, or by
// month where it begins with the oldest row.
func tooLong(l *listing) error {
	rows := ui.Count(sheet.MaxRows)
	if l.span.From == 0 {
		return web.Invalid("format", tTooLong, rows)
	}
	end := cmp.Or(l.span.To, l.p.Now.UnixMicro())
	middle := l.p.At(l.span.From + (end-l.span.From)/2).Format("2006-01-02T15:04")
	return web.Invalid("format", tTooLongHalf, rows, middle)
}

var (
	tTooLong = text.Text{
		ZH: "超过 XLSX 文件的上限 %s 行：请导出 CSV（没有上限），或用“从”和“到”按月分段导出",
		EN: "the list has more than the %s rows of an XLSX file: export CSV, which has no limit, or one month at a time with From and Until",
	}
	tTooLongHalf = text.Text{
		ZH: "超过 XLSX 文件的上限 %[1]s 行：请导出 CSV（没有上限），或分两段导出：到 %[2]s 为止，再从 %[2]s 起",
		EN: "the list has more than the %[1]s rows of an XLSX file: export CSV, which has no limit, or two halves: until %[2]s, and from %[2]s",
	}
)

// exported is a table to be exported.
type exported[T any] struct {
	format       sheet.Format
	name, filter string
	page         *ui.Page
	columns      []ui.Column[T]
	each         func(fn func(T) error) error
}

// maxColumns bounds the bytes of ?columns=.
const maxColumns = 512

// chosenColumns returns ?columns=, as words separated by commas; "" = none were chosen.
func chosenColumns(c *fiber.Ctx) string {
	var all []string
	for _, v := range c.Request().URI().QueryArgs().PeekMulti("columns") {
		all = append(all, columnWords(string(v))...)
	}
	return strings.Join(all, ",")
}

func columnWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// stream records an export in the audit, and sends it. ?columns= chooses columns, as words
// separated by commas or as repeated parameters.
func stream[T any](s *handlers, c *fiber.Ctx, x exported[T]) error {
	chosen := chosenColumns(c)
	columns, err := ui.Choose(x.columns, columnWords(chosen))
	if err != nil {
		return web.InvalidField("columns", err.Error())
	}
	by, file := "operator:"+web.Operator(c).Name, ui.NewFile(x.page, ui.Headings(columns))
	params := map[string]any{"filter": x.filter, "format": string(x.format)}
	if chosen != "" {
		params["columns"] = chosen
	}
	return s.StreamTable(c, web.Table{
		Format: x.format, Name: x.name + x.page.Now.In(x.page.Zone).Format("-20060102-150405"), By: by,
		Title: ui.ExportTitle(x.page, x.filter, by), Heads: file.Heads(),
		Begin: func() error {
			return s.keepAct(c, audit.Act{Actor: by, Action: "list.export", Object: "list", ObjectID: x.name, Params: params})
		},
		Each: func(write func([]string) error) error {
			cells, texts := make([]ui.Cell, len(columns)), make([]string, len(columns))
			return x.each(func(row T) error {
				for i, column := range columns {
					cells[i] = column.Cell(x.page, row)
				}
				file.Add(cells, texts)
				return write(texts)
			})
		},
		Foot: file.Totals,
	})
}
