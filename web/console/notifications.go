package console

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) notifications() listPage[console.Delivery] {
	return listPage[console.Delivery]{
		spec: console.DeliveryList, read: s.Console.Deliveries,
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("no") != "" || q.Get("risk") != "" {
				return nil, nil
			}
			return s.Console.AttemptBars(ctx, q.Get("merchant"), span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []console.Delivery) (templ.Component, error) {
			return pages.Notifications(p, l, rows, s.Policy.Allows(p.Role, access.ResendMany)), nil
		},
	}
}
