package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Bounds of one transaction of Fold. A journal is always folded as a whole, however many
// transfers it has.
const (
	foldJournals  = 500
	foldTransfers = 5000
)

// Fold adds a bounded number of journals to the balances, writes their lines, and returns how
// many it folded. Several nodes may fold at once.
func (b *Ledger) Fold(ctx context.Context) (journals int, err error) {
	err = b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		ids, err := b.unfolded(ctx, tx)
		journals = len(ids)
		if err != nil || journals == 0 {
			return err
		}
		if err := b.foldInto(ctx, tx, "t.id > ? AND t.journal_id IN (?)", ids[0], bun.List(ids)); err != nil {
			return err
		}
		_, err = tx.NewRaw("UPDATE journals SET folded = TRUE WHERE id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("fold the ledger: %w", err)
	}
	return journals, nil
}

// unfolded locks the oldest journals that are not yet folded.
func (b *Ledger) unfolded(ctx context.Context, tx db.Tx) (ids []int64, err error) {
	q := tx.NewSelect().Table("journals").Column("id").Where("NOT folded").OrderExpr("id").Limit(foldJournals)
	if err := b.db.SkipLocked(q).Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return nil, err
	}
	var sizes []struct{ JournalID, N int64 }
	err = tx.NewRaw("SELECT t.journal_id, count(*) AS n FROM transfers AS t WHERE t.id > ? AND t.journal_id IN (?) GROUP BY t.journal_id",
		ids[0], bun.List(ids)).Scan(ctx, &sizes)
	if err != nil {
		return nil, err
	}
	of := make(map[int64]int64, len(sizes))
	for _, s := range sizes {
		of[s.JournalID] = s.N
	}
	sum := int64(0)
	for i, id := range ids {
		if sum += of[id]; sum > foldTransfers && i > 0 {
			return ids[:i], nil
		}
	}
	return ids, nil
}

// sides returns a subquery with both sides of each transfer that matches a condition on t. It
// takes the condition's arguments twice.
func sides(where string) string {
	return "(SELECT t.credit_account AS account, t.id AS id, t.amount AS amount FROM transfers AS t WHERE " + where +
		" UNION ALL SELECT t.debit_account, t.id, -t.amount FROM transfers AS t WHERE " + where + ") AS sides"
}

// credit is the credited amount of a side; 0 for a debit.
const credit = "CASE WHEN amount > 0 THEN amount ELSE 0 END"

// foldInto adds transfers to the balances and the lines of their accounts.
func (b *Ledger) foldInto(ctx context.Context, tx db.Tx, where string, args ...any) error {
	args = slices.Concat(args, args)
	var sums []struct{ Account, Amount, Credits, Lines, Last int64 }
	err := tx.NewRaw("SELECT account, CAST(sum(amount) AS BIGINT) AS amount, CAST(sum("+credit+
		") AS BIGINT) AS credits, count(*) AS lines, max(id) AS last FROM "+sides(where)+" GROUP BY account", args...).Scan(ctx, &sums)
	if err != nil {
		return err
	}
	delta := make(map[int64]int, len(sums))
	for i, s := range sums {
		delta[s.Account] = i
	}
	if len(delta) == 0 {
		return nil
	}
	var rows []Account
	ids := slices.Sorted(maps.Keys(delta))
	if err := b.db.ForUpdate(tx.NewSelect().Model(&rows).Where("a.id IN (?)", bun.List(ids)).OrderExpr("a.id")).Scan(ctx); err != nil {
		return err
	}
	// The id of the n-th new line is at least n above the account's last line. Because ids grow,
	// each line is then above the one before it.
	_, err = tx.NewRaw("INSERT INTO account_lines (account_id, id, transfer_id, balance, credits)"+
		" SELECT a.id, CASE WHEN s.id > a.last_line + s.n THEN s.id ELSE a.last_line + s.n END, s.id, a.balance + s.running, a.credits + s.credited FROM"+
		" (SELECT account, id, row_number() OVER lines AS n, CAST(sum(amount) OVER lines AS BIGINT) AS running, CAST(sum("+credit+
		") OVER lines AS BIGINT) AS credited FROM "+sides(where)+
		" WINDOW lines AS (PARTITION BY account ORDER BY id ROWS UNBOUNDED PRECEDING)) AS s JOIN accounts AS a ON a.id = s.account",
		args...).Exec(ctx)
	if err != nil {
		return err
	}
	now := b.db.Now()
	for i := range rows {
		s := sums[delta[rows[i].ID]]
		rows[i].Balance += s.Amount
		rows[i].Credits += s.Credits
		rows[i].LastLine, rows[i].FoldedAt = max(rows[i].LastLine+s.Lines, s.Last), &now
	}
	_, err = tx.NewUpdate().With("_a", tx.NewValues(&rows)).Model((*Account)(nil)).TableExpr("_a").
		Set("balance = _a.balance").Set("credits = _a.credits").Set("last_line = _a.last_line").Set("folded_at = _a.folded_at").Where(
		"a.id = _a.id").Exec(ctx)
	return err
}
