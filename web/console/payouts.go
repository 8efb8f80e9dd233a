package console

import (
	"net/http"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/fund/payout"
	"backstop/views/funds"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

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
	d := funds.PayoutData{Key: act.NewKey()}
	if d.PayoutDetail, err = s.Console.PayoutDetail(c.UserContext(), no); err != nil {
		return err
	}
	if d.Subject, d.Offers, err = s.Approvals.OffersOf(c.UserContext(), s.Actor(c), payout.Object, no); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, funds.PayoutPage(s.Page(c), d))
}

// proposePayout proposes a decision about the payout in the path.
func (s *handlers) proposePayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	return s.propose(c, payout.Object, no)
}
