package api

import (
	"net/http"
	"net/url"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/money"
	"backstop/internal/console"
	"backstop/internal/fund"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// fundRoutes returns the routes of accounts, statements, and decisions of two people about money.
func (s *handlers) fundRoutes() []web.Route {
	const admin = "/api/v1/admin/"
	propose := func(path string, h fiber.Handler, request any) web.Route {
		return web.Route{
			Method: http.MethodPost, Path: admin + path, Audience: web.ForMonitor, Permission: access.ProposeMoney,
			Person: true, Handler: h, Request: request, Answer: proposedView{},
		}
	}
	return []web.Route{
		merchants("/api/v1/balance", s.balance, noQuery{}, balancesView{}),
		merchants("/api/v1/statement", s.statement, statementQuery{}, statementView{}),
		reads(admin+"accounts", access.ViewOrders, s.listAccounts, accountsQuery{}, page[accountView]{}),
		reads(admin+"accounts/:code/lines", access.ViewOrders, s.listLines, linesQuery{}, page[lineView]{}),
		propose("adjustments", s.proposeAdjustment, adjustRequest{}),
		propose("merchants/:code/freeze", s.proposeFunds(adjust.Freeze, adjust.OfFunds), fundsRequest{}),
		propose("merchants/:code/unfreeze", s.proposeFunds(adjust.Unfreeze, adjust.OfFrozen), fundsRequest{}),
	}
}

// balanceView is a merchant's balance in one currency.
type balanceView struct {
	Currency  string `json:"currency"`
	Available int64  `json:"available"`
	Pending   int64  `json:"pending"` // always 0: there is no delayed settlement
	Frozen    int64  `json:"frozen"`
	Reserved  int64  `json:"reserved"`
	InTransit int64  `json:"in_transit"` // held for open refunds and payouts
}

type balancesView struct {
	Items []balanceView `json:"items"`
}

func (s *handlers) balance(c *fiber.Ctx) error {
	all, err := fund.Balances(c.UserContext(), s.DB, web.MerchantOf(c).Code)
	if err != nil {
		return err
	}
	held, err := refund.InTransit(c.UserContext(), s.DB, web.MerchantOf(c).ID)
	if err != nil {
		return err
	}
	away, err := payout.InTransit(c.UserContext(), s.DB, web.MerchantOf(c).ID)
	if err != nil {
		return err
	}
	views := make([]balanceView, len(all))
	for i, b := range all {
		views[i] = balanceView{
			Currency: b.Currency, Available: b.Available, Frozen: b.Frozen, Reserved: b.Reserved,
			InTransit: held[b.Currency] + away[b.Currency],
		}
	}
	return c.JSON(balancesView{views})
}

// statementView is one page of a merchant's statement of a day.
type statementView struct {
	Day      string     `json:"day"`
	Currency string     `json:"currency"`
	Opening  int64      `json:"opening"`
	Closing  int64      `json:"closing"`
	Credits  int64      `json:"credits"`
	Debits   int64      `json:"debits"`
	Items    []itemView `json:"items"`
	Next     *string    `json:"next"`
}

type itemView struct {
	ID      string  `json:"id"`
	At      string  `json:"at"`
	Kind    string  `json:"kind"`
	Ref     string  `json:"ref"`
	OrderNo *string `json:"order_no"`
	Amount  int64   `json:"amount"`
	Fee     int64   `json:"fee"`
	Balance int64   `json:"balance"`
}

type statementQuery struct {
	Day      string `query:"day" doc:"The day, as 2026-11-21, in the time zone of the installation."`
	Currency string `query:"currency" doc:"ISO 4217."`
	paging
}

func (s *handlers) statement(c *fiber.Ctx) error {
	q := requestOf[statementQuery](c)
	from, to, err := fund.Day(q.Day, s.Config.Timezone)
	if err != nil {
		return web.InvalidField("day", err.Error())
	}
	if _, err := money.Exponent(q.Currency); err != nil {
		return web.InvalidField("currency", err.Error())
	}
	st, err := fund.StatementOf(c.UserContext(), s.DB, web.MerchantOf(c).Code, q.Currency, from, to, q.Cursor, int(q.Limit))
	if err != nil {
		return err
	}
	items := pageOf(st.Items, st.Next, func(i fund.Item) itemView {
		return itemView{
			ID: strconv.FormatInt(i.ID, 10), At: notify.Stamp(i.At), Kind: string(i.Kind), Ref: i.Ref, OrderNo: orNull(i.OrderNo),
			Amount: i.Amount, Fee: i.Fee, Balance: i.Balance,
		}
	})
	return c.JSON(statementView{
		Day: q.Day, Currency: q.Currency, Opening: st.Opening, Closing: st.Closing, Credits: st.Credits, Debits: st.Debits, Items: items.Items,
		Next: items.Next,
	})
}

type accountView struct {
	Code     string  `json:"code"`
	Currency string  `json:"currency"`
	Balance  int64   `json:"balance"`
	FoldedAt *string `json:"folded_at"`
}

type accountsQuery struct {
	Code     string `query:"code" doc:"The account's code."`
	Currency string `query:"currency" doc:"ISO 4217."`
	paging
}

func (s *handlers) listAccounts(c *fiber.Ctx) error {
	return listed(s, c, console.AccountList, s.Console.Accounts, func(a ledger.Account) accountView {
		return accountView{Code: a.Code, Currency: a.Currency, Balance: a.Balance, FoldedAt: notify.StampOr(a.FoldedAt)}
	})
}

type lineView struct {
	ID       string  `json:"id"`
	At       string  `json:"at"`
	Ref      string  `json:"ref"`
	Kind     *string `json:"kind"`
	Other    string  `json:"other"` // the account on the other side
	Amount   int64   `json:"amount"`
	Currency string  `json:"currency"`
	Balance  int64   `json:"balance"`
}

type linesQuery struct {
	Currency string `query:"currency" doc:"ISO 4217."`
	span
	paging
}

func (s *handlers) listLines(c *fiber.Ctx) error {
	currency := requestOf[linesQuery](c).Currency
	if _, err := money.Exponent(currency); err != nil {
		return web.InvalidField("currency", err.Error())
	}
	code, err := url.PathUnescape(c.Params("code"))
	if err != nil {
		return err
	}
	a, err := s.Console.Account(c.UserContext(), code, currency)
	if err != nil {
		return err
	}
	_, slice := s.sliceOf(c, console.LineList)
	found, err := s.Console.AccountLines(c.UserContext(), console.LinesOf(a, list.All()), slice)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, func(l console.AccountLine) lineView {
		return lineView{
			ID: strconv.FormatInt(l.ID, 10), At: notify.Stamp(l.CreatedAt), Ref: l.Ref, Kind: orNull(l.Kind()), Other: l.Other,
			Amount: l.Amount, Currency: l.Currency, Balance: l.Balance,
		}
	}))
}

// adjustRequest is an adjustment between two accounts, by their codes.
type adjustRequest struct {
	mayBeEmpty
	Debit    string `json:"debit" max:"100" required:"true"`
	Credit   string `json:"credit" max:"100" required:"true"`
	Currency string `json:"currency" max:"64" required:"true"`
	Amount   int64  `json:"amount" kind:"money" required:"true"`
	Reason   string `json:"reason" max:"10000" required:"true"`
	Evidence string `json:"evidence" max:"2000" required:"true"`
}

func (s *handlers) proposeAdjustment(c *fiber.Ctx) error {
	r := requestOf[adjustRequest](c)
	p, err := adjust.Proposal(s.Actor(c), r.Debit, r.Credit, r.Currency, r.Amount, r.Reason, r.Evidence)
	if err != nil {
		return err
	}
	return s.sendProposal(c, p)
}

// fundsRequest is money of a merchant: an amount, or all of it.
type fundsRequest struct {
	mayBeEmpty
	Currency string `json:"currency" max:"64" required:"true"`
	Reason   string `json:"reason" max:"10000" required:"true"`
	Amount   int64  `json:"amount" kind:"money"`
	All      bool   `json:"all"`
}

// proposeFunds proposes to freeze or to release money of a merchant.
func (s *handlers) proposeFunds(action, object string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf[fundsRequest](c)
		if r.All == (r.Amount > 0) {
			return web.InvalidField("amount", "enter an amount, or all: true")
		}
		code, err := url.PathUnescape(c.Params("code"))
		if err != nil {
			return err
		}
		return s.sendProposal(c, adjust.FundsProposal(s.Actor(c), action, object, code, r.Currency, r.Amount, r.Reason))
	}
}

// sendProposal makes a proposal: 201 if it waits for a second person, 200 if it was carried out.
func (s *handlers) sendProposal(c *fiber.Ctx, p approval.Proposal) error {
	a, err := s.Approvals.Propose(c.UserContext(), p)
	if err != nil {
		return err
	}
	views, err := s.viewApprovals(c.UserContext(), a)
	if err != nil {
		return err
	}
	if a.State == approval.Waiting {
		c.Status(http.StatusCreated)
	}
	return c.JSON(proposedView{views[0]})
}
