package console

import (
	"net/http"

	"backstop/internal/console"
	"backstop/views/funds"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) refunds() listPage[console.Refund] {
	return listPage[console.Refund]{
		spec: console.RefundList, always: true, read: s.Console.Refunds, columns: funds.RefundColumns,
		number: "refund_no", only: func(r console.Refund) string { return refundPath(r.RefundNo) },
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
	return s.Render(c, http.StatusOK, funds.RefundPage(s.Page(c), funds.RefundData{RefundDetail: d}))
}

func refundPath(no string) string { return "/refunds/" + no }
