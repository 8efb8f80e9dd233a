package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

func TestOfManyWhoBookOneRefAtOnceOneDoes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		errs := make([]error, 16)
		var wg sync.WaitGroup
		for i := range errs {
			book := ledger.New(d) // each is a node of its own, with an empty cache
			wg.Go(func() {
				errs[i] = dbtest.Repeat(func() error { return post(t, d, book, pays("m", 5, fmt.Sprint("own ", i)), pays("m", 5, "shared")) })
			})
		}
		wg.Wait()
		booked := 0
		for _, err := range errs {
			if err == nil {
				booked++
			} else if !db.IsUnique(err) {
				t.Errorf("the second one gets %v", err)
			}
		}
		if booked != 1 {
			t.Errorf("%d of them have booked it", booked)
		}
		wantBalance(t, d, ledger.New(d), "merchant:m", "CNY", 10)
	})
}

// Several nodes post and fold concurrently. As only credits are posted, readers see a balance
// that only grows; in the end it is the sum, also as stored in the account.
func TestNothingIsCountedTwiceOrLeftOutWhileManyPostAndFold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const nodes, journals = 4, 25
		merchants := []string{"a", "b", "c"}
		stop := make(chan struct{})
		var posters, others sync.WaitGroup
		for node := range nodes {
			book := ledger.New(d)
			posters.Go(func() {
				for i := range journals {
					var entries []ledger.Entry
					for k, m := range merchants {
						entries = append(entries, pays(m, int64(k+1), fmt.Sprint(node, " ", i, " ", m)))
					}
					repeated(t, func() error { return post(t, d, book, entries...) })
				}
			})
			others.Go(func() { until(stop, func() error { _, err := book.Fold(t.Context()); return err }, t) })
		}
		others.Go(func() {
			book, least := ledger.New(d), int64(0)
			until(stop, func() error {
				return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
					now, err := book.Balance(ctx, tx, "merchant:c", "CNY")
					if now < least || now > nodes*journals*3 {
						t.Errorf("the balance goes from %d to %d", least, now)
					}
					least = now
					return err
				})
			}, t)
		})
		posters.Wait()
		close(stop)
		others.Wait()
		book := ledger.New(d)
		for range 2 {
			for k, m := range merchants {
				wantBalance(t, d, book, ledger.MerchantAccount(m), "CNY", nodes*journals*int64(k+1))
			}
			wantBalance(t, d, book, ledger.SupplierAccount("s"), "CNY", -nodes*journals*(1+2+3))
			for fold(t, book) > 0 {
			}
		}
		if n := count(t, d, "SELECT balance FROM accounts WHERE code = 'merchant:c'"); n != nodes*journals*3 {
			t.Errorf("the account has %d", n)
		}
	})
}

// until repeats an action until stop is closed.
func until(stop <-chan struct{}, do func() error, t *testing.T) {
	for {
		repeated(t, do)
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond): // let the others run
		}
	}
}

// PostgreSQL only: Balance and Fold wait for each other at the account. If the balance were read
// before a fold and the unfolded part after it, what the fold moved would be missing.
func TestABalanceWaitsForAFoldThatIsUnderWay(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	book := ledger.New(d)
	posted(t, d, book, pays("m", 5, "1"))
	var got int64
	var ended <-chan error
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		// The writes of Fold, before its commit.
		for _, q := range []string{"UPDATE accounts SET balance = 5 WHERE code = 'merchant:m'", "UPDATE journals SET folded = TRUE"} {
			if _, err := tx.NewRaw(q).Exec(ctx); err != nil {
				return err
			}
		}
		ended = dbtest.TxBeside(t, d, func(ctx context.Context, tx db.Tx) (err error) {
			got, err = book.Balance(ctx, tx, "merchant:m", "CNY")
			return err
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || got != 5 {
		t.Errorf("the balance is %d, %v; want 5", got, err)
	}
}

// Two transactions that create the same accounts must not deadlock: the one that waits for the
// first account has not created a later one.
func TestAccountsAreOpenedInOneOrder(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var behind, all []ledger.Entry
	for i := range 12 {
		e := pays(fmt.Sprint("m", i), 1, fmt.Sprint("behind ", i))
		e.Debit = "z" + e.Credit
		behind = append(behind, e)
		e.Ref = fmt.Sprint("all ", i)
		all = append(all, e)
	}
	first := ledger.Entry{Debit: "a", Credit: "b", Amount: 1, Currency: "CNY", Ref: "first"}
	again := first
	again.Ref = "again"
	one, two := ledger.New(d), ledger.New(d)
	var ended <-chan error
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		if err := postIn(ctx, tx, one, first); err != nil {
			return err
		}
		ended = dbtest.TxBeside(t, d, func(ctx context.Context, tx db.Tx) error { return postIn(ctx, tx, two, append(all, again)...) })
		return postIn(ctx, tx, one, behind...)
	})
	if ended == nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Errorf("the first one gets %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the second one gets %v", err)
	}
	wantBalance(t, d, ledger.New(d), "b", "CNY", 2)
	wantBalance(t, d, ledger.New(d), ledger.MerchantAccount("m3"), "CNY", 2)
}
