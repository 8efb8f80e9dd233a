package booking_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fund/booking"
	"backstop/internal/payment/paymenttest"
)

// A subject's changes are its own, each version once, and are found by an index.
func TestTheHistoryOfASubject(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := paymenttest.New(t, d, paymenttest.Options{}).Books()
		record := func(subject string, id int64, versions ...int64) error {
			return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				x := b.Begin(tx)
				for _, v := range versions {
					x.Record(booking.Change{
						Subject: subject, SubjectID: id, Version: v, To: fmt.Sprint("v", v),
						Cause: booking.Cause{Actor: subject, SourceKind: booking.SourceCall, SourceID: v, Detail: "because"}, CreatedAt: v,
					})
				}
				return x.Send(ctx)
			})
		}
		for _, subject := range []string{booking.OfRefund, booking.OfPayout, booking.OfDispute} {
			for id := range int64(3) {
				if err := record(subject, id, 2, 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := record(subject, 1, 3, 2); !db.IsUnique(err) {
				t.Errorf("version 2 of a %s again: %v", subject, err)
			}
		}
		if err := record("order", 1, 1); err == nil {
			t.Error("an order has a row")
		}
		all, err := booking.History(t.Context(), d, booking.OfPayout, 2, 1)
		var got strings.Builder
		for _, c := range all {
			fmt.Fprintln(&got, c.Subject, c.SubjectID, c.Version, c.To, c.Cause, c.CreatedAt)
		}
		if want := "payout 1 1 v1 {payout call 1 because} 1\npayout 1 2 v2 {payout call 2 because} 2\n" +
			"payout 2 1 v1 {payout call 1 because} 1\npayout 2 2 v2 {payout call 2 because} 2\n"; err != nil || got.String() != want {
			t.Errorf("%v\n%s", err, got.String())
		}
		plan := fmt.Sprint(dbtest.Plan(t, d, "SELECT * FROM fund_history WHERE subject = 'refund' AND subject_id IN (1, 2) ORDER BY subject_id, version"))
		if !d.IsPostgres() && (!strings.Contains(plan, "SEARCH fund_history USING INDEX") || strings.Contains(plan, "TEMP B-TREE")) {
			t.Error(plan)
		}
	})
}
