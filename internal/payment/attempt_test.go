package payment

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Whatever a message decided, an attempt moves only as the table allows: the upsert is the
// guard, not the lock of the order.
func TestAnAttemptIsOnlyWrittenAsItsTableSays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, from := range Moves.Statuses() {
			for _, to := range Moves.Statuses() {
				id := d.NewID()
				write := func(s AttemptStatus) error {
					return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
						w := tx.Writes()
						upsertAttempts(w, []*Attempt{
							{ID: d.NewID(), OrderID: id, AccountID: id, SupplierRef: "other", Status: Submitted},
							{ID: d.NewID(), OrderID: id, AccountID: id, SupplierRef: "ref", Status: s},
						})
						return w.Exec(ctx)
					})
				}
				if _, err := d.NewInsert().Model(&Attempt{
					ID: id, OrderID: id, AccountID: id, SupplierRef: "ref",
					Status: from,
				}).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := write(to)
				var is AttemptStatus
				if err := d.Read.NewRaw("SELECT status FROM payment_attempts WHERE id = ?", id).Scan(t.Context(), &is); err != nil {
					t.Fatal(err)
				}
				if Moves.Can(from, to) && (err != nil || is != to) || !Moves.Can(from, to) && (!errors.Is(err, db.ErrStale) || is != from) {
					t.Errorf("%s to %s: it is %s, %v", from, to, is, err)
				}
			}
		}
	})
}
