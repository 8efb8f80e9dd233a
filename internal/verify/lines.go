package verify

import (
	"context"
	"fmt"

	"backstop/internal/ledger"

	"github.com/uptrace/bun"
)

// lines compares the lines of each account with its entries and its balance: each line must be
// the line before it plus its entry, and the last one must be the balance. Statements are ranges
// of lines, so they are covered too.
func (r *run) lines(ctx context.Context, i *Invariant) (map[string]string, error) {
	var accounts []ledger.Account
	if err := r.db.Read.NewSelect().Model(&accounts).OrderExpr("a.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	wrong := map[string]string{}
	for _, a := range accounts {
		what, err := r.linesOf(ctx, i, a)
		if err != nil {
			return nil, err
		}
		if what != "" {
			wrong[a.Code+" "+a.Currency] = "account " + a.Code + " " + a.Currency + " " + what
		}
		r.report(i)
	}
	return wrong, nil
}

// linesOf returns what is wrong with the lines of an account up to its last one; "" = nothing.
func (r *run) linesOf(ctx context.Context, i *Invariant, a ledger.Account) (what string, err error) {
	type page struct{ N, Last, Odd, Balance, Credits int64 }
	const sql = "WITH p AS (SELECT l.id, l.balance, l.credits, CASE WHEN t.credit_account = l.account_id THEN t.amount WHEN t.debit_account = l.account_id THEN -t.amount END AS amount" +
		" FROM account_lines AS l LEFT JOIN transfers AS t ON t.id = l.transfer_id WHERE l.account_id = ?0 AND l.id > ?1 AND l.id <= ?2 ORDER BY l.id LIMIT ?3)," +
		" q AS (SELECT p.*, lag(p.balance) OVER (ORDER BY p.id) AS b, lag(p.credits) OVER (ORDER BY p.id) AS c FROM p)" +
		" SELECT count(*) AS n, coalesce(max(id), 0) AS last, count(CASE WHEN amount IS NULL OR balance <> coalesce(b, ?4) + amount" +
		" OR credits <> coalesce(c, ?5) + CASE WHEN amount > 0 THEN amount ELSE 0 END THEN 1 END) AS odd," +
		" coalesce((SELECT q2.balance FROM q AS q2 ORDER BY q2.id DESC LIMIT 1), 0) AS balance, coalesce((SELECT q2.credits FROM q AS q2 ORDER BY q2.id DESC LIMIT 1), 0) AS credits FROM q"
	var is page
	for {
		var next page
		err := r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
			return tx.NewRaw(sql, a.ID, is.Last, a.LastLine, pageRows, is.Balance, is.Credits).Scan(ctx, &next)
		})
		if err != nil {
			return "", fmt.Errorf("read lines: %w", err)
		}
		if next.N == 0 {
			break
		}
		if i.Examined += next.N; next.Odd > 0 {
			return fmt.Sprintf("has %d lines that do not follow from the line before", next.Odd), nil
		}
		is = next
	}
	if is.Balance != a.Balance || is.Credits != a.Credits {
		return fmt.Sprintf("has the balance %d, but its lines end with %d", a.Balance, is.Balance), nil
	}
	return "", nil
}
