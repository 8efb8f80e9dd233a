package ledger_test

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"
	"backstop/internal/ledger"

	"github.com/uptrace/bun"
)

// Of two entries of one transaction the second finds the accounts that the first
// made; taken back, they are there no more.
func TestAccountsThatWereTakenBackAreMadeAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		post := func(ctx context.Context, tx bun.Tx, ref string) error {
			w := db.NewWrites(tx)
			if err := book.Post(ctx, tx, w, []ledger.Entry{{Debit: "supplier:s", Credit: "merchant:m", Amount: 5, Currency: "CNY", Ref: ref}}); err != nil {
				return err
			}
			return w.Exec(ctx)
		}
		back := errors.New("taken back")
		err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) error {
			return errors.Join(post(ctx, tx, "1"), post(ctx, tx, "2"), back)
		})
		if !errors.Is(err, back) {
			t.Fatal(err)
		}
		for _, ref := range []string{"3", "4", "5"} { // by an account that is made, found, remembered
			if err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) error { return post(ctx, tx, ref) }); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := book.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got int64
		if err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) (err error) {
			got, err = book.Balance(ctx, tx, "merchant:m", "CNY")
			return err
		}); err != nil || got != 15 {
			t.Errorf("the balance is %d, %v; want 15", got, err)
		}
	})
}
