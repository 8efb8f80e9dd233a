package web

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"backstop/internal/base/sheet"

	"github.com/gofiber/fiber/v2"
)

// MaxExports is how many exports run at a time on one node: each reads the database for as long
// as its table is.
const MaxExports = 4

// flushRows is how many rows are written before the write deadline is extended.
const flushRows = 500

// Table is a table to be streamed.
type Table struct {
	Format sheet.Format
	Name   string // of the file, without extension
	By     string // who exports, for the log
	Title  string // the filter, when, and by whom
	Heads  []sheet.Head
	// Begin runs once the export may start; nil = nothing. Its error is the response.
	Begin func() error
	// Each calls write with each row. Read rows by page, without a transaction.
	Each func(write func(cells []string) error) error
	// Foot returns the rows after the last one, such as totals; nil = none.
	Foot func() [][]string
}

// ReadFormat reads ?format= of a table; "" = it is not exported.
func ReadFormat(c *fiber.Ctx) (sheet.Format, error) {
	f := sheet.Format(c.Query("format"))
	if f != "" && !slices.Contains(sheet.Formats, f) {
		return "", InvalidField("format", "must be csv or xlsx")
	}
	return f, nil
}

// StreamTable sends a table. It is streamed, so that memory does not grow with the table. An
// error after the first page closes the connection, which a browser reports as a failed
// download.
func (s *Server) StreamTable(c *fiber.Ctx, t Table) error {
	select {
	case s.exports <- struct{}{}:
	default:
		return ErrTooMany
	}
	if t.Begin != nil {
		if err := t.Begin(); err != nil {
			<-s.exports
			return err
		}
	}
	conn, limit := c.Context().Conn(), s.Config.HTTPWriteTimeout
	body, w := io.Pipe()
	go func() {
		defer func() { <-s.exports }()
		err := t.write(w, func() { _ = conn.SetWriteDeadline(time.Now().Add(limit)) }) // per page, not for the whole table
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {                           // in that case the client has left
			s.Log.Warn("an export ended early", "list", t.Name, "by", t.By, "error", err)
		}
		_ = w.CloseWithError(err)
	}()
	c.Status(http.StatusOK).Set(fiber.HeaderContentType, t.Format.ContentType())
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+t.Name+"."+string(t.Format)+`"`)
	c.Context().SetBodyStream(body, -1)
	return nil
}

// write writes the whole table; extend is called before each page of it.
func (t *Table) write(w io.Writer, extend func()) error {
	extend()
	out, err := sheet.New(t.Format, w, t.Title, t.Heads)
	if err != nil {
		return err
	}
	n := 0
	err = t.Each(func(cells []string) error {
		if n%flushRows == 0 {
			extend()
			if err := out.Flush(); err != nil {
				return err
			}
		}
		n++
		return out.Row(cells)
	})
	if err != nil {
		return err
	}
	extend()
	var foot [][]string
	if t.Foot != nil {
		foot = t.Foot()
	}
	return out.End(foot)
}
