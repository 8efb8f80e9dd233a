package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/base/money"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// AccountList declares the list of accounts.
var AccountList = list.New(list.Spec{
	Name:    "accounts",
	Sources: []list.Source{{Table: "accounts", Alias: "a", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Name: "code", Column: "code", Indexed: true},
		{Name: "kind", Values: AccountKinds, Match: func(_ context.Context, _ list.Lookup,
			kind string,
		) (list.Match, error) {
			return ofKind(kind), nil
		}},
		{Name: "currency", Column: "currency", Check: checkCurrency},
		{Name: "part", Hidden: true, Values: names(InTransit, Disputed), Match: func(_ context.Context, _ list.Lookup,
			part string,
		) (list.Match, error) {
			where, ok := fundParts[FundPart(part)]
			return list.Match{Where: where, None: !ok, Indexed: true, AnyAge: true}, nil
		}},
	},
})

func checkCurrency(code string) string {
	if _, err := money.Exponent(code); err != nil {
		return "use a currency, such as CNY"
	}
	return ""
}

// Kinds of accounts that are parts of a merchant's account; the others are the beginnings of
// their codes.
const (
	FrozenAccount   = "frozen"
	ReservedAccount = "reserved"
)

// AccountKinds lists all kinds of accounts, as in a chart of accounts.
var AccountKinds = []string{
	"bank", "supplier", "merchant", FrozenAccount, ReservedAccount, "refund", "payout", "suspense", "income", "cost", "loss", "opening",
}

// KindOf returns the kind of an account.
func KindOf(code string) string {
	switch {
	case strings.HasSuffix(code, fund.FrozenPart):
		return FrozenAccount
	case strings.HasSuffix(code, fund.ReservedPart):
		return ReservedAccount
	}
	kind, _, _ := strings.Cut(code, ":")
	return kind
}

// kindSQL is KindOf of the account a.
const kindSQL = "CASE WHEN a.code LIKE '%" + fund.FrozenPart + "' THEN '" + FrozenAccount + "' WHEN a.code LIKE '%" + fund.ReservedPart +
	"' THEN '" + ReservedAccount + "' WHEN a.code LIKE 'bank:%' THEN 'bank' WHEN a.code LIKE 'supplier:%' THEN 'supplier'" +
	" WHEN a.code LIKE 'merchant:%' THEN 'merchant' WHEN a.code LIKE 'refund:%' THEN 'refund' WHEN a.code LIKE 'payout:%' THEN 'payout'" +
	" WHEN a.code LIKE 'suspense:%' THEN 'suspense' WHEN a.code LIKE 'income:%' THEN 'income' WHEN a.code LIKE 'cost:%' THEN 'cost'" +
	" ELSE a.code END"

// ofKind matches the accounts of a kind.
func ofKind(kind string) list.Match {
	return list.Match{Where: kindSQL + " = ?", Args: []any{kind}, AnyAge: true}
}

// AccountGroup is the accounts of one kind.
type AccountGroup struct {
	Kind   string
	Totals []ledger.Total // by currency
	Rows   []ledger.Account
}

// groupRows bounds the accounts of a group that are read.
const groupRows = 20

// AccountGroups reads the accounts by kind, in the order of AccountKinds, all as of one moment: the
// totals of each kind, and its first accounts by currency and code.
func (b *Reader) AccountGroups(ctx context.Context) (all []AccountGroup, err error) {
	err = b.db.Snapshot(ctx, func(ctx context.Context, q bun.IDB) error {
		totals, err := ledger.Totals(ctx, q, kindSQL)
		if err != nil {
			return err
		}
		var rows []ledger.Account
		if err := q.NewRaw("SELECT a.id, a.code, a.currency, a.balance FROM (SELECT a.id, a.code, a.currency, a.balance, row_number() OVER"+
			" (PARTITION BY "+kindSQL+" ORDER BY a.currency, a.code) AS place FROM accounts AS a) AS a WHERE a.place <= ?"+
			" ORDER BY a.currency, a.code", groupRows).Scan(ctx, &rows); err != nil {
			return fmt.Errorf("read the accounts by kind: %w", err)
		}
		if err := ledger.AddUnfolded(ctx, q, rows); err != nil {
			return err
		}
		for _, kind := range AccountKinds {
			g := AccountGroup{Kind: kind}
			for _, t := range totals {
				if t.Kind == kind {
					g.Totals = append(g.Totals, t)
				}
			}
			for _, a := range rows {
				if KindOf(a.Code) == kind {
					g.Rows = append(g.Rows, a)
				}
			}
			if len(g.Totals) > 0 {
				all = append(all, g)
			}
		}
		return nil
	})
	return all, err
}

// FundPart is money in the ledger that is neither a merchant's to spend nor gone.
type FundPart string

// Parts.
const (
	InTransit FundPart = "in_transit" // refunds and payouts on their way out
	Disputed  FundPart = "disputed"   // reserved for disputes
)

// fundParts are the conditions for the accounts of each part. The accounts are found by their
// codes, which an index covers whatever the database's collation.
var fundParts = map[FundPart]string{
	InTransit: "a.code IN (SELECT 'refund:' || su.code FROM suppliers AS su UNION ALL SELECT 'payout:' || su.code FROM suppliers AS su)",
	Disputed:  "a.code IN (SELECT 'merchant:' || m.code || '" + fund.ReservedPart + "' FROM merchants AS m)",
}

// Funds returns the balances of each part, by currency; Orders counts accounts that are not
// empty.
func (b *Reader) Funds(ctx context.Context) (map[FundPart]report.Standing, error) {
	all := map[FundPart]report.Standing{}
	for part, where := range fundParts {
		rows, err := ledger.Current(ctx, b.db, where)
		if err != nil {
			return nil, err
		}
		var s report.Standing
		for _, a := range rows {
			if a.Balance != 0 {
				s.Add(report.Sum{Currency: a.Currency, Orders: 1, Minor: a.Balance})
			}
		}
		all[part] = s
	}
	return all, nil
}

// AccountsOf reads the accounts of a code, one for each currency.
func (b *Reader) AccountsOf(ctx context.Context, code string) ([]ledger.Account, error) {
	return ledger.Current(ctx, b.db, "a.code = ?", code)
}

// LineList declares the list of an account's lines.
var LineList = list.New(list.Spec{
	Name: "lines", Of: "account",
	Sources: []list.Source{{
		Table: "account_lines", Alias: "l", Key: "id", MerchantColumn: list.NoMerchant,
		Columns: "l.id, l.account_id, l.transfer_id, l.balance, t.ref, t.created_at, t.currency," +
			" CASE WHEN t.credit_account = l.account_id THEN t.amount ELSE -t.amount END AS amount," +
			" (SELECT o.code FROM accounts AS o WHERE o.id = CASE WHEN t.credit_account = l.account_id THEN t.debit_account ELSE t.credit_account END) AS other",
		Joins: "JOIN transfers AS t ON t.id = l.transfer_id",
	}},
	Fields: []list.Field{{Name: "account", Column: "account_id", Indexed: true, Hidden: true, Check: list.ID}},
})

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
	row, _, ok := fact.Of(l.Ref, l.Amount > 0)
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
	return list.Read(ctx, b.db, q, s, func(l *AccountLine) int64 { return l.ID })
}

// LinesOf is the query of an account's lines.
func LinesOf(a *ledger.Account, scope list.Scope) list.Query {
	return list.Query{Spec: LineList, Scope: scope}.With("account", strconv.FormatInt(a.ID, 10))
}

// AccountName is an account with its currency, as pages call it.
func AccountName(a *ledger.Account) string { return fmt.Sprintf("%s %s", a.Code, a.Currency) }
