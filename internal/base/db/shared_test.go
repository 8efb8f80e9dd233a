package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

// A failing part rolls back only its own writes, whether it shares a transaction or not.
func TestPartsOfASharedTransactionFailAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "CREATE TABLE parts (id BIGINT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		no := errors.New("no")
		var wg sync.WaitGroup
		var mu sync.Mutex
		received := map[int]error{}
		const n = 300
		for i := range n {
			wg.Go(func() {
				err := d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
					tx.OnEnd(func(err error) {
						mu.Lock()
						defer mu.Unlock()
						received[i] = err
					})
					if _, err := tx.NewRaw("INSERT INTO parts (id) VALUES (?)", i).Exec(ctx); err != nil {
						return err
					}
					switch i % 3 {
					case 1:
						return no
					case 2: // the database refuses
						_, err := tx.NewRaw("INSERT INTO parts (id) VALUES (?)", i).Exec(ctx)
						return err
					}
					return nil
				})
				if ok := i%3 == 0; (err == nil) != ok || i%3 == 1 && !errors.Is(err, no) || i%3 == 2 && !db.IsUnique(err) {
					t.Errorf("part %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		var kept []int
		if err := d.NewRaw("SELECT id FROM parts ORDER BY id").Scan(t.Context(), &kept); err != nil {
			t.Fatal(err)
		}
		if len(kept) != n/3 {
			t.Fatalf("%d rows are kept, want %d", len(kept), n/3)
		}
		for i, id := range kept {
			if id != 3*i {
				t.Fatalf("row %d is kept", id)
			}
		}
		for i := range n {
			if (received[i] == nil) != (i%3 == 0) {
				t.Errorf("part %d received %v at its end", i, received[i])
			}
		}
	})
}

// Parts that wait while a transaction runs form the next transaction together. On PostgreSQL
// each has its own.
func TestWhatWaitsSharesOneTransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	running, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = d.SharedTx(t.Context(), func(context.Context, db.Tx) error {
			close(running)
			<-free
			return nil
		})
	})
	<-running
	var mu sync.Mutex
	together := map[string]int{}
	const n = 5
	for range n {
		wg.Go(func() {
			err := d.SharedTx(t.Context(), func(_ context.Context, tx db.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				together[fmt.Sprintf("%p", tx.Tx.Tx)]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	waittest.Until(t, "all parts wait", func() bool { return d.SharedWaiting() == n })
	close(free)
	wg.Wait()
	if len(together) != 1 {
		t.Errorf("%d parts ran in %d transactions", n, len(together))
	}
}

// A full disk rolls back the whole transaction because of one part. The others run again
// without it, and only the part that does not fit fails.
func TestAFullDiskFailsOnlyWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	if _, err := d.ExecContext(t.Context(), "CREATE TABLE parts (id BIGINT PRIMARY KEY, text BLOB)"); err != nil {
		t.Fatal(err)
	}
	pages := func(most string) {
		t.Helper()
		if _, err := d.ExecContext(t.Context(), "PRAGMA max_page_count = "+most); err != nil {
			t.Fatal(err)
		}
	}
	pages("1") // no more than there are
	insert := func(id, size int) error {
		return d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO parts (id, text) VALUES (?, randomblob(?))", id, size)
			return err
		})
	}
	var wg sync.WaitGroup
	errs := make([]error, 40)
	running, first := make(chan struct{}), make(chan struct{})
	wg.Go(func() { // while it runs, all others wait
		_ = d.SharedTx(t.Context(), func(context.Context, db.Tx) error {
			close(running)
			<-first
			return nil
		})
	})
	<-running
	for i := range errs {
		wg.Go(func() { errs[i] = insert(i, []int{10, 100_000}[i%2]) })
	}
	waittest.Until(t, "all parts wait", func() bool { return d.SharedWaiting() == len(errs) })
	close(first)
	wg.Wait()
	for i, err := range errs {
		if fits := i%2 == 0; fits && err != nil || !fits && (err == nil || !strings.Contains(err.Error(), "full")) {
			t.Errorf("part %d: %v", i, err)
		}
	}
	var kept, small int
	if err := d.NewRaw("SELECT count(*), sum(length(text) = 10) FROM parts").Scan(t.Context(), &kept, &small); err != nil || kept != 20 ||
		small != 20 {
		t.Errorf("%d rows are kept, %d of them small, %v", kept, small, err)
	}
	pages("1000000")
	if err := insert(1, 100_000); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

func TestAPanicInASharedTransactionIsItsOwn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	err := d.SharedTx(t.Context(), func(context.Context, db.Tx) error { panic("ouch") })
	if err == nil || !strings.Contains(err.Error(), "ouch") || !strings.Contains(err.Error(), "shared_test.go") {
		t.Errorf("a panic became %v", err)
	}
	if err := d.SharedTx(t.Context(), func(context.Context, db.Tx) error { return nil }); err != nil {
		t.Errorf("after a panic: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err = d.SharedTx(gone, func(context.Context, db.Tx) error {
		t.Error("it ran for a caller who is gone")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("for a caller who is gone: %v", err)
	}
}

// If one part fails, all of them run again. A part's OnEnd functions get an error for the first
// run, and the result of the second.
func TestPartsBeginAgainWhereOneFails(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	if _, err := d.ExecContext(t.Context(), "CREATE TABLE parts (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	running, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = d.SharedTx(t.Context(), func(context.Context, db.Tx) error {
			close(running)
			<-free
			return nil
		})
	})
	<-running
	var mu sync.Mutex
	ran, received := map[int]int{}, map[int][]error{}
	no := errors.New("no")
	part := func(i int, end error) func() {
		return func() {
			err := d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				mu.Lock()
				ran[i]++
				mu.Unlock()
				tx.OnEnd(func(err error) {
					mu.Lock()
					defer mu.Unlock()
					received[i] = append(received[i], err)
				})
				if _, err := tx.NewRaw("INSERT INTO parts (id) VALUES (?)", i).Exec(ctx); err != nil {
					return err
				}
				return end
			})
			if !errors.Is(err, end) {
				t.Errorf("part %d: %v", i, err)
			}
		}
	}
	for i, end := range []error{nil, no, nil} {
		wg.Go(part(i, end))
		waittest.Until(t, "it waits", func() bool { return d.SharedWaiting() == i+1 })
	}
	close(free)
	wg.Wait()
	var kept []int
	if err := d.NewRaw("SELECT id FROM parts ORDER BY id").Scan(t.Context(), &kept); err != nil || fmt.Sprint(kept) != "[0 2]" {
		t.Errorf("stored %v, %v", kept, err)
	}
	for i, want := range []int{2, 2, 1} { // the third had not run when the second failed
		if ran[i] != want || len(received[i]) != want {
			t.Fatalf("part %d ran %d times and received %v; want %d runs", i, ran[i], received[i], want)
		}
		for n, err := range received[i] {
			if last := n == want-1; (err == nil) != (last && i != 1) {
				t.Errorf("part %d received %v of run %d", i, err, n+1)
			}
		}
	}
}

// However the database refuses a row, and whatever it rolls back with it, the parts before and
// after it are kept.
func TestPartsOutliveAnyRefusalOfOne(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"FAIL", "ABORT", "ROLLBACK"} {
		t.Run(how, func(t *testing.T) {
			d := dbtest.SQLite(t)
			for _, text := range []string{
				"CREATE TABLE parts (id BIGINT PRIMARY KEY)",
				"CREATE TRIGGER refuse AFTER INSERT ON parts WHEN NEW.id = 11 BEGIN SELECT RAISE(" + how + ", 'refused'); END",
			} {
				if _, err := d.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			running, free := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = d.SharedTx(t.Context(), func(context.Context, db.Tx) error {
					close(running)
					<-free
					return nil
				})
			})
			<-running
			errs := make([]error, 3)
			for i := range errs {
				wg.Go(func() {
					errs[i] = d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
						_, err := tx.ExecContext(ctx, "INSERT OR FAIL INTO parts (id) VALUES (?), (?)", 10*i, 10*i+1)
						return err
					})
				})
				waittest.Until(t, "it waits", func() bool { return d.SharedWaiting() == i+1 })
			}
			close(free)
			wg.Wait()
			if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "refused") || errs[2] != nil {
				t.Errorf("the parts ended with %v", errs)
			}
			var kept []int
			if err := d.NewRaw("SELECT id FROM parts ORDER BY id").Scan(t.Context(), &kept); err != nil ||
				fmt.Sprint(kept) != "[0 1 20 21]" {
				t.Errorf("stored %v, %v", kept, err)
			}
		})
	}
}
