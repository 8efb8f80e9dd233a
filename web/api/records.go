package api

import (
	"context"
	"encoding/json"
	"strconv"

	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
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

func (s *handlers) listExceptions(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	q := compensation.Query{
		OrderNo: f.Text("order_no"), Kind: f.OneOf("kind", compensation.Kinds), State: f.OneOf("state", compensation.States), Before: f.Cursor(), Limit: f.Limit(),
	}
	if f.Err != nil {
		return f.Err
	}
	ctx, cancel := web.Work()
	defer cancel()
	items, next, err := compensation.List(ctx, s.DB.Read, q)
	if err != nil {
		return err
	}
	out := page[exceptionView]{Items: make([]exceptionView, len(items)), Next: cursorText(next)}
	for i, x := range items {
		console.MaskException(&x)
		out.Items[i] = exceptionView{
			ID: strconv.FormatInt(x.ID, 10), Kind: x.Kind, OrderNo: x.OrderNo, State: x.State,
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

func (s *handlers) listCallbacks(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	q := callback.Query{
		OrderNo: f.Text("order_no"), Supplier: f.Text("supplier"), Outcome: f.OneOf("outcome", callback.Outcomes), Refused: f.Yes("refused", true),
		Before: f.Cursor(), Limit: f.Limit(),
	}
	if f.Err != nil {
		return f.Err
	}
	ctx, cancel := web.Work()
	defer cancel()
	rows, next, err := callback.List(ctx, s.DB.Read, q)
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

var errUnknownCode = web.InvalidField("merchant", "nobody has this code")

// told reads the code of a merchant or of one of the house's systems, and finds its
// id; 0 where none is given.
func (s *handlers) told(ctx context.Context, code string) (id int64, err error) {
	if code == "" {
		return 0, nil
	}
	if id, err = s.Console.ToldID(ctx, code); err == nil && id == 0 {
		err = errUnknownCode
	}
	return id, err
}

// Cursors are opaque to clients: base 36 of an id today.

func cursorText(before int64) string {
	if before == 0 {
		return ""
	}
	return strconv.FormatInt(before, 36)
}
