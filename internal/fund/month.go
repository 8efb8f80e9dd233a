package fund

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"

	"github.com/uptrace/bun"
)

// Month is a merchant's statement of a month in one currency, in minor units: Closing is Opening and
// the sums of all movements.
type Month struct {
	Merchant, Currency                                string // its code
	Opening, Closing                                  int64
	Payments, Fees, Refunds, Payouts, Disputes, Other Movement
	// Frozen and Reserved are its other accounts at the end, which Closing does not contain.
	Frozen, Reserved int64
}

// Movement is a number of entries and their sum; below zero: debited from the merchant.
type Movement struct{ Count, Minor int64 }

// Payable is all that we owe the merchant at the end.
func (m *Month) Payable() int64 { return m.Closing + m.Frozen + m.Reserved }

// Add adds the statement of another merchant in the same currency.
func (m *Month) Add(of Month) {
	m.Opening += of.Opening
	m.Closing += of.Closing
	m.Frozen += of.Frozen
	m.Reserved += of.Reserved
	for _, x := range [][2]*Movement{
		{&m.Payments, &of.Payments},
		{&m.Fees, &of.Fees},
		{&m.Refunds, &of.Refunds},
		{&m.Payouts, &of.Payouts},
		{&m.Disputes, &of.Disputes},
		{&m.Other, &of.Other},
	} {
		x[0].Count += x[1].Count
		x[0].Minor += x[1].Minor
	}
}

// movement is the one to which an entry of a kind belongs.
func (m *Month) movement(k fact.Kind) *Movement {
	switch k {
	case fact.KindPayment:
		return &m.Payments
	case fact.KindFee:
		return &m.Fees
	case fact.KindRefund, fact.KindRefundFailed:
		return &m.Refunds
	case fact.KindPayout, fact.KindPayoutReversed:
		return &m.Payouts
	case fact.KindDispute, fact.KindDisputeWon, fact.KindDisputeTaken:
		return &m.Disputes
	}
	return &m.Other // freezes, adjustments, opening balances
}

func (m *Month) add(k fact.Kind, count, minor int64) {
	x := m.movement(k)
	x.Count += count
	x.Minor += minor
}

// Months returns the statements of the time between from and to, by currency and merchant; merchant
// "" = all. What is not folded yet is in them, as in the statement of a day.
func Months(ctx context.Context, d *db.DB, merchant string, from, to time.Time) (all []Month, err error) {
	where, args := "a.code LIKE ?", []any{ledger.MerchantAccount("%")}
	if merchant != "" {
		own := ledger.MerchantAccount(merchant)
		where, args = "a.code IN (?)", []any{bun.List([]string{own, own + FrozenPart, own + ReservedPart})}
	}
	low, high := db.IDAt(from.UnixMicro()), db.IDAt(to.UnixMicro())
	err = d.Snapshot(ctx, func(ctx context.Context, q bun.IDB) error {
		accounts, tails, err := edges(ctx, q, low, high, where, args)
		if err != nil {
			return err
		}
		all = monthsOf(accounts, tails, low, high)
		return addLines(ctx, q, all, low, high, where, args)
	})
	return all, err
}

// monthAccount is an account of a merchant, with its folded balances just below the edges of a month.
type monthAccount struct {
	ledger.Account   `bun:",extend"`
	Opening, Closing int64
}

// of returns the merchant whose account it is.
func (a *monthAccount) of() ledger.Key {
	code := strings.TrimPrefix(a.Code, ledger.MerchantAccount(""))
	return ledger.Key{Code: strings.TrimSuffix(strings.TrimSuffix(code, FrozenPart), ReservedPart), Currency: a.Currency}
}

// edges reads the accounts that match a condition on a, and what of them is not folded yet.
func edges(ctx context.Context, q bun.IDB, low, high int64, where string, args []any) (rows []monthAccount,
	tails map[int64][]ledger.TailLine, err error,
) {
	const below = "coalesce((SELECT l.balance FROM account_lines AS l WHERE l.account_id = a.id AND l.id < ? ORDER BY l.id DESC LIMIT 1), 0)"
	err = q.NewRaw("SELECT a.*, "+below+" AS opening, "+below+" AS closing FROM accounts AS a WHERE "+where,
		append([]any{low, high}, args...)...).Scan(ctx, &rows)
	if err != nil {
		return nil, nil, fmt.Errorf("read the accounts of merchants: %w", err)
	}
	accounts := make([]ledger.Account, len(rows))
	for i, a := range rows {
		accounts[i] = a.Account
	}
	tails, err = ledger.Tails(ctx, q, accounts)
	return rows, tails, err
}

// monthsOf are the statements with their balances, and with those movements that are not folded yet.
func monthsOf(accounts []monthAccount, tails map[int64][]ledger.TailLine, low, high int64) (all []Month) {
	slices.SortFunc(accounts, func(a, b monthAccount) int {
		x, y := a.of(), b.of()
		return cmp.Or(cmp.Compare(x.Currency, y.Currency), cmp.Compare(x.Code, y.Code))
	})
	for _, a := range accounts {
		if of := a.of(); len(all) == 0 || all[len(all)-1].Merchant != of.Code || all[len(all)-1].Currency != of.Currency {
			all = append(all, Month{Merchant: of.Code, Currency: of.Currency})
		}
		m, tail := &all[len(all)-1], tails[a.ID]
		first, end := below(tail, low), below(tail, high)
		if first > 0 {
			a.Opening = tail[first-1].Balance
		}
		if end > 0 {
			a.Closing = tail[end-1].Balance
		}
		switch {
		case strings.HasSuffix(a.Code, FrozenPart):
			m.Frozen = a.Closing
		case strings.HasSuffix(a.Code, ReservedPart):
			m.Reserved = a.Closing
		default:
			m.Opening, m.Closing = a.Opening, a.Closing
			for _, l := range tail[first:end] {
				amount := -l.Amount
				if l.CreditAccount == a.ID {
					amount = l.Amount
				}
				kind := fact.Kind("")
				if row, _, ok := fact.Of(l.Ref, amount > 0); ok {
					kind = row.Kind
				}
				m.add(kind, 1, amount)
			}
		}
	}
	return all
}

// addLines adds the folded movements.
func addLines(ctx context.Context, q bun.IDB, all []Month, low, high int64, where string, args []any) error {
	var rows []struct {
		Code, Currency string
		Kind           fact.Kind
		Lines, Minor   int64
	}
	err := q.NewRaw("SELECT a.code, a.currency, "+fact.KindSQL+" AS kind, count(*) AS lines,"+
		" CAST(sum(CASE WHEN t.credit_account = a.id THEN t.amount ELSE -t.amount END) AS BIGINT) AS minor FROM accounts AS a"+
		" JOIN account_lines AS l ON l.account_id = a.id JOIN transfers AS t ON t.id = l.transfer_id"+
		" WHERE l.id >= ? AND l.id < ? AND "+where+" GROUP BY a.code, a.currency, kind", append([]any{low, high}, args...)...).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("add up the entries of merchants: %w", err)
	}
	of := make(map[ledger.Key]*Month, len(all))
	for i, m := range all {
		of[ledger.Key{Code: ledger.MerchantAccount(m.Merchant), Currency: m.Currency}] = &all[i]
	}
	for _, r := range rows {
		if m := of[ledger.Key{Code: r.Code, Currency: r.Currency}]; m != nil { // its frozen and reserved accounts are none
			m.add(r.Kind, r.Lines, r.Minor)
		}
	}
	return nil
}

// MonthLayout is how a month is written.
const MonthLayout = "2006-01"

// MonthSpan returns the start and the end of a month in a time zone; "" = that of now. first is when
// the first entry was booked. Errors: *invalid.FieldError, where there can be no statement.
func MonthSpan(month string, zone *time.Location, first, now time.Time) (from, to time.Time, err error) {
	if month == "" {
		month = now.In(zone).Format(MonthLayout)
	}
	from, err = calendar.Parse(MonthLayout, month, zone)
	if err != nil {
		return from, to, invalid.Field("month", tNotAMonth, now.In(zone).Format(MonthLayout))
	}
	to = calendar.MonthEnd(from)
	switch {
	case from.After(now):
		return from, to, invalid.Field("month", tMonthAhead, from.Format(MonthLayout), now.In(zone).Format(MonthLayout))
	case !to.After(first):
		return from, to, invalid.Field("month", tMonthBefore, from.Format(MonthLayout), first.In(zone).Format(MonthLayout))
	}
	return from, to, nil
}

var (
	tNotAMonth   = text.Text{ZH: "请按 %s 的格式选择月份", EN: "use a month such as %s"}
	tMonthAhead  = text.Text{ZH: "%s 尚未开始，请选择 %s 或更早的月份", EN: "%s has not begun: choose %s or an earlier month"}
	tMonthBefore = text.Text{ZH: "%s 没有账目：首笔分录在 %s，请选择该月或之后", EN: "nothing was booked in %s: choose %s, the month of the first entry, or a later one"}
)
