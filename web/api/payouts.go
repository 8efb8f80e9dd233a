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
	"backstop/internal/list"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// maxAccountField bounds a field of an account that a request spells out, in characters.
const maxAccountField = 200

func (s *handlers) payoutRoutes() []web.Route {
	const own, admin = "/api/v1/payouts", "/api/v1/admin/payouts"
	return []web.Route{
		{Method: http.MethodPost, Path: own, Audience: web.ForMerchant, Key: web.PayoutKey, Handler: s.createPayout},
		{Method: http.MethodGet, Path: own, Audience: web.ForMerchant, Key: web.EitherKey, Handler: s.findPayout},
		{Method: http.MethodGet, Path: own + "/:payout_no", Audience: web.ForMerchant, Key: web.EitherKey, Handler: s.getPayout},
		{Method: http.MethodPost, Path: own + "/:payout_no/cancel", Audience: web.ForMerchant, Key: web.PayoutKey, Handler: s.cancelPayout},
		{
			Method: http.MethodGet, Path: admin, Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewOrders,
			Handler: s.listPayouts,
		},
		{
			Method: http.MethodGet, Path: admin + "/:payout_no", Audience: web.ForMonitor, Scope: access.Monitor,
			Permission: access.ViewOrders, Handler: s.anyPayout,
		},
		{
			Method: http.MethodPost, Path: admin + "/:payout_no/resolve", Audience: web.ForMonitor, Permission: access.ProposeMoney,
			Person: true, Handler: s.resolvePayout,
		},
	}
}

// readPayout parses a request for a payout: names, types and lengths of the fields. Package
// payout checks whether supplier, currency and account exist.
func readPayout(body []byte) (payout.Request, error) {
	f, err := readForm(body, "out_payout_no", "amount", "currency", "supplier", "account", "notify_url")
	if err != nil {
		return payout.Request{}, err
	}
	r := payout.Request{
		OutPayoutNo: f.text("out_payout_no", true, maxOutTradeNo), Amount: f.number("amount", true, 1, money.MaxMinor),
		Currency: f.text("currency", true, maxCode), Supplier: f.text("supplier", true, maxCode), NotifyURL: f.text("notify_url", false,
			maxURL),
	}
	if problem := badOutTradeNo(r.OutPayoutNo); problem != "" {
		f.blame("out_payout_no", problem)
	}
	f.account(&r)
	return r, f.err
}

// account reads the account of a payout: the code of an allowed one, or its content.
func (f *form) account(r *payout.Request) {
	raw, ok := f.raw("account", true)
	if !ok {
		return
	}
	a := &form{path: "account."}
	if json.Unmarshal(raw, &a.fields) != nil || a.fields == nil {
		f.blame("account", "use {code}, or {kind, holder, number, bank}")
		return
	}
	a.onlyKnown([]string{"code", "kind", "holder", "number", "bank"})
	if r.AccountCode = a.text("code", false, maxCode); r.AccountCode == "" {
		r.Free = &payout.Free{
			Kind: a.text("kind", true, maxCode), Holder: a.text("holder", true, maxAccountField),
			Number: a.text("number", true, maxAccountField),
			Bank:   a.text("bank", false, maxAccountField),
		}
	} else if len(a.fields) > 1 {
		f.blame("account", "give either its code or its content")
	}
	if f.err == nil {
		f.err = a.err
	}
}

func (s *handlers) createPayout(c *fiber.Ctx) error {
	r, err := readPayout(c.Request().Body())
	if err != nil {
		return err
	}
	p, created, err := s.Payouts.Ask(c.UserContext(), web.MerchantOf(c), r)
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

func (s *handlers) findPayout(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("out_payout_no")
	no := f.Text("out_payout_no")
	if problem := badOutTradeNo(no); problem != "" {
		f.Blame("out_payout_no", problem)
	}
	if f.Err != nil {
		return f.Err
	}
	p, err := payout.ByOut(c.UserContext(), s.DB.Read, web.MerchantOf(c).ID, no)
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

func (s *handlers) listPayouts(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("payout_no", "supplier", "merchant", "state", "cursor", "limit")
	q := list.Query{Spec: console.PayoutList, Scope: list.All()}.With("payout_no", f.Text("payout_no")).With("state",
		f.OneOf("state", payout.Moves.Words()))
	found, err := readCoded(s, c, f, q, sliceOf(f), s.Console.Payouts)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, func(p console.Payout) payout.View { return s.Payouts.ViewOf(&p.Payout) }))
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

// resolvePayout proposes how a payout without a clear answer ended, by the supplier's statement.
func (s *handlers) resolvePayout(c *fiber.Ctx) error {
	no, err := web.PayoutNo(c)
	if err != nil {
		return err
	}
	f, err := readAct(c, "credit", "evidence")
	if err != nil {
		return err
	}
	credit, evidence := f.text("credit", true, maxCode), f.text("evidence", true, maxEvidence)
	if credit != resolvedSuccess && credit != resolvedFailed {
		f.blame("credit", "use success or failed: what the statement of the supplier says")
	}
	if f.err != nil {
		return f.err
	}
	params, err := json.Marshal(map[string]string{"credit": credit, "evidence": evidence})
	if err != nil {
		return err
	}
	p, err := payout.ByNo(c.UserContext(), s.DB.Read, no)
	if err != nil {
		return err
	}
	return s.sendProposal(c, approval.Proposal{
		Action: payout.Resolve, Object: payout.Object, ObjectID: no, Params: params, Version: p.Version,
		Amount: money.Format(p.Amount, p.Currency), Reason: textlimit.Clip("the supplier's statement: "+evidence, maxResolved),
		By: s.Actor(c),
	})
}

// maxResolved bounds the reason that is made of the evidence, in bytes.
const maxResolved = 1000

// How a payout may be resolved.
const (
	resolvedSuccess = "success"
	resolvedFailed  = "failed"
)
