package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// draws returns an entry that takes from the merchant.
func draws(merchant string, amount int64, ref string) ledger.Entry {
	return ledger.Entry{Debit: ledger.MerchantAccount(merchant), Credit: "payout:s", Amount: amount, Currency: "CNY", Ref: ref}
}

type taker func(ctx context.Context, tx db.Tx, w *db.Writes, account string, overdraft int64, entries []ledger.Entry) error

func take(t *testing.T, d *db.DB, by taker, overdraft int64, entries ...ledger.Entry) error {
	return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		if err := by(ctx, tx, w, ledger.MerchantAccount("m"), overdraft, entries); err != nil {
			return err
		}
		return w.Exec(ctx)
	})
}

// takeAtOnce lets many nodes take 100 each concurrently and returns how many succeeded.
func takeAtOnce(t *testing.T, d *db.DB, many int, round string, overdraft int64, by func(*ledger.Ledger) taker) (taken int) {
	t.Helper()
	errs := make([]error, many)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range errs {
		book := ledger.New(d)
		wg.Go(func() {
			<-start
			errs[i] = dbtest.Repeat(func() error {
				return take(t, d, by(book), overdraft, draws("m", 100, fmt.Sprint(round, " payout ", i)))
			})
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			taken++
		} else if !errors.Is(err, ledger.ErrInsufficient) {
			t.Fatalf("a debit failed with %v", err)
		}
	}
	return taken
}

// rounds is the number of rounds of a race; make soak runs the full number.
func rounds() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 1000
	}
	return 5
}

func TestOfManyDebitsAtOnceTheBalanceAllowsExactlyItsSum(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		for round := range rounds() {
			posted(t, d, book, pays("m", 1000, fmt.Sprint("paid ", round)))
			if round%2 == 1 {
				fold(t, book)
			}
			if n := takeAtOnce(t, d, 50, fmt.Sprint(round), 0, func(l *ledger.Ledger) taker { return l.Take }); n != 10 {
				t.Fatalf("round %d: %d debits of 100 passed on a balance of 1000", round, n)
			}
			wantBalance(t, d, book, "merchant:m", "CNY", 0)
		}
	})
}

// There is no row to lock: the merchant has never been paid.
func TestOfManyDebitsOnAnAccountWithoutARowTheOverdraftAllowsExactlyItsSum(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if n := takeAtOnce(t, d, 50, "first", 1000, func(l *ledger.Ledger) taker { return l.Take }); n != 10 {
			t.Errorf("%d debits of 100 passed on an overdraft of 1000", n)
		}
		wantBalance(t, d, ledger.New(d), "merchant:m", "CNY", -1000)
	})
}

// The negative control: reading the balance without a lock, or locking a row that does not
// exist, lets two debits pass. SQLite has one writer at a time; here both read before they write.
func TestDebitsThatReadWithoutALockOverdraw(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		posted(t, d, book, pays("m", 100, "paid"))
		fold(t, book)
		var read, all sync.WaitGroup
		read.Add(2)
		for i := range 2 {
			all.Go(func() {
				var balance int64
				err := d.Read.NewRaw("SELECT balance FROM accounts WHERE code = 'merchant:m'").Scan(t.Context(), &balance)
				read.Done()
				read.Wait()
				if err != nil || balance < 100 {
					t.Errorf("the balance is %d, %v", balance, err)
					return
				}
				if err := post(t, d, book, draws("m", 100, fmt.Sprint("payout ", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		wantBalance(t, d, book, "merchant:m", "CNY", -100)
	})
}

// PostgreSQL only, since SQLite has a single writer: Balance alone locks nothing if there is no
// row.
func TestABalanceWithoutARowLocksNothing(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var met sync.WaitGroup
	var tries atomic.Int32
	met.Add(2)
	n := takeAtOnce(t, d, 2, "naive", 200, func(l *ledger.Ledger) taker {
		return func(ctx context.Context, tx db.Tx, w *db.Writes, account string, overdraft int64, entries []ledger.Entry) error {
			balance, err := l.Balance(ctx, tx, account, "CNY")
			if tries.Add(1) <= 2 { // a repeated try meets nobody
				met.Done()
			}
			met.Wait()
			if err != nil || balance-100 < -overdraft {
				return errors.Join(ledger.ErrInsufficient, err)
			}
			return l.Post(ctx, tx, w, entries)
		}
	})
	if n != 2 {
		t.Errorf("%d of two naive debits passed: the control shows nothing", n)
	}
	wantBalance(t, d, ledger.New(d), "merchant:m", "CNY", -200)
}

func TestWhatMayBeTaken(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		posted(t, d, book, pays("m", 1000, "paid"))
		fee := ledger.Entry{Debit: "merchant:m", Credit: "income:fees", Amount: 1, Currency: "CNY"}
		back := ledger.Entry{Debit: "income:fees", Credit: "merchant:m", Amount: 5, Currency: "CNY"}
		with := func(e ledger.Entry, ref string) ledger.Entry { e.Ref = ref; return e }
		if err := take(t, d, book.Take, 0, draws("m", 1000, "a"), with(fee, "a fee")); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("the fee is not counted: %v", err)
		}
		wantBalance(t, d, book, "merchant:m", "CNY", 1000)
		if err := take(t, d, book.Take, 1, draws("m", 1000, "b"), with(fee, "b fee")); err != nil {
			t.Errorf("all of it and the overdraft: %v", err)
		}
		wantBalance(t, d, book, "merchant:m", "CNY", -1)
		if err := take(t, d, book.Take, 0, draws("m", 1, "c")); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("below zero: %v", err)
		}
		// Entries that give more than they take are allowed at any balance.
		if err := take(t, d, book.Take, 0, draws("m", 2, "d"), with(back, "d back")); err != nil {
			t.Errorf("a balance that grows: %v", err)
		}
		wantBalance(t, d, book, "merchant:m", "CNY", 2)
		other := draws("m", 1, "e")
		other.Currency = "USD"
		for name, entries := range map[string][]ledger.Entry{
			"two currencies":          {draws("m", 1, "f"), other},
			"no entry of the account": {draws("n", 1, "g")},
		} {
			if err := take(t, d, book.Take, 10, entries...); err == nil || errors.Is(err, ledger.ErrInsufficient) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
