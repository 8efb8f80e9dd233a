package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// unfolded sums the deltas that are not folded yet.
func unfolded(ctx context.Context, tx bun.IDB) (*sums, error) {
	var bodies []string
	if err := tx.NewRaw("SELECT body FROM report_deltas").Scan(ctx, &bodies); err != nil {
		return nil, err
	}
	return sumUp(bodies, nil)
}

// differing returns the keys whose counts differ.
func differing[K comparable](rows, counters map[K]counts) []K {
	all := maps.Clone(rows)
	maps.Copy(all, counters)
	return slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(k K) bool { return rows[k] == counters[k] })
}

// Difference is a mismatch between a counter and the rows it counts.
type Difference struct {
	Merchant          int64
	Currency          string
	Orders, Amount    int64 // of the rows
	Counted, CountedM int64 // orders and minor units of the counter
}

// Recount counts the unnotified money again from the deliveries, and returns where the counter
// differs; it should not, unless rows were changed by hand. It reads every waiting delivery, in
// one snapshot.
func Recount(ctx context.Context, d *db.DB) ([]Difference, error) {
	var rows, counters map[moneyKey]counts
	err := d.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		var waiting, counted []unnotifiedRow
		open, err := OpenDeliveries(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.NewRaw("SELECT recipient_id AS merchant_id, currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS amount FROM"+
			// Money shared by several deliveries of an event counts once.
			" (SELECT DISTINCT recipient_id, currency, event_id, amount FROM ("+open+") AS d WHERE currency <> '') AS w"+
			" GROUP BY recipient_id, currency").Scan(ctx, &waiting); err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&counted).Scan(ctx); err != nil {
			return err
		}
		tail, err := unfolded(ctx, tx)
		if err != nil {
			return err
		}
		rows, counters = map[moneyKey]counts{}, tail.unnotified
		for _, w := range waiting {
			rows[moneyKey{w.MerchantID, w.Currency}] = counts{w.Orders, w.Amount}
		}
		for _, c := range counted {
			k := moneyKey{c.MerchantID, c.Currency}
			counters[k] = counters[k].plus(counts{c.Orders, c.Amount})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("recount unnotified money: %w", err)
	}
	var wrong []Difference
	for _, k := range differing(rows, counters) {
		is, counted := rows[k], counters[k]
		wrong = append(wrong, Difference{
			Merchant: k.merchant, Currency: k.currency, Orders: is[0], Amount: is[1], Counted: counted[0], CountedM: counted[1],
		})
	}
	return wrong, nil
}

// BelowZero reports whether a counter of unnotified money is below zero, with what is not folded
// yet: something was counted twice, or rows were changed by hand.
func BelowZero(ctx context.Context, d *db.DB) (below bool, err error) {
	err = d.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		var rows []unnotifiedRow
		if err := tx.NewSelect().Model(&rows).Where("r.orders < 0 OR r.amount < 0").Scan(ctx); err != nil || len(rows) == 0 {
			return err
		}
		tail, err := unfolded(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			rest := tail.unnotified[moneyKey{r.MerchantID, r.Currency}]
			below = below || r.Orders+rest[0] < 0 || r.Amount+rest[1] < 0
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for counters below zero: %w", err)
	}
	return below, nil
}

// Repair corrects the counter where Recount found a difference. It changes counters only by
// deltas, so that no concurrent change is lost.
func Repair(ctx context.Context, d *db.DB, wrong []Difference) error {
	return d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		x := NewDelta(d.Now())
		for _, f := range wrong {
			x.Unnotified(f.Merchant, f.Currency, f.Orders-f.Counted, f.Amount-f.CountedM)
		}
		w := tx.Writes()
		x.Write(w, d)
		if err := w.Exec(ctx); err != nil {
			return fmt.Errorf("fix the counter of unnotified money: %w", err)
		}
		return nil
	})
}

// recountedOrders is how far back orders are recounted; consecutive nights overlap.
const recountedOrders = 26 * time.Hour

// OrdersDifference is a mismatch between report_orders and the deliveries.
type OrdersDifference struct {
	Span           time.Duration
	Start          int64
	Currency       string
	Rows, Counters [4]int64 // raised, their amount, notified, their amount
}

// RecountOrders counts the orders of the last day again from their deliveries, and returns
// where the counters differ. Within keep neither counters nor deliveries have been deleted.
func RecountOrders(ctx context.Context, d *db.DB, keep time.Duration) ([]OrdersDifference, error) {
	from := floor(d.Now()-min(keep, recountedOrders).Microseconds(), time.Hour) + time.Hour.Microseconds()
	var rows, counters map[ordersKey]counts
	err := d.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		// A notification that was delivered once and is resent has lost its currency: the
		// merchant was already notified of the money.
		var minutes, counted []ordersRow
		err := tx.NewRaw("SELECT 60 AS span_s, start, currency, count(*) AS raised, CAST(sum(amount) AS BIGINT) AS raised_amount,"+
			" CAST(sum(done) AS BIGINT) AS notified, CAST(sum(done * amount) AS BIGINT) AS notified_amount FROM"+
			" (SELECT event_id, start, max(currency) AS currency, max(amount) AS amount, min(done) AS done FROM (SELECT d.event_id, d.created_at - d.created_at % 60000000 AS start,"+
			" CASE WHEN d.currency <> '' THEN d.currency ELSE coalesce((SELECT o.currency FROM orders AS o WHERE o.id = d.subject_id), '') END AS currency,"+
			" CASE WHEN d.currency <> '' THEN d.amount ELSE coalesce((SELECT o.paid_amount FROM orders AS o WHERE o.id = d.subject_id), 0) END AS amount,"+
			" CASE WHEN d.status = 'delivered' OR d.currency = '' THEN 1 ELSE 0 END AS done"+
			" FROM deliveries AS d WHERE d.id >= ? AND d.created_at >= ? AND d.counted) AS x GROUP BY event_id, start) AS e GROUP BY start, currency",
			db.IDAt(from-time.Minute.Microseconds()), from).Scan(ctx, &minutes)
		if err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&counted).Where("r.start >= ?",
			from).Where("r.span_s IN (60, 3600, -60, -3600)").Scan(ctx); err != nil {
			return err
		}
		tail, err := unfolded(ctx, tx)
		if err != nil {
			return err
		}
		rows, counters = map[ordersKey]counts{}, tail.orders
		maps.DeleteFunc(counters, func(k ordersKey, _ counts) bool { return k.start < from })
		for _, m := range minutes {
			addOrders(rows, m.Start, m.Currency, m.counts())
		}
		for _, c := range counted {
			k := ordersKey{time.Duration(c.SpanS) * time.Second, c.Start, c.Currency}
			counters[k] = counters[k].plus(c.counts())
		}
		for k, n := range counters {
			if k.span < 0 { // without rows
				stored := ordersKey{-k.span, k.start, k.currency}
				counters[stored] = counters[stored].plus(n.minus())
				delete(counters, k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("recount orders notified: %w", err)
	}
	var wrong []OrdersDifference
	for _, k := range differing(rows, counters) {
		wrong = append(wrong, OrdersDifference{Span: k.span, Start: k.start, Currency: k.currency, Rows: rows[k], Counters: counters[k]})
	}
	slices.SortFunc(wrong, func(a, b OrdersDifference) int {
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Currency, b.Currency))
	})
	return wrong, nil
}

// MendOrders corrects the counters where RecountOrders found a difference, and the other
// spans with them. Days are those of the zone. It adds, so that no concurrent change is lost.
func MendOrders(ctx context.Context, d *db.DB, zone *time.Location, wrong []OrdersDifference) error {
	all := map[ordersKey]counts{}
	longer := newAnalytics(zone)
	for _, f := range wrong {
		var missing counts
		for i := range missing {
			missing[i] = f.Rows[i] - f.Counters[i]
		}
		all[ordersKey{f.Span, f.Start, f.Currency}] = missing
		if f.Span == time.Minute {
			longer.addOrders(all, f.Start, f.Currency, missing)
		}
	}
	return writeOrders(ctx, d, all)
}
