package api

import (
	"encoding/json"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/console"
	"backstop/internal/fund/payout"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) payoutRoutes() []web.Route {
	const own, admin = "/api/v1/payouts", "/api/v1/admin/payouts"
	return []web.Route{
		{
			Method: http.MethodPost, Path: own, Audience: web.ForMerchant, Key: web.PayoutKey, Handler: s.createPayout,
			Request: payoutRequest{}, Answer: payout.View{},
		},
		{
			Method: http.MethodGet, Path: own, Audience: web.ForMerchant, Key: web.EitherKey, Handler: s.findPayout,
			Request: payoutQuery{}, Answer: payout.View{},
		},
		{
			Method: http.MethodGet, Path: own + "/:payout_no", Audience: web.ForMerchant, Key: web.EitherKey, Handler: s.getPayout,
			Answer: payout.View{},
		},
		{
			Method: http.MethodPost, Path: own + "/:payout_no/cancel", Audience: web.ForMerchant, Key: web.PayoutKey, Handler: s.cancelPayout,
			Answer: payout.View{},
		},
		reads(admin, access.ViewOrders, s.listPayouts, payoutsQuery{}, page[payout.View]{}),
		reads(admin+"/:payout_no", access.ViewOrders, s.anyPayout, nil, payout.View{}),
		{
			Method: http.MethodPost, Path: admin + "/:payout_no/resolve", Audience: web.ForMonitor, Permission: access.ProposeMoney,
			Person: true, Handler: s.resolvePayout, Request: resolveRequest{}, Answer: proposedView{},
		},
	}
}

// payoutRequest is a payout as a merchant requests it.
type payoutRequest struct {
	OutPayoutNo string         `json:"out_payout_no" kind:"ascii" required:"true" max:"64" example:"PO-1" doc:"The merchant's number of the payout: the same number with the same content is the same payout."`
	Amount      int64          `json:"amount" kind:"money" required:"true" example:"100000" doc:"The amount in minor units of the currency."`
	Currency    string         `json:"currency" required:"true" max:"64" example:"CNY" doc:"ISO 4217."`
	Supplier    string         `json:"supplier" required:"true" max:"64" example:"wx" doc:"The supplier's code."`
	Account     *payoutAccount `json:"account" required:"true" says:"use {code}, or {kind, holder, number, bank}" doc:"The account that is paid: the code of an allowed one, or its content."`
	NotifyURL   string         `json:"notify_url" max:"2048" doc:"Where this payout is notified, instead of the merchant's endpoints."`
}

type payoutAccount struct {
	Code string `json:"code" max:"64" example:"main" doc:"The code of an account that is stored."`
	payout.Free
}

func (a *payoutAccount) check(f *form) {
	if a.Code != "" && len(f.fields) > 1 {
		f.blame("", "give either its code or its content")
	}
	for _, name := range []string{"kind", "holder", "number"} {
		if a.Code == "" {
			f.text(name, true, maxURL)
		}
	}
}

func (s *handlers) createPayout(c *fiber.Ctx) error {
	in := requestOf[payoutRequest](c)
	r := payout.Request{
		OutPayoutNo: in.OutPayoutNo, Amount: in.Amount, Currency: in.Currency, Supplier: in.Supplier, NotifyURL: in.NotifyURL,
		AccountCode: in.Account.Code,
	}
	if r.AccountCode == "" {
		r.Free = &in.Account.Free
	}
	p, created, err := s.Payouts.Create(c.UserContext(), web.MerchantOf(c), r)
	if err != nil {
		return err
	}
	if created {
		c.Status(http.StatusCreated)
	}
	return c.JSON(s.Payouts.ViewOf(p))
}

// sendPayout responds with a payout of the calling merchant; another merchant's counts as not
// found.
func (s *handlers) sendPayout(c *fiber.Ctx, p *payout.Payout, err error) error {
	if err == nil && p.MerchantID != web.MerchantOf(c).ID {
		err = payout.ErrNotFound
	}
	if err != nil {
		return err
	}
	return c.JSON(s.Payouts.ViewOf(p))
}

// payoutQuery names a payout by the merchant's number.
type payoutQuery struct {
	OutPayoutNo string `query:"out_payout_no" kind:"ascii" required:"true" max:"64" says:"use 1 to 64 visible ASCII characters" doc:"The merchant's number of the payout."`
}

func (s *handlers) findPayout(c *fiber.Ctx) error {
	p, err := payout.ByOut(c.UserContext(), s.DB.Read, web.MerchantOf(c).ID, requestOf[payoutQuery](c).OutPayoutNo)
	return s.sendPayout(c, p, err)
}

func (s *handlers) getPayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	p, err := payout.ByNo(c.UserContext(), s.DB.Read, no)
	return s.sendPayout(c, p, err)
}

func (s *handlers) cancelPayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	p, err := s.Payouts.Cancel(c.UserContext(), web.MerchantOf(c), no)
	return s.sendPayout(c, p, err)
}

type payoutsQuery struct {
	PayoutNo string `query:"payout_no" doc:"The payout's number."`
	codes
	State string `query:"state" doc:"The payout's status."`
	paging
}

func (payoutsQuery) choices() map[string][]string {
	return map[string][]string{"state": payout.Moves.Words()}
}

func (s *handlers) listPayouts(c *fiber.Ctx) error {
	return listed(s, c, console.PayoutList, s.Console.Payouts, func(p console.Payout) payout.View { return s.Payouts.ViewOf(&p.Payout) })
}

func (s *handlers) anyPayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	p, err := payout.ByNo(c.UserContext(), s.DB.Read, no)
	if err != nil {
		return err
	}
	return c.JSON(s.Payouts.ViewOf(p))
}

// resolveRequest says how a payout ended, and what proves it.
type resolveRequest struct {
	mayBeEmpty
	Credit   string `json:"credit" choices:"success|failed" required:"true" says:"use success or failed: what the statement of the supplier says"`
	Evidence string `json:"evidence" max:"2000" required:"true"`
}

// resolvePayout proposes how a payout without a clear answer ended, by the supplier's statement.
func (s *handlers) resolvePayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	r := requestOf[resolveRequest](c)
	params, err := json.Marshal(map[string]string{"credit": r.Credit, "evidence": r.Evidence})
	if err != nil {
		return err
	}
	p, err := payout.ByNo(c.UserContext(), s.DB.Read, no)
	if err != nil {
		return err
	}
	return s.sendProposal(c, approval.Proposal{
		Action: payout.Resolve, Object: payout.Object, ObjectID: no, Params: params, Version: p.Version,
		Amount: money.Format(p.Amount, p.Currency), Reason: textlimit.Clip("the supplier's statement: "+r.Evidence, maxResolved),
		By: s.Actor(c),
	})
}

// maxResolved bounds the reason that is made of the evidence, in bytes.
const maxResolved = 1000
