package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/calendar"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund"
	"backstop/internal/fund/adjust"
	"backstop/internal/ledger"
	"backstop/internal/list"
	"backstop/views/funds"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// accountsPage lists the accounts: without a filter by kind, with the trial balance.
func (s *handlers) accountsPage(c *fiber.Ctx) error {
	return send(s, c, http.StatusOK, listPage[ledger.Account]{
		spec: console.AccountList, always: true, read: s.Console.Accounts, columns: funds.AccountColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, _ []ledger.Account) (templ.Component, error) {
			d := funds.AccountsData{CanPropose: s.Policy.Allows(p.Roles, access.ProposeMoney), Key: act.NewKey()}
			part, kind, currency := l.Values.Get("part"), l.Values.Get("kind"), l.Values.Get("currency")
			if part != "" && len(l.Values) == 1 {
				parts, err := s.Console.Funds(ctx)
				if err != nil {
					return nil, err
				}
				d.Sums = parts[console.FundPart(part)].Sums
				return funds.Accounts(p, l, d), nil
			}
			known := func(word string, _ []string) bool { return word == "kind" || word == "currency" }
			rest := maps.Clone(l.Values)
			if maps.DeleteFunc(rest, known); len(rest) > 0 {
				return funds.Accounts(p, l, d), nil
			}
			groups, err := s.Console.AccountGroups(ctx)
			if err != nil {
				return nil, err
			}
			if len(l.Values) == 0 && l.First {
				return funds.AccountGroups(p, l, d, groups), nil
			}
			d.Sums = funds.BalanceSums(groups, kind, currency)
			return funds.Accounts(p, l, d), nil
		},
	})
}

// accountCode reads the account's code from the path.
func accountCode(c *fiber.Ctx) (string, error) {
	code, err := url.PathUnescape(c.Params("account"))
	if err != nil || !web.IsStorable(code) {
		return "", act.ErrNotFound
	}
	return code, nil
}

// accountCurrencies leads to the account's lines or, if it has several currencies, to all of its
// accounts.
func (s *handlers) accountCurrencies(c *fiber.Ctx) error {
	code, err := accountCode(c)
	if err != nil {
		return err
	}
	all, err := s.Console.AccountsOf(c.UserContext(), code)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return act.ErrNotFound
	case len(all) == 1:
		return c.Redirect(accountPath(&all[0]), http.StatusSeeOther)
	}
	return c.Redirect("/accounts?code="+url.QueryEscape(code), http.StatusSeeOther)
}

func accountPath(a *ledger.Account) string {
	return "/accounts/" + url.PathEscape(a.Code) + "/" + url.PathEscape(a.Currency)
}

// linesPage shows an account in one currency with its lines.
func (s *handlers) linesPage(c *fiber.Ctx) error {
	code, err := accountCode(c)
	if err != nil {
		return err
	}
	currency := c.Params("currency")
	if _, err := money.Exponent(currency); err != nil {
		return act.ErrNotFound
	}
	a, err := s.Console.Account(c.UserContext(), code, currency)
	if err != nil {
		return err
	}
	return send(s, c, http.StatusOK, listPage[console.AccountLine]{
		spec: console.LineList, path: accountPath(a), always: true, read: s.Console.AccountLines, columns: funds.LineColumns,
		within: func(q list.Query) list.Query { return q.With("account", strconv.FormatInt(a.ID, 10)) },
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.AccountLine) (templ.Component, error) {
			return funds.Lines(p, l, funds.LinesData{
				Account: a, CanPropose: s.Policy.Allows(p.Roles, access.ProposeMoney),
				Key: act.NewKey(),
			}), nil
		},
	})
}

// statementPage shows a merchant's statement of a day in one currency, or of a month.
func (s *handlers) statementPage(c *fiber.Ctx) error {
	code, err := web.MerchantCode(c)
	if err != nil {
		return err
	}
	f := web.ReadFilter(c)
	day, currency, after := f.Text("day"), f.Text("currency"), f.Cursor()
	if f.Err != nil {
		return f.Err
	}
	id, err := s.Console.MerchantID(c.UserContext(), code)
	if err == nil && id == 0 {
		err = act.ErrNotFound
	}
	if err != nil {
		return err
	}
	if c.Context().QueryArgs().Has("month") {
		return s.monthPage(c, code)
	}
	p := s.Page(c)
	d := funds.StatementData{Merchant: code}
	if d.Balances, err = fund.Balances(c.UserContext(), s.DB, code); err != nil {
		return err
	}
	if currency == "" && len(d.Balances) > 0 {
		currency = d.Balances[0].Currency
	}
	// The day is the house's, as for merchants, not the reader's.
	if day == "" {
		day = p.Now.In(s.Config.Timezone).Format("2006-01-02")
	}
	from, to, err := fund.Day(day, s.Config.Timezone)
	if err != nil {
		return web.InvalidField("day", err.Error())
	}
	d.Day, d.Before, d.After = day, calendar.DayStart(from, -1).Format("2006-01-02"), to.Format("2006-01-02")
	if to.After(p.Now) {
		d.After = ""
	}
	d.Zone = s.Config.Timezone.String()
	if currency != "" {
		if _, err := money.Exponent(currency); err != nil {
			return web.InvalidField("currency", err.Error())
		}
		if d.Statement, err = fund.StatementOf(c.UserContext(), s.DB, code, currency, from, to, after, list.PageSize); err != nil {
			return err
		}
	}
	return s.Render(c, http.StatusOK, funds.StatementPage(p, d))
}

// amountOf reads an amount as operators write it, in minor units.
func amountOf(c *fiber.Ctx, currency string) (int64, error) {
	if _, err := money.Exponent(currency); err != nil {
		return 0, web.Invalid("currency", adjust.NoCurrency)
	}
	typed := strings.TrimSpace(web.Field(c, "amount"))
	minor, err := money.ParseMajor(typed, currency)
	if err != nil {
		return 0, web.Invalid("amount", tNotAmount, typed)
	}
	return minor, nil
}

// proposeAdjustment proposes the movement of a form.
func (s *handlers) proposeAdjustment(c *fiber.Ctx) error {
	currency := strings.TrimSpace(web.Field(c, "currency"))
	amount, err := amountOf(c, currency)
	if err != nil {
		return err
	}
	p, err := adjust.Proposal(s.Actor(c), strings.TrimSpace(web.Field(c, "debit")), strings.TrimSpace(web.Field(c, "credit")), currency,
		amount, web.Field(c, "reason"), web.Field(c, "evidence"))
	if err != nil {
		return err
	}
	return s.sendProposal(c, p)
}

// proposeFunds proposes to freeze or to release money of a merchant; without an amount, all.
func (s *handlers) proposeFunds(action, object string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		code, err := web.MerchantCode(c)
		if err != nil {
			return err
		}
		currency, amount := web.Field(c, "currency"), int64(0)
		if web.Field(c, "all") == "" {
			if amount, err = amountOf(c, currency); err != nil {
				return err
			}
			if amount == 0 {
				return web.Invalid("amount", text.Text{ZH: "请填大于 0 的金额，或勾选全部", EN: "enter an amount above 0, or tick all"})
			}
		}
		return s.sendProposal(c, adjust.FundsProposal(s.Actor(c), action, object, code, currency, amount, web.Field(c, "reason")))
	}
}

// sendProposal creates the proposal of a form once, and redirects to it.
func (s *handlers) sendProposal(c *fiber.Ctx, p approval.Proposal) error {
	var err error
	if p.Key, err = formKey(c); err != nil {
		return err
	}
	a, err := s.Approvals.Propose(c.UserContext(), p)
	if err != nil {
		return err
	}
	return showDone(c, "/approvals/"+a.No())
}
