package ledger

import (
	"context"
	"fmt"

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
