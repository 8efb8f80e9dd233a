package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/report"
)

// samples is what a batch of attempts tells the breakers.
func (d *Dispatcher) samples(batch []*outcome) []breaker.Sample {
	all := make([]breaker.Sample, len(batch))
	for i, o := range batch {
		all[i] = breaker.Sample{MerchantID: o.claimed.MerchantID, Generation: o.generation, Result: d.tells(o)}
	}
	return all
}

// tells what an attempt says about the merchant. What failed on our side, or for
// want of an address, says nothing; nor does one that is gone, as it is disabled, or
// a merchant that has not connected: it is released the moment it does. A process
// that stood still finds all its attempts timed out at once when it goes on, which
// would park merchants that are well.
func (d *Dispatcher) tells(o *outcome) breaker.Result {
	switch {
	case gone(o):
		return breaker.Unclear
	case o.stood && o.attempt.Class == OK:
		return breaker.Taken // how long it took says nothing
	case o.stood:
		return breaker.Unclear
	}
	switch o.attempt.Class {
	case OK:
		s := d.settingsOf(o.claimed.MerchantID)
		if s != nil && s.Breaker.SlowMS > 0 && o.attempt.TookUS >= s.Breaker.SlowMS*1000 {
			return breaker.Failed
		}
		return breaker.Taken
	case Internal, Blocked, BadAddress, Cancelled, NotConnected:
		return breaker.Unclear
	}
	return breaker.Failed
}

// heed makes known what committed results did to breakers, and fetches what was
// parked for a merchant that can be told again.
func (d *Dispatcher) heed(f *breaker.Folded) {
	if f == nil {
		return
	}
	d.o.Breakers.Committed(f)
	var well []int64
	for _, c := range f.Changes {
		metric.BreakerChanges.WithLabelValues(string(c.To)).Inc()
		d.o.Log.Warn("breaker", "merchant_id", c.MerchantID, "from", c.From, "to", c.To, "cause", c.Cause, "failures", c.Failures)
		if c.To == breaker.Closed {
			well = append(well, c.MerchantID)
		}
	}
	if len(well) > 0 {
		d.Pull(well)
	}
}

// IsParked says whether what waits for a merchant is parked: its breaker is not
// closed. Who cannot be told at all needs no protection: its attempts end here,
// without a call, and then on the desk, instead of being parked for as long as
// there are probes. What a person opened stays so.
func IsParked(b *breaker.Book, merchants *merchant.Book, merchantID int64) bool {
	return parks(b.Of(merchantID), merchants, merchantID)
}

func parks(r *breaker.Row, merchants *merchant.Book, merchantID int64) bool {
	return r.Tripped() && (r.ByHand || canBeTold(merchants.ByID(merchantID)))
}

// Waits says whether a delivery that is due waits for the breaker: what goes to an
// order's own address does so also where nothing else of the merchant's is parked.
func Waits(r *breaker.Row, merchants *merchant.Book, x *Delivery) bool {
	return r.Tripped() && (x.URL != "" || parks(r, merchants, x.MerchantID))
}

// canBeTold says whether an attempt at a merchant can end in a call.
func canBeTold(m *merchant.Merchant) bool {
	if m == nil || m.Disabled {
		return false
	}
	inUse := func(e merchant.Endpoint) bool { return !e.Disabled }
	return len(m.Endpoints) == 0 || slices.ContainsFunc(m.Endpoints, inUse)
}

// protected says of an attempt that would call somebody although the merchant's
// breaker is not closed, until when it has to wait; 0 = it is made, as the probe
// perhaps. Such attempts are those for an order's own address where the merchant's
// others are all disabled: the rest of what waits for it ends here without a call,
// and is not parked.
func (d *Dispatcher) protected(t *ticket, c claimed, p plan) (until int64) {
	g := d.o.Breakers.Gate(c.MerchantID)
	if g.Probe && g.Delivery == c.ID {
		t.generation = g.Generation
		return 0
	}
	if t.probe || p.refused != nil || g.Flow || IsParked(d.o.Breakers, d.o.Book(), c.MerchantID) {
		return 0
	}
	mine := false
	if g.Due {
		ctx, cancel := context.WithTimeout(d.ctx, claimTimeout)
		defer cancel()
		var err error
		if mine, err = d.o.Breakers.LeaseProbe(ctx, c.MerchantID, d.o.Timeout); err != nil {
			d.o.Log.Error("lease a probe", "merchant_id", c.MerchantID, "error", db.Explain(err))
		}
	}
	r := d.o.Breakers.Of(c.MerchantID)
	if mine || !r.Tripped() {
		t.generation = d.o.Breakers.Gate(c.MerchantID).Generation
		return 0
	}
	return max(r.OpenUntil, r.ProbeUntil, d.o.DB.Now()+time.Second.Microseconds())
}

// putOffMost bounds the rows of one statement.
const putOffMost = 500

// putOff makes a claim due at a later moment, and what else is due of its kind.
func (d *Dispatcher) putOff(t *ticket, c claimed, until int64) {
	d.giveBack(until, c)
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	now := d.o.DB.Now()
	due := d.o.DB.SkipLocked(d.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("merchant_id = ? AND next_at <= ? AND url <> '' AND "+waiting, c.MerchantID, now).
		OrderExpr("next_at").Limit(putOffMost))
	_, err := d.o.DB.NewRaw("UPDATE deliveries SET next_at = ? WHERE id IN (?) AND next_at <= ? AND "+waiting,
		until, due, now).Exec(ctx)
	if err != nil {
		d.o.Log.Error("put deliveries off", "merchant_id", c.MerchantID, "error", db.Explain(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.lane.more = true
	d.release(t)
}

// MerchantsParked are the merchants whose notifications are parked.
func MerchantsParked(b *breaker.Book, merchants *merchant.Book) []int64 {
	var ids []int64
	for id := range b.All() {
		if IsParked(b, merchants, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// parkedMost bounds the count of one merchant's parked notifications.
const parkedMost = 10_000

// Parked counts what waits for a merchant, up to 10,000, and says how old the
// oldest is. Whether it is parked, IsParked says.
func Parked(ctx context.Context, d *db.DB, merchantID int64) (Due, error) {
	now := d.Now()
	var row struct{ Count, Oldest int64 }
	err := d.Read.NewRaw("SELECT count(*) AS count, coalesce(min(created_at), ?) AS oldest FROM"+
		" (SELECT created_at FROM deliveries WHERE merchant_id = ? AND next_at IS NOT NULL LIMIT ?) AS waiting",
		now, merchantID, parkedMost).Scan(ctx, &row)
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
		" GROUP BY currency ORDER BY currency", merchantID, parkedMost).Scan(ctx, &sums)
	if err != nil {
		return nil, false, fmt.Errorf("add up parked deliveries: %w", err)
	}
	var n int64
	for _, s := range sums {
		n += s.Orders
	}
	return sums, n == parkedMost, nil
}

// Waker nudges one parked notification of each merchant for the moment at
// which its breaker may be probed, through the delayed lane. Like every nudge it
// may be lost: the tick probes too.
type Waker struct {
	db     *db.DB
	book   *breaker.Book
	tasks  Tasks
	nudged map[int64]int64 // generation by merchant
}

// NewWaker makes a Waker.
func NewWaker(d *db.DB, b *breaker.Book, tasks Tasks) *Waker {
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
