package console

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"backstop/internal/audit"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// maxExports is how many exports run at a time on one node: each reads the database for
// as long as its list is.
const maxExports = 4

// export answers with all that the filter of a list finds as CSV, whatever the page. It is
// streamed: a page is read when the one before it was written, so that neither
// memory nor a transaction grows with the list. An error after the first page ends the
// connection, which a browser reports as a failed download.
func export[T any](s *handlers, c *fiber.Ctx, page listPage[T], l *listing) error {
	if page.columns == nil {
		return web.InvalidField("format", "this list has no export")
	}
	// Another site's link must not write into the audit in the operator's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrForeign
	}
	select {
	case s.exports <- struct{}{}:
	default:
		return web.ErrTooMany
	}
	running := false
	defer func() {
		if !running {
			<-s.exports
		}
	}()
	read := func(span list.Slice) (list.Page[T], error) {
		ctx, cancel := l.context()
		defer cancel()
		rows, err := page.read(ctx, l.filter, span)
		return rows, slow(ctx, err)
	}
	span := l.span
	span.At, span.Uncounted = list.Cursor{}, true
	first, err := read(span) // an error is still an answer here
	if err != nil {
		return err
	}
	by := "operator:" + web.Operator(c).Name
	err = s.keepAct(c, audit.Act{
		Actor: by, Action: "list.export", Object: "list", ObjectID: page.spec.Name,
		Params: map[string]any{"filter": l.query.Values.Encode(), "format": "csv"},
	})
	if err != nil {
		return err
	}
	columns := page.columns(l.p)
	conn, limit := c.Context().Conn(), s.Config.HTTPWriteTimeout
	body, w := io.Pipe()
	running = true
	go func() {
		defer func() { <-s.exports }()
		out := csv.NewWriter(w)
		_, _ = io.WriteString(w, "\ufeff") // or Excel reads Chinese as the code page of the machine
		_ = out.Write(pages.Titled(columns, pages.ExportTitle(l.p, l.query.Values.Encode(), by)))
		_ = out.Write(pages.Heads(columns))
		err := list.Each(span, func(span list.Slice) (list.Page[T], error) {
			rows := first
			if span.At != (list.Cursor{}) {
				var err error
				if rows, err = read(span); err != nil {
					return rows, err
				}
			}
			_ = conn.SetWriteDeadline(time.Now().Add(limit)) // of a page, not of the whole list
			out.Flush()
			return rows, out.Error()
		}, func(row T) error {
			cells := make([]string, len(columns))
			for i, column := range columns {
				cells[i] = harmless(column.Cell(row))
			}
			return out.Write(cells)
		})
		if out.Flush(); err == nil {
			err = out.Error()
		}
		if err != nil && !errors.Is(err, io.ErrClosedPipe) { // that one is a client who left
			s.Log.Warn("an export ended early", "list", page.spec.Name, "by", by, "error", err)
		}
		_ = w.CloseWithError(err)
	}()
	c.Status(http.StatusOK).Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+page.spec.Name+l.p.Now.In(l.p.Zone).Format("-20060102-150405")+`.csv"`)
	c.Context().SetBodyStream(body, -1)
	return nil
}

// formula begins a cell that a spreadsheet would compute; the wide signs are taken for
// the narrow ones in some languages.
const formula = "=+-@\t\r\n＝＋－＠"

var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// harmless keeps a spreadsheet from computing what others wrote into a cell.
func harmless(cell string) string {
	if cell == "" || plainNumber.MatchString(cell) || !strings.ContainsAny(string([]rune(cell)[:1]), formula) {
		return cell
	}
	return "'" + cell
}
