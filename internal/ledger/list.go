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

// Tail returns what of an account is not folded yet, as Fold will write it. It must run in the
// snapshot in which the account was read.
func Tail(ctx context.Context, q bun.IDB, a *Account) ([]TailLine, error) {
	where, from, err := Unfolded(ctx, q)
	if err != nil {
		return nil, err
	}
	var rows []Transfer
	err = q.NewSelect().Model(&rows).Where(where+" AND (t.credit_account = ? OR t.debit_account = ?)", from, a.ID, a.ID).
		OrderExpr("t.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is not folded yet: %w", err)
	}
	tail := make([]TailLine, len(rows))
	last := TailLine{Balance: a.Balance, Credits: a.Credits}
	for i, t := range rows {
		last.ID, last.Transfer = max(t.ID, a.LastLine+int64(i)+1), t
		if last.Balance -= t.Amount; t.CreditAccount == a.ID {
			last.Balance += 2 * t.Amount
			last.Credits += t.Amount
		}
		tail[i] = last
	}
	return tail, nil
}
