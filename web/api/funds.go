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
	read := func(path string, h fiber.Handler) web.Route {
		return web.Route{
			Method: http.MethodGet, Path: admin + path, Audience: web.ForMonitor, Scope: access.Monitor,
			Permission: access.ViewOrders, Handler: h,
		}
	}
	propose := func(path string, h fiber.Handler) web.Route {
		return web.Route{
			Method: http.MethodPost, Path: admin + path, Audience: web.ForMonitor, Permission: access.ProposeMoney,
			Person: true, Handler: h,
		}
	}
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/balance", Audience: web.ForMerchant, Handler: s.balance},
		{Method: http.MethodGet, Path: "/api/v1/statement", Audience: web.ForMerchant, Handler: s.statement},
		read("accounts", s.listAccounts),
		read("accounts/:code/lines", s.listLines),
		propose("adjustments", s.proposeAdjustment),
		propose("merchants/:code/freeze", s.proposeFunds(adjust.Freeze, adjust.OfFunds)),
		propose("merchants/:code/unfreeze", s.proposeFunds(adjust.Unfreeze, adjust.OfFrozen)),
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

func (s *handlers) balance(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only()
	if f.Err != nil {
		return f.Err
	}
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
	return c.JSON(struct {
		Items []balanceView `json:"items"`
	}{views})
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

func (s *handlers) statement(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("day", "currency", "cursor", "limit")
	day, currency := f.Text("day"), f.Text("currency")
	after, limit := f.Cursor(), f.Limit()
	from, to, err := fund.Day(day, s.Config.Timezone)
	if err != nil {
		f.Blame("day", err.Error())
	}
	if _, err := money.Exponent(currency); err != nil {
		f.Blame("currency", err.Error())
	}
	if f.Err != nil {
		return f.Err
	}
	st, err := fund.StatementOf(c.UserContext(), s.DB, web.MerchantOf(c).Code, currency, from, to, after, limit)
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
		Day: day, Currency: currency, Opening: st.Opening, Closing: st.Closing, Credits: st.Credits, Debits: st.Debits, Items: items.Items,
		Next: items.Next,
	})
}

type accountView struct {
	Code     string  `json:"code"`
	Currency string  `json:"currency"`
	Balance  int64   `json:"balance"`
	FoldedAt *string `json:"folded_at"`
}

func (s *handlers) listAccounts(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("code", "currency", "cursor", "limit")
	q := list.Query{Spec: console.AccountList, Scope: list.All()}.With("code", f.Text("code")).With("currency", f.Text("currency"))
	slice := sliceOf(f)
	if f.Err != nil {
		return f.Err
	}
	found, err := s.Console.Accounts(c.UserContext(), q, slice)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID, func(a ledger.Account) accountView {
		return accountView{Code: a.Code, Currency: a.Currency, Balance: a.Balance, FoldedAt: notify.StampOr(a.FoldedAt)}
	}))
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

func (s *handlers) listLines(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("currency", "from", "to", "cursor", "limit")
	code, err := url.PathUnescape(c.Params("code"))
	currency := f.Text("currency")
	if _, wrong := money.Exponent(currency); wrong != nil {
		f.Blame("currency", wrong.Error())
	}
	slice := sliceOf(f)
	slice.From, slice.To = momentOf(f, "from"), momentOf(f, "to")
	if f.Err != nil || err != nil {
		return f.Err
	}
	a, err := s.Console.Account(c.UserContext(), code, currency)
	if err != nil {
		return err
	}
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

// maxAccount bounds an account's code, maxEvidence the evidence for a movement, in characters.
const (
	maxAccount  = 100
	maxEvidence = 2000
)

func (s *handlers) proposeAdjustment(c *fiber.Ctx) error {
	f, err := readAct(c, "debit", "credit", "currency", "amount", "reason", "evidence")
	if err != nil {
		return err
	}
	debit, credit, currency := f.text("debit", true, maxAccount), f.text("credit", true, maxAccount), f.text("currency", true, maxCode)
	amount := f.number("amount", true, 1, money.MaxMinor)
	reason, evidence := f.text("reason", true, maxReason), f.text("evidence", true, maxEvidence)
	if f.err != nil {
		return f.err
	}
	p, err := adjust.Proposal(s.Actor(c), debit, credit, currency, amount, reason, evidence)
	if err != nil {
		return err
	}
	return s.sendProposal(c, p)
}

// proposeFunds proposes to freeze or to release money of a merchant.
func (s *handlers) proposeFunds(action, object string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		f, err := readAct(c, "currency", "amount", "all", "reason")
		if err != nil {
			return err
		}
		currency, reason := f.text("currency", true, maxCode), f.text("reason", true, maxReason)
		amount := f.number("amount", false, 1, money.MaxMinor)
		if all, given := f.raw("all", false); (given && string(all) == "true") == (amount > 0) {
			f.blame("amount", "enter an amount, or all: true")
		} else if given && string(all) != "true" && string(all) != "false" {
			f.blame("all", "use true or false")
		}
		if f.err != nil {
			return f.err
		}
		code, err := url.PathUnescape(c.Params("code"))
		if err != nil {
			return err
		}
		return s.sendProposal(c, adjust.FundsProposal(s.Actor(c), action, object, code, currency, amount, reason))
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
