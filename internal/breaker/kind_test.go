package breaker_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
)

// Whose breaker changed is read from the change, which outlives the recipient.
func TestAChangeNamesItsOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		owners := []recipient.Recipient{recipient.OfMerchant(1), recipient.Of(2, true), recipient.OfSupplier(3)}
		b, suppliers := newCache(d, time.Hour),
			breaker.NewSupplierCache(d, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute})
		for _, to := range owners {
			of := b
			if to.Kind == recipient.Supplier {
				of = suppliers
			}
			fold(t, d, of, results(of, to, breaker.Failed, 3)...)
		}
		var changes []breaker.Change
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			changes, err = breaker.TakeUnalerted(ctx, tx, d)
			return err
		})
		if err != nil || len(changes) != 3 {
			t.Fatal(changes, err)
		}
		for _, c := range changes {
			if to := owners[c.OwnerID-1]; c.OwnerKind != to.Kind || c.To != breaker.Open {
				t.Errorf("%+v, want the change of %+v", c, to)
			}
		}
	})
}
