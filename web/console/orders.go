package console

import (
	"context"
	"net/url"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/orders"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) orders() listPage[console.Order] {
	return listPage[console.Order]{
		spec: console.OrderList, read: s.Console.Orders, columns: orders.OrderColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.Order) (templ.Component, error) {
			return orders.Orders(p, l, s.Batches.Actions(act.Actor{Role: p.Role}, "order")), nil
		},
		number: "no", only: func(o console.Order) string { return orderPath(o.OrderNo) },
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("merchant") != "" || q.Get("no") != "" || q.Get("risk") != "" || q.Get("amount") != "" {
				return nil, nil
			}
			return s.Console.CallbackBars(ctx, q.Get("supplier"), span)
		},
	}
}

func orderPath(no string) string { return "/orders/" + url.PathEscape(no) }
