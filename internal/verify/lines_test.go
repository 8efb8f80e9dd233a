package verify

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestLinesThatAreNotTheBalanceAreSeen(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"a line has another amount": "UPDATE account_lines SET balance = balance + 1 WHERE id = (SELECT min(id) FROM account_lines)",
		"credits were changed":      "UPDATE account_lines SET credits = credits + 1 WHERE id = (SELECT max(id) FROM account_lines)",
		"a line is gone":            "DELETE FROM account_lines WHERE id = (SELECT min(id) FROM account_lines)",
		"the last one is gone":      "DELETE FROM account_lines WHERE id = (SELECT max(id) FROM account_lines)",
		"a line is of another":      "UPDATE account_lines SET transfer_id = 7 WHERE id = (SELECT min(id) FROM account_lines)",
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := feeStory(t, d)
		s.pay(s.create(s.M1, 0))
		if _, err := s.Ledger.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.pay(s.create(s.M1, 0)) // not folded
		found := func() int64 {
			for _, i := range s.verify(-time.Hour).Invariants {
				if i.ID == "I13" {
					return i.Violations
				}
			}
			return -1
		}
		for name, query := range cases {
			if n := found(); n != 0 {
				t.Fatalf("%d violations before %s", n, name)
			}
			s.tampered(func() {
				if n := found(); n <= 0 {
					t.Errorf("%s: %d violations", name, n)
				}
			}, query)
		}
	})
}
