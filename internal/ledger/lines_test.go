package ledger_test

import (
	"fmt"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// wantLines checks that every side of every transfer has exactly one line, that ids grow, that
// each balance follows from the line before, and that the last line matches the account.
func wantLines(t *testing.T, d *db.DB) {
	t.Helper()
	if n, sides := count(t, d, "SELECT count(*) FROM account_lines"), count(t, d, "SELECT 2 * count(*) FROM transfers"); n != sides {
		t.Errorf("%d lines, %d sides of transfers", n, sides)
	}
	var rows []struct{ AccountID, ID, TransferID, Balance, Credits, Amount, Account, LastLine int64 }
	err := d.Read.NewRaw(
		"SELECT l.account_id, l.id, l.transfer_id, l.balance, l.credits, CASE WHEN t.credit_account = l.account_id THEN t.amount ELSE -t.amount END AS amount, a.balance AS account, a.last_line"+
			" FROM account_lines AS l JOIN transfers AS t ON t.id = l.transfer_id AND l.account_id IN (t.debit_account, t.credit_account) JOIN accounts AS a ON a.id = l.account_id"+
			" ORDER BY l.account_id, l.id").Scan(t.Context(), &rows)
	if err != nil {
		t.Fatal(err)
	}
	balance, seen := int64(0), map[[2]int64]bool{}
	for i, r := range rows {
		if i == 0 || rows[i-1].AccountID != r.AccountID {
			balance = 0
		}
		if i > 0 && rows[i-1].AccountID == r.AccountID && r.Credits-rows[i-1].Credits != max(r.Amount, 0) {
			t.Fatalf("line %d is %+v, after %+v: the credits do not follow", i, r, rows[i-1])
		}
		if balance += r.Amount; balance != r.Balance || r.ID < r.TransferID {
			t.Fatalf("line %d is %+v, the sum is %d", i, r, balance)
		}
		if key := [2]int64{r.AccountID, r.TransferID}; seen[key] {
			t.Fatalf("%+v is the second line of its transfer", r)
		} else {
			seen[key] = true
		}
		if last := i == len(rows)-1 || rows[i+1].AccountID != r.AccountID; last && (r.Balance != r.Account || r.ID > r.LastLine) {
			t.Errorf("the last line is %+v", r)
		}
	}
}

func TestFoldsWriteTheLinesOfEachAccount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const nodes, journals = 3, 40
		var all sync.WaitGroup
		for node := range nodes {
			book := ledger.New(d)
			all.Go(func() {
				for i := range journals {
					name := fmt.Sprint("m", i%3)
					repeated(t, func() error {
						return post(t, d, book, pays(name, int64(i+1), fmt.Sprint("paid ", node, " ", i)),
							draws(name, 1, fmt.Sprint("drawn ", node, " ", i)))
					})
					if i%4 == 0 {
						repeated(t, func() error { _, err := book.Fold(t.Context()); return err })
					}
				}
			})
		}
		all.Wait()
		for fold(t, ledger.New(d)) > 0 {
		}
		wantLines(t, d)
	})
}

// A transfer that is folded late comes after those folded before it, so that a day that was
// already shown does not change.
func TestALateTransferIsTheLastLine(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		posted(t, d, book, pays("m", 5, "first"))
		posted(t, d, book, pays("m", 7, "second"))
		late := "(SELECT journal_id FROM transfers WHERE ref = 'first')"
		exec := func(query string) {
			t.Helper()
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exec("UPDATE journals SET folded = TRUE WHERE id = " + late)
		fold(t, book)
		exec("UPDATE journals SET folded = FALSE WHERE id = " + late)
		fold(t, book)
		wantLines(t, d)
		if n := count(t, d,
			"SELECT l.balance FROM account_lines l JOIN transfers t ON t.id = l.transfer_id JOIN accounts a ON a.id = l.account_id"+
				" WHERE a.code = 'merchant:m' ORDER BY l.id DESC LIMIT 1"); n != 12 {
			t.Errorf("the last balance is %d", n)
		}
	})
}

// repeated reports what a caller that repeats gets in the end, unless it is nil.
func repeated(t *testing.T, do func() error) {
	if err := dbtest.Repeat(do); err != nil {
		t.Error(err)
	}
}
