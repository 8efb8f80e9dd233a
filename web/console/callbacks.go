package console

import (
	"context"

	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) callbacks() listPage[callback.Row] {
	return listPage[callback.Row]{
		spec: console.CallbackList, read: s.Console.Callbacks,
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("no") != "" {
				return nil, nil
			}
			return s.Console.CallbackBars(ctx, q.Get("supplier"), span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []callback.Row) (templ.Component, error) {
			return pages.Callbacks(p, l, rows, s.Config.PublicURL), nil
		},
	}
}
