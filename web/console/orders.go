package console

import (
	"context"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/views/orders"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) orders() listPage[console.Order] {
	return listPage[console.Order]{
		spec: console.OrderList, read: s.Console.Orders, columns: orders.OrderColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.Order) (templ.Component, error) {
			return orders.Orders(p, l, s.Batches.Actions(act.Actor{Roles: p.Roles}, "order")), nil
		},
		number: "no", only: func(o console.Order) string { return orderPath(o.OrderNo) },
		bars: s.Console.CallbackBars, barsBy: "supplier",
		ofRole: map[string][]string{access.Finance: orders.FinanceColumns},
	}
}

func orderPath(no string) string { return "/orders/" + url.PathEscape(no) }
