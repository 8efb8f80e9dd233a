package console

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/fund/dispute"
	"backstop/views/funds"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
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

func (s *handlers) payouts() listPage[console.Payout] {
	return listPage[console.Payout]{
		spec: console.PayoutList, always: true, read: s.Console.Payouts, columns: funds.PayoutColumns,
		number: "payout_no", only: func(r console.Payout) string { return "/payouts/" + r.PayoutNo },
	}
}

func (s *handlers) payoutPage(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	d, err := s.Console.PayoutDetail(c.UserContext(), no)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, funds.PayoutPage(s.Page(c), funds.PayoutData{PayoutDetail: d}))
}

func (s *handlers) disputes() listPage[console.Dispute] {
	return listPage[console.Dispute]{
		spec: console.DisputeList, always: true, read: s.Console.Disputes, columns: funds.DisputeColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.Dispute) (templ.Component, error) {
			return funds.Disputes(p, l), nil
		},
		number: "dispute_no", only: func(r console.Dispute) string { return disputePath(r.DisputeNo) },
	}
}

func (s *handlers) disputePage(c *fiber.Ctx) error {
	no, err := web.DisputeNo(c)
	if err != nil {
		return err
	}
	d := funds.DisputeData{Key: act.NewKey(), CanRecord: s.Policy.Allows(s.Actor(c).Roles, s.Acts.Kind(dispute.EvidenceAct).Permission)}
	if d.DisputeDetail, err = s.Console.DisputeDetail(c.UserContext(), no); err != nil {
		return err
	}
	did, err := s.done(c, "dispute", d.DisputeNo)
	if err != nil {
		return err
	}
	d.Saved = did != nil
	return s.Render(c, http.StatusOK, funds.DisputePage(s.Page(c), d))
}

func disputePath(no string) string { return "/disputes/" + url.PathEscape(no) }
