package verify

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestLinesThatAreNotTheBalanceAreSeen(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]string{
		"":                          "",
		"a line has another amount": "UPDATE account_lines SET balance = balance + 1 WHERE id = (SELECT min(id) FROM account_lines)",
		"credits were changed":      "UPDATE account_lines SET credits = credits + 1 WHERE id = (SELECT max(id) FROM account_lines)",
		"a line is gone":            "DELETE FROM account_lines WHERE id = (SELECT min(id) FROM account_lines)",
		"the last one is gone":      "DELETE FROM account_lines WHERE id = (SELECT max(id) FROM account_lines)",
		"a line is of another":      "UPDATE account_lines SET transfer_id = 7 WHERE id = (SELECT min(id) FROM account_lines)",
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				s := feeStory(t, d)
				s.pay(s.create(s.M1, 0))
				if _, err := s.Ledger.Fold(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.pay(s.create(s.M1, 0)) // not folded
				if tamper != "" {
					s.exec(tamper)
				}
				report := s.verify(-time.Hour)
				for _, i := range report.Invariants {
					if i.ID == "I13" && (i.Violations > 0) != (tamper != "") {
						t.Errorf("%d violations:\n%s", i.Violations, explain(report))
					}
				}
			})
		})
	}
}
