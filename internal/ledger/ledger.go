// Package ledger implements double-entry accounts. A transfer has both sides and one positive
// amount, so that an imbalance cannot be stored.
//
// A payment updates no balance: a row changed by every order would cost more than half of the
// throughput. Each transaction writes one journal; Fold adds journals to the accounts every
// second, and Balance adds what is not folded yet.
package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// SupplierAccount returns the code of a supplier's account. Its balance is negative by what the
// supplier owes us.
func SupplierAccount(code string) string { return "supplier:" + code }

// MerchantAccount returns the code of a merchant's account. Its balance is what we owe the
// merchant.
func MerchantAccount(code string) string { return "merchant:" + code }

// CostAccount returns the code of the account for what a supplier charges us.
func CostAccount(code string) string { return "cost:" + code }

// SuspenseAccount returns the code of the account for a supplier's money that matches no order,
// until it is decided whose it is.
func SuspenseAccount(code string) string { return suspense + code }

const suspense = "suspense:"

// OfSuspense returns the supplier's code of a suspense account; "" = another account.
func OfSuspense(account string) string {
	code, ok := strings.CutPrefix(account, suspense)
	if !ok {
		return ""
	}
	return code
}

// Opening is the other side of balances imported from elsewhere.
const Opening = "opening"

// Account is one side of transfers in one currency. Balance is the folded credits minus debits,
// in minor units.
type Account struct {
	bun.BaseModel `bun:"table:accounts,alias:a"`

	ID       int64  `bun:"id,pk"`
	Code     string `bun:"code"`
	Currency string `bun:"currency"`
	Balance  int64  `bun:"balance"`
	LastLine int64  `bun:"last_line"` // 0 = none
	Credits  int64  `bun:"credits"`   // total of credits up to its last line
	FoldedAt *int64 `bun:"folded_at"` // Unix µs; nil = never
}

// Transfer moves Amount minor units from the debited to the credited account.
type Transfer struct {
	bun.BaseModel `bun:"table:transfers,alias:t"`

	ID            int64  `bun:"id,pk"`
	JournalID     int64  `bun:"journal_id"`
	DebitAccount  int64  `bun:"debit_account"`
	CreditAccount int64  `bun:"credit_account"`
	Amount        int64  `bun:"amount"`
	Currency      string `bun:"currency"`
	Ref           string `bun:"ref"` // unique, so that the same fact cannot be booked twice
	CreatedAt     int64  `bun:"created_at"`
}

type journalRow struct {
	bun.BaseModel `bun:"table:journals"`

	ID        int64 `bun:"id,pk"`
	CreatedAt int64 `bun:"created_at"`
}

// Entry is one transfer to be posted.
type Entry struct {
	Debit, Credit string // account codes
	Amount        int64
	Currency      string
	Ref           string
	// Once: if the Ref is already booked, that entry stays and this one is skipped.
	Once bool
}

// Ledger posts entries. It caches account ids.
type Ledger struct {
	db  *db.DB
	mu  sync.RWMutex
	ids map[Key]int64
}

// Key identifies an account.
type Key struct{ Code, Currency string }

// New returns a Ledger on the database.
func New(d *db.DB) *Ledger { return &Ledger{db: d, ids: map[Key]int64{}} }

// Post adds the entries to the writes as one journal. Accounts are created with their first
// entry. A Ref that is already booked causes a db.IsUnique error when the writes are sent,
// unless the entry is posted Once.
func (b *Ledger) Post(ctx context.Context, tx db.Tx, w *db.Writes, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	ids, err := b.accounts(ctx, tx, entries)
	if err != nil {
		return err
	}
	now, journal := b.db.Now(), b.db.NewID()
	var rows, once []Transfer
	for _, e := range entries {
		t := Transfer{
			ID: b.db.NewID(), JournalID: journal, Amount: e.Amount, Currency: e.Currency, Ref: e.Ref, CreatedAt: now,
			DebitAccount: ids[Key{e.Debit, e.Currency}], CreditAccount: ids[Key{e.Credit, e.Currency}],
		}
		if e.Once {
			once = append(once, t)
		} else {
			rows = append(rows, t)
		}
	}
	w.Insert(&[]journalRow{{ID: journal, CreatedAt: now}}, "")
	if len(rows) > 0 {
		w.Insert(&rows, "")
	}
	if len(once) > 0 {
		w.Insert(&once, "CONFLICT (ref) DO NOTHING")
	}
	return nil
}

// accounts returns the ids of all accounts in entries and creates missing ones. An account that
// is found may have been created in this transaction and be rolled back with it, so its id is
// cached only after the commit.
func (b *Ledger) accounts(ctx context.Context, tx db.Tx, entries []Entry) (map[Key]int64, error) {
	ids, missing := b.cached(entries)
	if len(missing) == 0 {
		return ids, nil
	}
	if err := b.find(ctx, tx, missing, ids); err != nil {
		return nil, err
	}
	found := map[Key]int64{}
	for k := range missing {
		if id := ids[k]; id != 0 {
			found[k] = id
			delete(missing, k)
		}
	}
	tx.OnEnd(func(err error) {
		if err == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			maps.Copy(b.ids, found)
		}
	})
	if len(missing) == 0 {
		return ids, nil
	}
	var rows []Account
	for k := range missing {
		rows = append(rows, Account{ID: b.db.NewID(), Code: k.Code, Currency: k.Currency})
	}
	// Every writer creates accounts in the same order, which prevents deadlocks.
	slices.SortFunc(rows, func(x, y Account) int {
		return cmp.Or(cmp.Compare(x.Code, y.Code), cmp.Compare(x.Currency, y.Currency))
	})
	if _, err := tx.NewInsert().Model(&rows).On("CONFLICT (code, currency) DO NOTHING").Exec(ctx); err != nil {
		return nil, fmt.Errorf("open accounts: %w", err)
	}
	return ids, b.find(ctx, tx, missing, ids)
}

func (b *Ledger) cached(entries []Entry) (ids map[Key]int64, missing map[Key]bool) {
	ids, missing = map[Key]int64{}, map[Key]bool{}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, e := range entries {
		for _, k := range []Key{{e.Debit, e.Currency}, {e.Credit, e.Currency}} {
			if id, ok := b.ids[k]; ok {
				ids[k] = id
			} else {
				missing[k] = true
			}
		}
	}
	return ids, missing
}

func (b *Ledger) find(ctx context.Context, tx db.Tx, keys map[Key]bool, ids map[Key]int64) error {
	codes := map[string]bool{}
	for k := range keys {
		codes[k.Code] = true
	}
	var rows []Account
	if err := tx.NewSelect().Model(&rows).Where("a.code IN (?)", bun.List(slices.Collect(maps.Keys(codes)))).Scan(ctx); err != nil {
		return fmt.Errorf("read accounts: %w", err)
	}
	for _, a := range rows {
		ids[Key{a.Code, a.Currency}] = a.ID
	}
	return nil
}

// Unfolded returns a condition on t for the transfers that are not yet in the balances. The ids
// of a journal's transfers are above its own, which bounds the query.
func Unfolded(ctx context.Context, tx bun.IDB) (where string, from int64, err error) {
	err = tx.NewRaw("SELECT coalesce((SELECT min(id) FROM journals WHERE NOT folded), (SELECT max(id) FROM journals), 0)").Scan(ctx, &from)
	if err != nil {
		return "", 0, fmt.Errorf("find the oldest journal that is not folded: %w", err)
	}
	return "t.id > ? AND t.journal_id IN (SELECT j.id FROM journals AS j WHERE NOT j.folded)", from, nil
}

// Sums returns credits minus debits, in minor units, by account, of the transfers that match a
// condition on t.
func Sums(ctx context.Context, tx bun.IDB, where string, args ...any) (map[int64]int64, error) {
	var rows []struct{ ID, Amount int64 }
	query := "SELECT account AS id, CAST(sum(amount) AS BIGINT) AS amount FROM " + sides(where) + " GROUP BY account"
	if err := tx.NewRaw(query, slices.Concat(args, args)...).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("sum transfers: %w", err)
	}
	sums := make(map[int64]int64, len(rows))
	for _, r := range rows {
		sums[r.ID] = r.Amount
	}
	return sums, nil
}

// Balance returns the account's exact balance in minor units, folded or not; 0 for an account
// without entries.
func (b *Ledger) Balance(ctx context.Context, tx db.Tx, code, currency string) (int64, error) {
	a := new(Account)
	q := tx.NewSelect().Model(a).Column("id").Where("a.code = ?", code).Where("a.currency = ?", currency)
	if err := q.Scan(ctx); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		return 0, fmt.Errorf("read account %s: %w", code, err)
	}
	balances, err := b.balances(ctx, tx, []int64{a.ID})
	return balances[a.ID], err
}

// balances locks accounts, by id, and returns their exact balances.
func (b *Ledger) balances(ctx context.Context, tx db.Tx, ids []int64) (map[int64]int64, error) {
	var rows []struct{ ID, Balance int64 }
	if err := tx.Prepared(ctx, &rows, "SELECT id, balance FROM accounts WHERE id IN (?) ORDER BY id"+b.db.ForUpdateText(),
		ids); err != nil {
		return nil, fmt.Errorf("lock accounts: %w", err)
	}
	where, from, err := Unfolded(ctx, tx)
	if err != nil {
		return nil, err
	}
	list := bun.List(ids)
	tail, err := Sums(ctx, tx, where+" AND (t.credit_account IN (?) OR t.debit_account IN (?))", from, list, list)
	if err != nil {
		return nil, err
	}
	all := make(map[int64]int64, len(rows))
	for _, a := range rows {
		all[a.ID] = a.Balance + tail[a.ID]
	}
	return all, nil
}
