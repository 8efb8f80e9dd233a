package api

import (
	"context"
	"encoding/json"
	"strconv"

	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"
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
	q := list.Query{Spec: console.ExceptionList, Scope: list.All()}.With("no", f.Text("order_no")).
		With("kind", f.OneOf("kind", exception.Kinds)).With("state", f.OneOf("state", exception.Moves.Words()))
	slice := sliceOf(f)
	if f.Err != nil {
		return f.Err
	}
	ctx, cancel := web.Work()
	defer cancel()
	found, err := s.Console.Exceptions(ctx, q, slice)
	if err != nil {
		return err
	}
	out := page[exceptionView]{Items: make([]exceptionView, len(found.Rows)), Next: cursorText(found.Older.ID)}
	for i, x := range found.Rows {
		out.Items[i] = exceptionView{
			ID: strconv.FormatInt(x.ID, 10), Kind: x.Kind, OrderNo: x.OrderNo, State: string(x.State),
			Amount: x.Amount, Currency: x.Currency, OpenedAt: notify.Stamp(x.OpenedAt), Detail: inWords(x.Detail),
		}
	}
	return c.JSON(out)
}

// inWords leaves the code of a reason out of an exception's detail, which has the
// reason in English beside it.
func inWords(detail json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(detail, &fields) != nil || fields["said"] == nil {
		return detail
	}
	delete(fields, "said")
	plain, err := json.Marshal(fields)
	if err != nil {
		return detail
	}
	return plain
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
	q := list.Query{Spec: console.CallbackList, Scope: list.All()}.With("no", f.Text("order_no")).
		With("supplier", f.Text("supplier")).With("outcome", f.OneOf("outcome", callback.Outcomes))
	if !f.Yes("refused", true) && !callback.IsRefusal(q.Get("outcome")) { // whoever asks for a refusal wants it
		q = q.With("refused", "no")
	}
	slice := sliceOf(f)
	if f.Err != nil {
		return f.Err
	}
	ctx, cancel := web.Work()
	defer cancel()
	found, err := s.Console.Callbacks(ctx, q, slice)
	if err != nil {
		return err
	}
	out := page[callbackView]{Items: make([]callbackView, len(found.Rows)), Next: cursorText(found.Older.ID)}
	for i, r := range found.Rows {
		steps := make([]stepView, len(r.Steps))
		for j, step := range r.Steps {
			steps[j] = stepView{Name: step.Name, OK: step.OK, Detail: step.Text(s.Texts)}
		}
		out.Items[i] = callbackView{
			ID: strconv.FormatInt(r.ID, 10), Supplier: r.Supplier, ReceivedAt: notify.Stamp(r.ReceivedAt),
			RemoteAddr: r.RemoteAddr, Outcome: r.Outcome, Steps: steps, OrderNo: r.OrderNo,
		}
	}
	return c.JSON(out)
}

var errUnknownCode = web.InvalidField("merchant", "nobody has this code")

// told reads the code of a merchant or of a subscriber, and finds its id; 0 where none
// is given.
func (s *handlers) told(ctx context.Context, code string) (id int64, err error) {
	if code == "" {
		return 0, nil
	}
	if id, err = s.Console.RecipientID(ctx, code); err == nil && id == 0 {
		err = errUnknownCode
	}
	return id, err
}

// Cursors are opaque to clients: base 36 of an id today.

// sliceOf is the page that is asked for.
func sliceOf(f *web.Filter) list.Slice {
	return list.Slice{At: list.Cursor{ID: f.Cursor()}, Rows: f.Limit(), Uncounted: true}
}

func cursorText(before int64) string {
	if before == 0 {
		return ""
	}
	return strconv.FormatInt(before, 36)
}
