package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"
)

// ErrInsufficient means that an account has less than is to be taken from it (contract: 409
// insufficient_balance).
var ErrInsufficient = errors.New("insufficient balance")

// Take is Post for entries that must not take more from an account than it has: its balance must
// stay at or above -overdraft (minor units), otherwise the error is ErrInsufficient. The account
// stays locked until the transaction ends, so that concurrent calls see each other's entries;
// accounts come last in the order of locks. All entries that name the account must have the same
// currency.
func (b *Ledger) Take(ctx context.Context, tx db.Tx, w *db.Writes, account string, overdraft int64, entries []Entry) error {
	currency, taken := "", int64(0)
	for _, e := range entries {
		if e.Debit != account && e.Credit != account {
			continue
		}
		if currency != "" && currency != e.Currency {
			return fmt.Errorf("entries of %s are in %s and %s: take each currency separately", account, currency, e.Currency)
		}
		if currency = e.Currency; e.Debit == account {
			taken += e.Amount
		} else {
			taken -= e.Amount
		}
	}
	if currency == "" {
		return fmt.Errorf("no entry takes from %s", account)
	}
	balance, err := b.Lock(ctx, tx, account, currency, entries)
	if err != nil {
		return err
	}
	if taken > 0 && balance-taken < -overdraft {
		return fmt.Errorf("%w: %s has %d, the entries take %d, the overdraft is %d (%s, minor units)", ErrInsufficient, account, balance,
			taken, overdraft, currency)
	}
	return b.Post(ctx, tx, w, slices.Clip(entries))
}

// Lock is LockAll for one account.
func (b *Ledger) Lock(ctx context.Context, tx db.Tx, account, currency string, entries []Entry) (balance int64, err error) {
	key := Key{account, currency}
	all, err := b.LockAll(ctx, tx, []Key{key}, entries)
	return all[key], err
}

// LockAll locks accounts until the transaction ends and returns their balances, for decisions
// before the entries are posted. A missing row cannot be locked, so the accounts and those of
// the entries are created first, in the usual order.
func (b *Ledger) LockAll(ctx context.Context, tx db.Tx, accounts []Key, entries []Entry) (map[Key]int64, error) {
	entries = slices.Clone(entries)
	for _, k := range accounts {
		entries = append(entries, Entry{Debit: k.Code, Credit: k.Code, Currency: k.Currency})
	}
	ids, err := b.accounts(ctx, tx, entries)
	if err != nil {
		return nil, err
	}
	list := make([]int64, len(accounts))
	for i, k := range accounts {
		list[i] = ids[k]
	}
	balances, err := b.balances(ctx, tx, list)
	if err != nil {
		return nil, err
	}
	all := make(map[Key]int64, len(accounts))
	for i, k := range accounts {
		all[k] = balances[list[i]]
	}
	return all, nil
}
