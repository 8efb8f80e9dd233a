package api

import (
	"strconv"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/orderquery"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// callView is a call to a supplier in the admin API.
type callView struct {
	ID         string  `json:"id"`
	Supplier   string  `json:"supplier"`
	Op         string  `json:"op"`
	Reference  string  `json:"reference"`
	Class      *string `json:"class"`  // null = its end is unknown
	Status     *string `json:"status"` // the supplier's answer
	HTTPStatus *int    `json:"http_status"`
	TookMS     *int64  `json:"took_ms"`
	At         string  `json:"at"`
	Node       string  `json:"node"`
	Request    *string `json:"request"`
	Answer     *string `json:"answer"`
}

type callsQuery struct {
	OrderNo  string `query:"order_no" doc:"The order's number."`
	Supplier string `query:"supplier" doc:"The supplier's code."`
	Op       string `query:"op" doc:"What was called."`
	Class    string `query:"class" doc:"How it ended."`
	paging
}

func (callsQuery) choices() map[string][]string {
	return map[string][]string{"op": texts(suppliercall.Ops), "class": texts(supplier.Classes)}
}

func (s *handlers) listCalls(c *fiber.Ctx) error {
	return listed(s, c, console.CallList, s.Console.Calls, func(r console.Call) callView {
		v := callView{
			ID: strconv.FormatInt(r.ID, 10), Supplier: r.Supplier, Op: string(r.Op), Reference: r.Reference,
			Class: orNull(string(r.Class)), Status: orNull(r.Status), At: notify.Stamp(r.StartedAt), Node: r.Node,
			Request: orNull(r.Request), Answer: orNull(r.Answer),
		}
		if r.HTTPStatus != 0 {
			v.HTTPStatus = &r.HTTPStatus
		}
		if r.TookUS != nil {
			ms := *r.TookUS / 1000
			v.TookMS = &ms
		}
		return v
	})
}

func texts[W ~string](all []W) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

// answerView is a supplier's answer to a query by an operator or a service.
type answerView struct {
	Answer   string    `json:"answer"`
	Detail   *string   `json:"detail"`
	TradeNo  *string   `json:"trade_no"`
	Amount   *int64    `json:"amount"`
	Currency *string   `json:"currency"`
	TookMS   int64     `json:"took_ms"`
	Order    orderView `json:"order"`
	Call     string    `json:"call"`
	Refunded bool      `json:"refunded"`
}

// queryRequest is the body of a query, which is required.
type queryRequest struct {
	Reason string `json:"reason" max:"10000" required:"true"`
}

func readQuery(c *fiber.Ctx, call *act.Call) error {
	call.Reason = requestOf[queryRequest](c).Reason
	return nil
}

// showAnswer responds with the answer of an order's supplier, which is confirmed by now.
func (s *handlers) showAnswer(c *fiber.Ctx, done web.Acted) (err error) {
	x := done.Result.(orderquery.Answer)
	v := viewAnswer(x)
	if v.Order, err = s.orderOf(c.UserContext(), x.Order); err != nil {
		return err
	}
	return c.JSON(v)
}

// viewAnswer converts an answer. What the supplier does not have, or does not say reliably, has
// no money.
func viewAnswer(x orderquery.Answer) answerView {
	v := answerView{Answer: string(x.State), TookMS: x.Took.Milliseconds(), Call: x.CallText(), Refunded: x.Refunded()}
	if x.Reason.Code != "" {
		detail := x.Reason.Error()
		v.Detail = &detail
	}
	if x.State != supplier.AnswerUnknown && x.State != supplier.AnswerNotFound {
		v.TradeNo, v.Currency = orNull(x.Says.TradeNo), orNull(x.Says.Currency)
		if x.Says.Currency != "" {
			v.Amount = &x.Says.Amount
		}
	}
	return v
}
