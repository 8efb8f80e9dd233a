package web

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"

	"github.com/gofiber/fiber/v2"
)

// Sizes of the admin API's pages.
const (
	pageSize    = 50
	maxPageSize = 200
	maxFilter   = 256 // bytes of one filter's value
)

// page is one page of anything. Next is the cursor of the next page, empty at the
// end.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// exceptionView is an exception as the admin API shows it.
type exceptionView struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	OrderNo  string          `json:"order_no"`
	State    string          `json:"state"`
	Amount   int64           `json:"amount"`
	Currency string          `json:"currency"`
	OpenedAt string          `json:"opened_at"`
	Detail   json.RawMessage `json:"detail"`
}

func (s *Server) listExceptions(c *fiber.Ctx) error {
	f := readFilter(c)
	q := compensation.Query{
		OrderNo: f.text("order_no"), Kind: f.oneOf("kind", compensation.Kinds), State: compensation.State(f.oneOf("state", compensation.States)), Before: f.cursor(), Limit: f.limit(),
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	items, next, err := compensation.List(ctx, s.o.DB.Read, q)
	if err != nil {
		return err
	}
	out := page[exceptionView]{Items: make([]exceptionView, len(items)), Next: cursorText(next)}
	for i, x := range items {
		console.MaskException(&x)
		out.Items[i] = exceptionView{
			ID: strconv.FormatInt(x.ID, 10), Kind: x.Kind, OrderNo: x.OrderNo, State: string(x.State),
			Amount: x.Amount, Currency: x.Currency, OpenedAt: notify.Stamp(x.OpenedAt), Detail: x.Detail,
		}
	}
	return c.JSON(out)
}

// callbackView is a raw callback as the admin API shows it.
type callbackView struct {
	ID         string     `json:"id"`
	Supplier   string     `json:"supplier"`
	ReceivedAt string     `json:"received_at"`
	RemoteAddr string     `json:"remote_addr"`
	Outcome    string     `json:"outcome"`
	Steps      []stepView `json:"steps"`
	OrderNo    string     `json:"order_no"`
}

type stepView struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (s *Server) listCallbacks(c *fiber.Ctx) error {
	f := readFilter(c)
	q := callback.Query{
		OrderNo: f.text("order_no"), Supplier: f.text("supplier"), Outcome: f.oneOf("outcome", callback.Outcomes), Refused: f.yes("refused", true),
		Before: f.cursor(), Limit: f.limit(),
	}
	if f.err != nil {
		return f.err
	}
	ctx, cancel := work()
	defer cancel()
	rows, next, err := callback.List(ctx, s.o.DB.Read, q)
	if err != nil {
		return err
	}
	out := page[callbackView]{Items: make([]callbackView, len(rows)), Next: cursorText(next)}
	for i, r := range rows {
		console.MaskCallback(&r)
		steps := make([]stepView, len(r.Steps))
		for j, step := range r.Steps {
			steps[j] = stepView{Name: step.Name, OK: step.OK, Detail: step.Detail}
		}
		out.Items[i] = callbackView{
			ID: strconv.FormatInt(r.ID, 10), Supplier: r.Supplier, ReceivedAt: notify.Stamp(r.ReceivedAt),
			RemoteAddr: r.RemoteAddr, Outcome: r.Outcome, Steps: steps, OrderNo: r.OrderNo,
		}
	}
	return c.JSON(out)
}

// filter reads a list's parameters; the first problem is kept.
type filter struct {
	c   *fiber.Ctx
	err error
}

func readFilter(c *fiber.Ctx) *filter { return &filter{c: c} }

func (f *filter) blame(name, problem string) {
	if f.err == nil {
		f.err = invalidField(name, problem)
	}
}

func (f *filter) text(name string) string {
	text := f.c.Query(name)
	if len(text) > maxFilter || !isStorable(text) {
		f.blame(name, fmt.Sprintf("use at most %d bytes without control characters", maxFilter))
	}
	return text
}

// oneOf reads a value out of a few: a slip of the pen must not look as if nothing
// had happened.
func (f *filter) oneOf(name string, known []string) string {
	text := f.text(name)
	if text != "" && !slices.Contains(known, text) {
		f.blame(name, "use one of "+strings.Join(known, ", "))
	}
	return text
}

var errUnknownCode = invalidField("merchant", "nobody has this code")

// told reads the code of a merchant or of one of the house's systems, and finds its
// id; 0 where none is given.
func (s *Server) told(ctx context.Context, code string) (id int64, err error) {
	if code == "" {
		return 0, nil
	}
	if id, err = s.console.ToldID(ctx, code); err == nil && id == 0 {
		err = errUnknownCode
	}
	return id, err
}

func (f *filter) yes(name string, otherwise bool) bool {
	switch f.text(name) {
	case "":
		return otherwise
	case "true", "1":
		return true
	case "false", "0":
	default:
		f.blame(name, "use true or false")
	}
	return false
}

func (f *filter) limit() int {
	text := f.text("limit")
	if text == "" {
		return pageSize
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPageSize {
		f.blame("limit", fmt.Sprintf("use a number from 1 to %d", maxPageSize))
	}
	return n
}

// Cursors are opaque to clients: base 36 of an id today.

func (f *filter) cursor() int64 { return f.id("cursor") }

// id reads the cursor of that name, 0 = none.
func (f *filter) id(name string) int64 {
	text := f.text(name)
	if text == "" {
		return 0
	}
	id, err := strconv.ParseInt(text, 36, 64)
	if err != nil || id < 1 {
		f.blame(name, "use the next of the page before")
	}
	return id
}

func cursorText(before int64) string {
	if before == 0 {
		return ""
	}
	return strconv.FormatInt(before, 36)
}
