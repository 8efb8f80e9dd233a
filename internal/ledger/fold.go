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

// linesBelow is the name in settings of the id below which transfers of earlier versions have no
// lines yet.
const linesBelow = "lines_below"

// lineStep is how many transfers one transaction of Line processes.
const lineStep = 1000

// Line writes the lines of a bounded number of transfers that an earlier version folded, the
// newest first, and returns how many. If interrupted it can be resumed; several nodes may run it
// at once.
func (b *Ledger) Line(ctx context.Context) (transfers int, err error) {
	var below []int64
	if err := b.db.Read.NewRaw("SELECT value FROM settings WHERE name = ?", linesBelow).Scan(ctx, &below); err != nil || len(below) == 0 {
		return 0, err
	}
	err = b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var rows []Transfer
		if err := tx.NewSelect().Model(&rows).Where("t.id < ?", below[0]).OrderExpr("t.id DESC").Limit(lineStep).Scan(ctx); err != nil {
			return err
		}
		transfers = len(rows)
		mark := tx.NewRaw("DELETE FROM settings WHERE name = ? AND value = ?", linesBelow, below[0])
		if transfers > 0 {
			mark = tx.NewRaw("UPDATE settings SET value = ? WHERE name = ? AND value = ?", rows[transfers-1].ID, linesBelow, below[0])
		}
		res, err := mark.Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 { // another node was faster
			transfers = 0
			return err
		}
		return b.line(ctx, tx, rows)
	})
	if err != nil {
		return 0, fmt.Errorf("write the lines of accounts: %w", err)
	}
	return transfers, nil
}

// lineRow is one line as stored.
type lineRow struct {
	bun.BaseModel `bun:"table:account_lines"`

	AccountID  int64 `bun:"account_id,pk"`
	ID         int64 `bun:"id,pk"`
	TransferID int64 `bun:"transfer_id"`
	Balance    int64 `bun:"balance"`
	Credits    int64 `bun:"credits"`
}

// line writes the lines of transfers, which are ordered from the newest to the oldest.
func (b *Ledger) line(ctx context.Context, tx db.Tx, transfers []Transfer) error {
	ids := map[int64]bool{}
	for _, t := range transfers {
		ids[t.DebitAccount], ids[t.CreditAccount] = true, true
	}
	if len(ids) == 0 {
		return nil
	}
	var accounts []*Account
	if err := b.db.ForUpdate(tx.NewSelect().Model(&accounts).Where("a.id IN (?)",
		bun.List(slices.Sorted(maps.Keys(ids)))).OrderExpr("a.id")).Scan(ctx); err != nil {
		return err
	}
	byID := make(map[int64]*Account, len(accounts))
	for _, a := range accounts {
		byID[a.ID] = a
	}
	lines := make([]lineRow, 0, 2*len(transfers))
	for _, t := range transfers {
		to, from := byID[t.CreditAccount], byID[t.DebitAccount]
		lines = append(lines, lineRow{AccountID: to.ID, ID: t.ID, TransferID: t.ID, Balance: to.Unlined, Credits: to.UnlinedCredits},
			lineRow{AccountID: from.ID, ID: t.ID, TransferID: t.ID, Balance: from.Unlined, Credits: from.UnlinedCredits})
		to.Unlined -= t.Amount
		to.UnlinedCredits -= t.Amount
		from.Unlined += t.Amount
	}
	w := tx.Writes()
	w.Insert(&lines, "")
	w.Add(tx.NewUpdate().With("_a", tx.NewValues(&accounts)).Model((*Account)(nil)).TableExpr("_a").
		Set("unlined = _a.unlined").Set("unlined_credits = _a.unlined_credits").Where("a.id = _a.id"))
	return w.Exec(ctx)
}
