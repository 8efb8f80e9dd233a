package console

import (
	"context"
	"net/url"

	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) orders() listPage[console.Order] {
	return listPage[console.Order]{
		spec: console.OrderList, read: s.Console.Orders,
		only: func(q list.Query, o console.Order) string {
			if q.Get("no") == "" {
				return ""
			}
			return "/orders/" + url.PathEscape(o.OrderNo)
		},
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("merchant") != "" || q.Get("no") != "" || q.Get("risk") != "" || q.Get("amount") != "" {
				return nil, nil
			}
			return s.Console.CallbackBars(ctx, q.Get("supplier"), span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []console.Order) (templ.Component, error) {
			return pages.Orders(p, l, rows), nil
		},
	}
}
