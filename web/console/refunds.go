package console

import (
	"context"
	"net/http"

	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) refunds() listPage[console.Refund] {
	return listPage[console.Refund]{
		spec: console.RefundList, always: true, read: s.Console.Refunds, columns: pages.RefundColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []console.Refund) (templ.Component, error) {
			return pages.Refunds(p, l, rows), nil
		},
		only: func(q list.Query, r console.Refund) string {
			if q.Get("refund_no") == "" {
				return ""
			}
			return refundPath(r.RefundNo)
		},
	}
}

func (s *handlers) refundPage(c *fiber.Ctx) error {
	no, err := web.RefundNo(c)
	if err != nil {
		return err
	}
	d, err := s.Console.RefundDetail(c.UserContext(), no)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.RefundPage(s.Page(c), pages.RefundData{RefundDetail: d}))
}

func refundPath(no string) string { return "/refunds/" + no }
