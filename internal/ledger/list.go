package ledger

import (
	"context"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Line is one transfer with the codes of both accounts.
type Line struct {
	JournalID int64  `bun:"journal_id"`
	Debit     string `bun:"debit"`
	Credit    string `bun:"credit"`
	Amount    int64  `bun:"amount"` // minor units
	Currency  string `bun:"currency"`
	Ref       string `bun:"ref"`
	CreatedAt int64  `bun:"created_at"` // Unix µs
}

// Lines reads the transfers with these refs, oldest first. Refs are unique.
func Lines(ctx context.Context, q bun.IDB, refs []string) ([]Line, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	var rows []Line
	err := q.NewRaw("SELECT t.journal_id, d.code AS debit, c.code AS credit, t.amount, t.currency, t.ref, t.created_at"+
		" FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account JOIN accounts AS c ON c.id = t.credit_account"+
		" WHERE t.ref IN (?) ORDER BY t.id", bun.List(refs)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read transfers: %w", err)
	}
	return rows, nil
}

// Current reads the accounts that match a condition on a, ordered by currency and code, with
// their current balances, folded or not.
func Current(ctx context.Context, d *db.DB, where string, args ...any) (rows []Account, err error) {
	err = d.Snapshot(ctx, func(ctx context.Context, q bun.IDB) error {
		if err := q.NewSelect().Model(&rows).Where(where, args...).OrderExpr("a.currency, a.code").Scan(ctx); err != nil {
			return fmt.Errorf("read accounts: %w", err)
		}
		return AddUnfolded(ctx, q, rows)
	})
	return rows, err
}

// AddUnfolded adds what is not folded yet to the balances of accounts. It must run in the
// snapshot in which they were read.
func AddUnfolded(ctx context.Context, q bun.IDB, rows []Account) error {
	if len(rows) == 0 {
		return nil
	}
	ids := make([]int64, len(rows))
	for i, a := range rows {
		ids[i] = a.ID
	}
	where, from, err := Unfolded(ctx, q)
	if err != nil {
		return err
	}
	tail, err := Sums(ctx, q, where+" AND (t.credit_account IN (?) OR t.debit_account IN (?))", from, bun.List(ids), bun.List(ids))
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Balance += tail[rows[i].ID]
	}
	return nil
}

// TailLine is a line that the next Fold writes.
type TailLine struct {
	ID      int64 // which it gets unless an older journal is committed before
	Balance int64 // after it
	Credits int64 // total of credits up to it
	Transfer
}

// Tails returns what of each account is not folded yet, by its id, as Fold will write it. It must
// run in the snapshot in which the accounts were read.
func Tails(ctx context.Context, q bun.IDB, accounts []Account) (map[int64][]TailLine, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	where, from, err := Unfolded(ctx, q)
	if err != nil {
		return nil, err
	}
	ids, last := make([]int64, len(accounts)), map[int64]TailLine{}
	for i, a := range accounts {
		ids[i], last[a.ID] = a.ID, TailLine{ID: a.LastLine, Balance: a.Balance, Credits: a.Credits}
	}
	var rows []Transfer
	err = q.NewSelect().Model(&rows).Where(where+" AND (t.credit_account IN (?) OR t.debit_account IN (?))", from, bun.List(ids),
		bun.List(ids)).OrderExpr("t.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is not folded yet: %w", err)
	}
	tails := map[int64][]TailLine{}
	add := func(account, amount int64, t Transfer) {
		line, ok := last[account]
		if !ok {
			return
		}
		line.ID, line.Balance, line.Credits, line.Transfer = max(t.ID, line.ID+1), line.Balance+amount, line.Credits+max(amount, 0), t
		last[account], tails[account] = line, append(tails[account], line)
	}
	for _, t := range rows {
		add(t.DebitAccount, -t.Amount, t)
		add(t.CreditAccount, t.Amount, t)
	}
	return tails, nil
}

// Total is what the accounts of one kind have in one currency, in minor units.
type Total struct {
	Kind, Currency string
	Accounts       int64
	Debit, Credit  int64 // the sums of the balances below and above 0, both as positive amounts
}

// Balance is credits minus debits.
func (t Total) Balance() int64 { return t.Credit - t.Debit }

// Totals adds up the current balances of all accounts, folded or not, by their kind and currency; kind
// is an expression on a. The debits of a currency equal its credits.
func Totals(ctx context.Context, q bun.IDB, kind string) (all []Total, err error) {
	where, from, err := Unfolded(ctx, q)
	if err != nil {
		return nil, err
	}
	query := "SELECT kind, currency, count(*) AS accounts," +
		" CAST(sum(CASE WHEN balance < 0 THEN -balance ELSE 0 END) AS BIGINT) AS debit," +
		" CAST(sum(CASE WHEN balance > 0 THEN balance ELSE 0 END) AS BIGINT) AS credit FROM" +
		" (SELECT " + kind + " AS kind, a.currency, a.balance + coalesce(u.amount, 0) AS balance FROM accounts AS a LEFT JOIN" +
		" (SELECT account, CAST(sum(amount) AS BIGINT) AS amount FROM " + sides(where) + " GROUP BY account) AS u ON u.account = a.id) AS b" +
		" GROUP BY kind, currency ORDER BY kind, currency"
	if err := q.NewRaw(query, from, from).Scan(ctx, &all); err != nil {
		return nil, fmt.Errorf("add up the accounts: %w", err)
	}
	return all, nil
}

// FirstEntry returns when the first entry was booked, in Unix µs; 0 = none was.
func FirstEntry(ctx context.Context, q bun.IDB) (at int64, err error) {
	if err := q.NewRaw("SELECT coalesce((SELECT t.created_at FROM transfers AS t ORDER BY t.id LIMIT 1), 0)").Scan(ctx, &at); err != nil {
		return 0, fmt.Errorf("find the first entry: %w", err)
	}
	return at, nil
}
