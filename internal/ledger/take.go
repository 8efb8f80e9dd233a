package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"
)

// ErrInsufficient: an account has less than is to be taken from it (contract: 409
// insufficient_balance).
var ErrInsufficient = errors.New("the balance is not enough")

// Take is Post of entries that may take no more from an account than it has: with them its
// balance stays at or above -overdraft, in minor units, or the error is ErrInsufficient. The
// account is locked until the transaction ends, so that two who take at once see each other:
// accounts come last in the order of locks. All entries that name the account have one
// currency, else Take fails.
func (b *Ledger) Take(ctx context.Context, tx db.Tx, w *db.Writes, account string, overdraft int64, entries []Entry) error {
	currency, taken := "", int64(0)
	for _, e := range entries {
		if e.Debit != account && e.Credit != account {
			continue
		}
		if currency != "" && currency != e.Currency {
			return fmt.Errorf("entries of %s in %s and %s: each currency is checked by itself", account, currency, e.Currency)
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
	// A row that is not there cannot be locked. All are made together, in the one order.
	if _, err := b.accounts(ctx, tx, entries); err != nil {
		return err
	}
	balance, err := b.Balance(ctx, tx, account, currency)
	if err != nil {
		return err
	}
	if taken > 0 && balance-taken < -overdraft {
		return fmt.Errorf("%w: %s has %d, %d are to be taken, %d may be overdrawn (%s, minor units)", ErrInsufficient, account, balance, taken, overdraft, currency)
	}
	return b.Post(ctx, tx, w, slices.Clip(entries))
}
