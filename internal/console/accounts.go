package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// AccountList declares the list of accounts.
var AccountList = &list.Spec{
	Name:    "accounts",
	Sources: []list.Source{{Table: "accounts", Alias: "a", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Word: "code", Column: "code", Indexed: true, Suggest: func(ctx context.Context, q bun.IDB) (all []list.Choice, err error) {
			err = q.NewRaw("SELECT DISTINCT a.code AS value, '' AS name FROM accounts AS a ORDER BY a.code LIMIT 500").Scan(ctx, &all)
			return all, err
		}},
		{Word: "currency", Column: "currency"},
	},
}

// LineList declares the list of an account's lines. Its rows are those of one account: the
// field account is always set.
var LineList = &list.Spec{
	Name: "lines",
	Sources: []list.Source{{
		Table: "account_lines", Alias: "l", Key: "id", MerchantColumn: list.NoMerchant,
		Columns: "l.id, l.account_id, l.transfer_id, l.balance, t.ref, t.created_at, t.currency," +
			" CASE WHEN t.credit_account = l.account_id THEN t.amount ELSE -t.amount END AS amount," +
			" (SELECT o.code FROM accounts AS o WHERE o.id = CASE WHEN t.credit_account = l.account_id THEN t.debit_account ELSE t.credit_account END) AS other",
		Joins: "JOIN transfers AS t ON t.id = l.transfer_id",
	}},
	Fields: []list.Field{{Word: "account", Column: "account_id", Indexed: true, Hidden: true}},
}

// AccountLine is one line of an account.
type AccountLine struct {
	ID         int64  `bun:"id"`
	AccountID  int64  `bun:"account_id"`
	TransferID int64  `bun:"transfer_id"`
	Amount     int64  `bun:"amount"`  // minor units; below zero: taken from the account
	Balance    int64  `bun:"balance"` // after it
	Currency   string `bun:"currency"`
	Ref        string `bun:"ref"`
	Other      string `bun:"other"`      // the account on the other side
	CreatedAt  int64  `bun:"created_at"` // Unix µs
}

// Kind is what a statement calls the line; "" = none does.
func (l *AccountLine) Kind() string {
	row, _, ok := fund.FactOf(l.Ref, l.Amount > 0)
	if !ok {
		return ""
	}
	return string(row.Kind)
}

// Accounts is one page of accounts with their balances of this moment.
func (b *Reader) Accounts(ctx context.Context, q list.Query, s list.Slice) (list.Page[ledger.Account], error) {
	page, err := list.Read(ctx, b.db, q, s, func(a *ledger.Account) int64 { return a.ID })
	if err != nil || len(page.Rows) == 0 {
		return page, err
	}
	ids := make([]int64, len(page.Rows))
	for i, a := range page.Rows {
		ids[i] = a.ID
	}
	now, err := ledger.Current(ctx, b.db, "a.id IN (?)", bun.List(ids)) // folded and the rest as of one moment
	byID := make(map[int64]ledger.Account, len(now))
	for _, a := range now {
		byID[a.ID] = a
	}
	for i := range page.Rows {
		page.Rows[i] = byID[page.Rows[i].ID]
	}
	return page, err
}

// Account finds an account. Errors: act.ErrNotFound.
func (b *Reader) Account(ctx context.Context, code, currency string) (*ledger.Account, error) {
	rows, err := ledger.Current(ctx, b.db, "a.code = ? AND a.currency = ?", code, currency)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	return &rows[0], nil
}

// AccountLines is one page of an account's lines, newest first.
func (b *Reader) AccountLines(ctx context.Context, q list.Query, s list.Slice) (list.Page[AccountLine], error) {
	if q.Get("account") == "" {
		return list.Page[AccountLine]{}, errors.New("the lines of no account are asked for")
	}
	return list.Read(ctx, b.db, q, s, func(l *AccountLine) int64 { return l.ID })
}

// LinesOf is the query of an account's lines.
func LinesOf(a *ledger.Account, scope list.Scope) list.Query {
	return list.Query{Spec: LineList, Scope: scope}.With("account", strconv.FormatInt(a.ID, 10))
}

// AccountName is an account with its currency, as pages call it.
func AccountName(a *ledger.Account) string { return fmt.Sprintf("%s %s", a.Code, a.Currency) }
