package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/report"
)

// IsParked says whether what waits for a merchant is parked: its breaker is not
// closed. Who cannot be notified at all needs no protection: its attempts end here,
// without a call, and then on the desk, instead of being parked for as long as
// there are probes. What a person opened stays so.
func IsParked(b *breaker.Cache, merchants *merchant.Directory, merchantID int64) bool {
	return parks(b.Of(merchantID), merchants, merchantID)
}

func parks(r *breaker.Row, merchants *merchant.Directory, merchantID int64) bool {
	return r.Tripped() && (r.ByHand || canBeNotified(merchants.ByID(merchantID)))
}

// Waits says whether a delivery that is due waits for the breaker: what goes to an
// order's own address does so also where nothing else of the merchant's is parked.
func Waits(r *breaker.Row, merchants *merchant.Directory, x *Delivery) bool {
	return r.Tripped() && (x.URL != "" || parks(r, merchants, x.MerchantID))
}

// canBeNotified says whether an attempt at a merchant can end in a call.
func canBeNotified(m *merchant.Merchant) bool {
	if m == nil || m.Disabled {
		return false
	}
	inUse := func(e merchant.Endpoint) bool { return !e.Disabled }
	return len(m.Endpoints) == 0 || slices.ContainsFunc(m.Endpoints, inUse)
}

// MerchantsParked are the merchants whose notifications are parked.
func MerchantsParked(b *breaker.Cache, merchants *merchant.Directory) []int64 {
	var ids []int64
	for id := range b.All() {
		if IsParked(b, merchants, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// maxParked bounds the count of one merchant's parked notifications.
const maxParked = 10_000

// Parked counts what waits for a merchant, up to 10,000, and says how old the
// oldest is. Whether it is parked, IsParked says.
func Parked(ctx context.Context, d *db.DB, merchantID int64) (Due, error) {
	now := d.Now()
	var row struct{ Count, Oldest int64 }
	err := d.Read.NewRaw("SELECT count(*) AS count, coalesce(min(created_at), ?) AS oldest FROM"+
		" (SELECT created_at FROM deliveries WHERE merchant_id = ? AND next_at IS NOT NULL LIMIT ?) AS waiting",
		now, merchantID, maxParked).Scan(ctx, &row)
	if err != nil {
		return Due{}, fmt.Errorf("count parked deliveries: %w", err)
	}
	return Due{Count: row.Count, Oldest: time.Duration(now-row.Oldest) * time.Microsecond}, nil
}

// ParkedSums are the notifications that wait for a merchant and their money by currency
// ("" = about none), of the first 10,000 deliveries. An event counts once, however many
// deliveries of it wait.
func ParkedSums(ctx context.Context, d *db.DB, merchantID int64) (sums []report.Sum, more bool, err error) {
	err = d.Read.NewRaw("SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor FROM"+
		" (SELECT DISTINCT event_id, currency, amount FROM"+
		" (SELECT event_id, currency, amount FROM deliveries WHERE merchant_id = ? AND next_at IS NOT NULL LIMIT ?) AS w) AS e"+
		" GROUP BY currency ORDER BY currency", merchantID, maxParked).Scan(ctx, &sums)
	if err != nil {
		return nil, false, fmt.Errorf("add up parked deliveries: %w", err)
	}
	var n int64
	for _, s := range sums {
		n += s.Orders
	}
	return sums, n == maxParked, nil
}

// Waker nudges one parked notification of each merchant for the moment at
// which its breaker may be probed, through the delayed lane. Like every nudge it
// may be lost: the tick probes too.
type Waker struct {
	db     *db.DB
	book   *breaker.Cache
	tasks  Tasks
	nudged map[int64]int64 // generation by merchant
}

// NewWaker makes a Waker.
func NewWaker(d *db.DB, b *breaker.Cache, tasks Tasks) *Waker {
	return &Waker{db: d, book: b, tasks: tasks, nudged: map[int64]int64{}}
}

// Wake nudges for the probes of the next minute.
func (w *Waker) Wake(ctx context.Context) error {
	now := w.db.Now()
	all := w.book.All()
	for id, generation := range w.nudged {
		if r := all[id]; r == nil || r.Generation != generation {
			delete(w.nudged, id)
		}
	}
	for id, r := range all {
		if r.State != breaker.Open || r.ByHand || r.OpenUntil <= now || r.OpenUntil-now > retryAhead.Microseconds() || w.nudged[id] == r.Generation {
			continue
		}
		w.nudged[id] = r.Generation
		var ids []int64
		err := w.db.Read.NewRaw("SELECT id FROM deliveries WHERE merchant_id = ? AND next_at <= ? ORDER BY "+sideOf(r)+" LIMIT 1", id, r.OpenUntil).Scan(ctx, &ids)
		if err != nil {
			return fmt.Errorf("find what to probe with: %w", err)
		}
		if len(ids) > 0 {
			// Best effort, like every nudge.
			_ = w.tasks.NotifyAt(ctx, queue.Delayed, time.UnixMicro(r.OpenUntil), []queue.Nudge{{Delivery: ids[0], Merchant: id, At: r.OpenUntil}})
		}
	}
	return nil
}
