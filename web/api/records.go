package api

import (
	"context"
	"strconv"

	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// page is one page of a list. Next is the cursor of the next page, null at the end.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// pageOf converts one page of rows; next is the id after which the next page begins, 0 = none.
func pageOf[R, T any](rows []R, next int64, view func(R) T) page[T] {
	p := page[T]{Items: make([]T, len(rows)), Next: orNull(cursorText(next))}
	for i, r := range rows {
		p.Items[i] = view(r)
	}
	return p
}

// callbackView is a raw callback in the admin API.
type callbackView struct {
	ID         string     `json:"id"`
	Supplier   string     `json:"supplier"`
	ReceivedAt string     `json:"received_at"`
	RemoteAddr string     `json:"remote_addr"`
	Outcome    string     `json:"outcome"`
	Steps      []stepView `json:"steps"`
	OrderNo    *string    `json:"order_no"`
}

type stepView struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (s *handlers) listCallbacks(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("order_no", "supplier", "outcome", "refused", "cursor", "limit")
	q := list.Query{Spec: console.CallbackList, Scope: list.All()}.With("no", f.Text("order_no")).
		With("supplier", f.Text("supplier")).With("outcome", f.OneOf("outcome", callback.Outcomes))
	if !f.Yes("refused", true) && !callback.IsRefusal(q.Get("outcome")) { // filtering by a refusal includes refusals
		q = q.With("refused", "no")
	}
	slice := sliceOf(f)
	if f.Err != nil {
		return f.Err
	}
	found, err := s.Console.Callbacks(c.UserContext(), q, slice)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, func(r callback.Row) callbackView {
		steps := make([]stepView, len(r.Steps))
		for i, step := range r.Steps {
			steps[i] = stepView{Name: step.Name, OK: step.OK, Detail: step.Text(s.Texts)}
		}
		return callbackView{
			ID: strconv.FormatInt(r.ID, 10), Supplier: r.Supplier, ReceivedAt: notify.Stamp(r.ReceivedAt),
			RemoteAddr: r.RemoteAddr, Outcome: r.Outcome, Steps: steps, OrderNo: orNull(r.OrderNo),
		}
	}))
}

var errUnknownCode = web.InvalidField("merchant", "no merchant or subscriber has this code")

// recipientID returns the id of the merchant or subscriber with a code; 0 if no code is given.
func (s *handlers) recipientID(ctx context.Context, code string) (id int64, err error) {
	if code == "" {
		return 0, nil
	}
	if id, err = s.Console.RecipientID(ctx, code); err == nil && id == 0 {
		err = errUnknownCode
	}
	return id, err
}

// sliceOf returns the requested page.
func sliceOf(f *web.Filter) list.Slice {
	return list.Slice{At: list.Cursor{ID: f.Cursor()}, Rows: f.Limit(), Uncounted: true}
}

// cursorText returns the cursor after an id; it is opaque to clients.
func cursorText(before int64) string {
	if before == 0 {
		return ""
	}
	return strconv.FormatInt(before, 36)
}
