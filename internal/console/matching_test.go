package console

import (
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
)

// Who takes up all that matches must see that it is more than may be, and gets no more
// than one row beyond that to see it by.
func TestMatchingReturnsOneMoreThanItsLimit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := New(d, nil, breaker.NewBook(d, nil))
		now := d.Now()
		rows := make([]notify.Delivery, 7)
		var ids []int64
		for i := range rows {
			id := d.NewID()
			ids = append(ids, id)
			rows[i] = notify.Delivery{ID: id, EventID: id, MerchantID: 1, SubjectID: id, EventType: "order.paid", Channel: notify.Webhook, Status: notify.Exhausted, CreatedAt: now, FinishedAt: &now, Currency: "CNY", Amount: 100}
			if i < 3 {
				rows[i].Status, rows[i].NextAt, rows[i].FinishedAt = notify.RetryWait, &now, nil
			}
		}
		if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			status string
			ids    []int64
			limit  int
			want   []int64
		}{
			{"", nil, 7, ids},
			{"", nil, 5, ids[:6]},
			{"exhausted", nil, 2, ids[3:6]},
			{"exhausted", nil, 4, ids[3:]},
			{"retry_wait", nil, 1, ids[:2]},
			{"exhausted", []int64{ids[0], ids[6], ids[4]}, 9, []int64{ids[4], ids[6]}},
			{"", []int64{}, 9, nil},
		} {
			got, err := b.Matching(t.Context(), DeliveryFilter{Status: c.status}, c.ids, c.limit)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q of %v, at most %d: %v, %v; want %v", c.status, c.ids, c.limit, got, err, c.want)
			}
		}
	})
}
