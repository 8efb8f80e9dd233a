package console

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// Each account is in the group of its kind, the groups follow the chart of accounts, and a large one is
// not read whole.
func TestAccountsAreGroupedByKind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		entries := []ledger.Entry{}
		for i, sides := range [][2]string{
			{"supplier:s", "merchant:m"},
			{"merchant:m", "merchant:m:frozen"},
			{"merchant:m", "merchant:m:reserved"},
			{"merchant:m", "refund:s"},
			{"merchant:m", "payout:s"},
			{"supplier:s", "suspense:s"},
			{"merchant:m", "income:fees"},
			{"cost:s", "supplier:s"},
			{"bank:icbc", "loss"},
			{"opening", "merchant:m"},
		} {
			entries = append(entries, ledger.Entry{
				Debit: sides[0], Credit: sides[1], Amount: 1 << i, Currency: "CNY", Ref: fmt.Sprint("adjust:", i),
			})
		}
		for i := range groupRows + 1 {
			entries = append(entries, ledger.Entry{
				Debit: "supplier:s", Credit: fmt.Sprintf("merchant:n%02d", i), Amount: 1, Currency: "JPY", Ref: fmt.Sprint("paid:", i),
			})
		}
		book := ledger.New(d)
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			if err := book.Post(ctx, tx, w, entries); err != nil {
				return err
			}
			return w.Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		groups, err := (&Reader{db: d}).AccountGroups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds, sums := []string{}, map[string]int64{}
		for _, g := range groups {
			kinds = append(kinds, g.Kind)
			of := map[string]int64{}
			for _, a := range g.Rows {
				if of[a.Currency] += a.Balance; KindOf(a.Code) != g.Kind {
					t.Errorf("%s is in the group %s", a.Code, g.Kind)
				}
			}
			for _, s := range g.Totals {
				sums[s.Currency] += s.Balance()
				if whole := s.Accounts <= groupRows; whole && of[s.Currency] != s.Balance() {
					t.Errorf("%s %s: the rows have %d, the total %+v", g.Kind, s.Currency, of[s.Currency], s)
				}
			}
			if len(g.Rows) > groupRows {
				t.Errorf("%s has %d rows", g.Kind, len(g.Rows))
			}
		}
		if !slices.Equal(kinds, AccountKinds) {
			t.Errorf("the groups are %v", kinds)
		}
		if sums["CNY"] != 0 || sums["JPY"] != 0 || len(sums) != 2 {
			t.Errorf("the books are out of balance: %v", sums)
		}
	})
}
