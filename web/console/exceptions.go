package console

import (
	"context"

	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) exceptions() listPage[compensation.Item] {
	return listPage[compensation.Item]{
		spec: console.ExceptionList, always: true, read: s.Console.Exceptions,
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []compensation.Item) (templ.Component, error) {
			return pages.Exceptions(p, l, rows), nil
		},
	}
}
