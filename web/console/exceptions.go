package console

import (
	"context"

	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/views/pages"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func (s *handlers) exceptions() listPage[exception.Item] {
	return listPage[exception.Item]{
		spec: console.ExceptionList, always: true, read: s.Console.Exceptions,
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []exception.Item) (templ.Component, error) {
			return pages.Exceptions(p, l, rows), nil
		},
	}
}
