package web

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
)

// MaxExports is how many exports run at a time on one node: each reads the database for as long
// as its table is.
const MaxExports = 4

// csvRows is how many rows are written before the write deadline is extended.
const csvRows = 500

// CSV is a streamed table.
type CSV struct {
	Name  string // of the file, without extension
	By    string // who exports, for the log
	Title string // the first row: the filter, when, and by whom
	Heads []string
	// Begin runs once the export may start; nil = nothing. Its error is the response.
	Begin func() error
	// Each calls write with each row. Read rows by page, without a transaction.
	Each func(write func(cells []string) error) error
}

// StreamCSV sends a table. It is streamed, so that memory does not grow with the table. An
// error after the first page closes the connection, which a browser reports as a failed
// download.
func (s *Server) StreamCSV(c *fiber.Ctx, x CSV) error {
	select {
	case s.exports <- struct{}{}:
	default:
		return ErrTooMany
	}
	if x.Begin != nil {
		if err := x.Begin(); err != nil {
			<-s.exports
			return err
		}
	}
	conn, limit := c.Context().Conn(), s.Config.HTTPWriteTimeout
	body, w := io.Pipe()
	go func() {
		defer func() { <-s.exports }()
		out := csv.NewWriter(w)
		_, _ = io.WriteString(w, "\ufeff") // without it Excel reads Chinese in the machine's code page
		title := make([]string, len(x.Heads))
		title[0] = x.Title
		_ = out.Write(title)
		_ = out.Write(x.Heads)
		n := 0
		err := x.Each(func(cells []string) error {
			if n%csvRows == 0 {
				_ = conn.SetWriteDeadline(time.Now().Add(limit)) // per page, not for the whole table
				if out.Flush(); out.Error() != nil {
					return out.Error()
				}
			}
			n++
			for i := range cells {
				cells[i] = harmless(cells[i])
			}
			return out.Write(cells)
		})
		_ = conn.SetWriteDeadline(time.Now().Add(limit))
		if out.Flush(); err == nil {
			err = out.Error()
		}
		if err != nil && !errors.Is(err, io.ErrClosedPipe) { // in that case the client has left
			s.Log.Warn("an export ended early", "list", x.Name, "by", x.By, "error", err)
		}
		_ = w.CloseWithError(err)
	}()
	c.Status(http.StatusOK).Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+x.Name+`.csv"`)
	c.Context().SetBodyStream(body, -1)
	return nil
}

// formula are the first characters of cells that a spreadsheet would compute; full-width signs
// count like the narrow ones in some languages.
const formula = "=+-@\t\r\n＝＋－＠"

var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// harmless keeps a spreadsheet from computing what others wrote into a cell.
func harmless(cell string) string {
	if cell == "" || plainNumber.MatchString(cell) || !strings.ContainsAny(string([]rune(cell)[:1]), formula) {
		return cell
	}
	return "'" + cell
}
