package approval_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Reported one hour after it was made, then every four hours, until it is decided.
func TestAProposalIsSaidToWaitNowAndThen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		h.life = 24 * time.Hour
		h.open()
		a := h.propose(finance)
		said := func() (all []approval.Waits) {
			t.Helper()
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				all, err = approval.TakeWaiting(ctx, tx, d)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		later := func(by time.Duration) {
			h.exec("UPDATE approvals SET made_at = made_at - ?, alerted_at = alerted_at - ?", by.Microseconds(), by.Microseconds())
		}
		for i, c := range []struct {
			after time.Duration
			want  int
		}{{59 * time.Minute, 0}, {time.Minute, 1}, {0, 0}, {239 * time.Minute, 0}, {time.Minute, 1}, {0, 0}} {
			later(c.after)
			all := said()
			if len(all) != c.want {
				t.Fatalf("%d: %+v", i, all)
			}
			for _, x := range all {
				if x.No != a.No() || x.Action != "rename" || x.Object != "merchant" || x.ObjectID != "m1" || x.Maker != "fang" ||
					x.Amount != 1998 || x.Currency != "CNY" || x.Age < time.Hour || x.Age > 6*time.Hour {
					t.Errorf("%d: %+v", i, x)
				}
			}
		}
		if _, err := h.desk.Withdraw(t.Context(), approval.Verdict{ID: a.ID, By: h.who(finance)}); err != nil {
			t.Fatal(err)
		}
		later(5 * time.Hour)
		if all := said(); len(all) != 0 {
			t.Errorf("of ended ones: %+v", all)
		}
	})
}
