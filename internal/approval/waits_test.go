package approval_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
)

// Reported one hour after the first was made, then every four hours, until all are decided.
func TestProposalsThatWaitAreReportedTogetherNowAndThen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		h.life = 24 * time.Hour
		h.open()
		a := h.propose(finance)
		h.manyWaiting(24)
		said := func() (all approval.Waits) {
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
			want  int64
		}{{59 * time.Minute, 0}, {time.Minute, 25}, {0, 0}, {239 * time.Minute, 0}, {time.Minute, 25}, {0, 0}} {
			later(c.after)
			all := said()
			if all.Count != c.want {
				t.Fatalf("%d: %+v", i, all)
			}
			if all.Count > 0 && (len(all.Sums) != 1 || all.Sums[0] != (money.Total{Currency: "CNY", Minor: 25 * 1998}) ||
				all.Oldest < time.Hour || all.Oldest > 6*time.Hour) {
				t.Errorf("%d: %+v", i, all)
			}
		}
		if _, err := h.desk.Withdraw(t.Context(), approval.Verdict{ID: a.ID, By: h.who(finance)}); err != nil {
			t.Fatal(err)
		}
		later(5 * time.Hour)
		if all := said(); all.Count != 24 {
			t.Errorf("without the one that was withdrawn: %+v", all)
		}
		h.exec("UPDATE approvals SET state = 'expired'")
		later(5 * time.Hour)
		if all := said(); all.Count != 0 {
			t.Errorf("of ended ones: %+v", all)
		}
	})
}
