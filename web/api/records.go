package api

import (
	"cmp"
	"context"
	"strconv"

	"backstop/internal/base/field"
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

type callbacksQuery struct {
	OrderNo  string `query:"order_no" filter:"no" doc:"The order's number."`
	Supplier string `query:"supplier" doc:"The supplier's code, known or not."`
	Outcome  string `query:"outcome" doc:"What became of it."`
	Refused  bool   `query:"refused" default:"true" doc:"Whether rejected callbacks are included."`
	paging
}

func (callbacksQuery) choices() map[string][]string {
	return map[string][]string{"outcome": callback.Outcomes}
}

func (s *handlers) listCallbacks(c *fiber.Ctx) error {
	q, slice := s.sliceOf(c, console.CallbackList)
	if !requestOf[callbacksQuery](c).Refused && !callback.IsRefusal(q.Get("outcome")) { // filtering by a refusal includes refusals
		q = q.With("refused", "no")
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

// noQuery is a request without parameters.
type noQuery struct{}

// paging is which page of a list a request wants.
type paging struct {
	Cursor int64 `query:"cursor" kind:"cursor" doc:"The value of next from the previous page."`
	Limit  int64 `query:"limit" kind:"limit" doc:"The number of rows on a page: 1 to 200, 50 by default."`
}

// span is the time of the rows that a request wants.
type span struct {
	From int64 `query:"from" kind:"time" doc:"At or after this time."`
	To   int64 `query:"to" kind:"time" doc:"Before this time."`
}

// codes filter a list by people that must exist: a typing error must not look like an empty list.
type codes struct {
	Supplier string `query:"supplier" doc:"The supplier's code."`
	Merchant string `query:"merchant" doc:"The merchant's code."`
}

// sliceOf returns the filter and the page of a list that the request names.
func (s *handlers) sliceOf(c *fiber.Ctx, spec *list.Spec) (list.Query, list.Slice) {
	q, slice := list.Query{Spec: spec, Scope: s.Scope(c)}, list.Slice{Uncounted: true}
	r := c.Locals(localRequest{}).(*request)
	for _, p := range r.params {
		switch v := r.to.Elem().FieldByIndex(p.Index); {
		case p.Kind == field.Cursor:
			slice.At.ID = v.Int()
		case p.Kind == field.Limit:
			slice.Rows = int(v.Int())
		case p.Name == "from":
			slice.From = v.Int()
		case p.Name == "to":
			slice.To = v.Int()
		case p.Kind == field.Line && p.Filter != "-":
			q = q.With(cmp.Or(p.Filter, p.Name), v.String())
		}
	}
	return q, slice
}

// listed responds with one page of a list.
func listed[R, V any](s *handlers, c *fiber.Ctx, spec *list.Spec, read func(context.Context, list.Query, list.Slice) (list.Page[R], error),
	view func(R) V,
) error {
	q, slice := s.sliceOf(c, spec)
	if err := s.knownCodes(c, q.Get("supplier"), q.Get("merchant")); err != nil {
		return err
	}
	found, err := read(c.UserContext(), q, slice)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, view))
}

// cursorText returns the cursor after an id; it is opaque to clients.
func cursorText(before int64) string {
	if before == 0 {
		return ""
	}
	return strconv.FormatInt(before, 36)
}
