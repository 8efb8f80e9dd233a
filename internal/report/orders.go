package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ordersRow is one span of report_orders.
type ordersRow struct {
	bun.BaseModel `bun:"table:report_orders,alias:ro"`

	SpanS          int64  `bun:"span_s,pk"`
	Start          int64  `bun:"start,pk"`
	Currency       string `bun:"currency,pk"`
	Raised         int64  `bun:"raised"`
	RaisedAmount   int64  `bun:"raised_amount"`
	Notified       int64  `bun:"notified"`
	NotifiedAmount int64  `bun:"notified_amount"`
}

type ordersKey struct {
	spanS, start int64
	currency     string
}

func (r *ordersRow) key() ordersKey { return ordersKey{r.SpanS, r.Start, r.Currency} }

func (r *ordersRow) counts() [4]int64 {
	return [4]int64{r.Raised, r.RaisedAmount, r.Notified, r.NotifiedAmount}
}

func (r *ordersRow) add(raised, raisedAmount, notified, notifiedAmount int64) {
	r.Raised, r.RaisedAmount = r.Raised+raised, r.RaisedAmount+raisedAmount
	r.Notified, r.NotifiedAmount = r.Notified+notified, r.NotifiedAmount+notifiedAmount
}

// addOrders adds one sum of a delta to its minute and to its hour.
func addOrders(to map[ordersKey]*ordersRow, deltaMinute int64, o ordersSum) {
	minute := cmp.Or(o.Minute, deltaMinute)
	for _, sp := range spans {
		k := ordersKey{int64(sp.span / time.Second), floor(minute, sp.span), o.Currency}
		if to[k] == nil {
			to[k] = &ordersRow{SpanS: k.spanS, Start: k.start, Currency: k.currency}
		}
		to[k].add(o.Raised, o.RaisedAmount, o.Notified, o.NotifiedAmount)
	}
}

// writeOrders adds to the spans' rows.
func writeOrders(ctx context.Context, q bun.IDB, all map[ordersKey]*ordersRow) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([]*ordersRow, 0, len(all))
	for _, r := range all {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *ordersRow) int {
		return cmp.Or(cmp.Compare(a.SpanS, b.SpanS), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Currency, b.Currency))
	})
	up := q.NewInsert().Model(&rows).On("CONFLICT (span_s, start, currency) DO UPDATE")
	for _, column := range []string{"raised", "raised_amount", "notified", "notified_amount"} {
		c := bun.Ident(column)
		up = up.Set("? = ro.? + EXCLUDED.?", c, c, c)
	}
	if _, err := up.Exec(ctx); err != nil {
		return fmt.Errorf("add orders notified: %w", err)
	}
	return nil
}

// Notified is how many orders of one currency, and how much money, merchants had
// to be notified of, and have been by now.
type Notified struct {
	Currency       string
	Raised         int64
	RaisedAmount   int64 // minor units
	Notified       int64
	NotifiedAmount int64
}

// Orders returns, by currency, the orders whose notifications were raised from the
// step in which from lies to the one in which to lies (Unix µs), as Outcomes does
// for attempts: no row, no such order. An order counts as notified when each of its
// deliveries that the merchant must get has been delivered; what is skipped, or for
// one of our own systems, is no such delivery. What a merchant was sent again by
// hand counts once.
func Orders(ctx context.Context, d *db.DB, from, to int64, step time.Duration) (all []Notified, err error) {
	span := time.Minute
	if step%time.Hour == 0 {
		span = time.Hour
	}
	err = d.Read.NewRaw("SELECT currency, CAST(sum(raised) AS BIGINT) AS raised, CAST(sum(raised_amount) AS BIGINT) AS raised_amount,"+
		" CAST(sum(notified) AS BIGINT) AS notified, CAST(sum(notified_amount) AS BIGINT) AS notified_amount"+
		" FROM report_orders WHERE span_s = ? AND start >= ? AND start <= ? GROUP BY currency HAVING sum(raised) > 0 ORDER BY 2 DESC, 1",
		int64(span/time.Second), floor(from, step), to).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read orders notified: %w", err)
	}
	return all, nil
}

// Untried is what no attempt was made for yet.
type Untried struct {
	Orders int64
	More   bool  // there are more than were counted
	Oldest int64 // when the oldest was raised, Unix µs; 0 = there is none
}

// untriedRows bounds the count.
const untriedRows = 10_000

// NotTried counts the orders of which merchants must be notified and no attempt
// was made yet, for what reason ever: a breaker, a digest, no worker.
func NotTried(ctx context.Context, d *db.DB) (u Untried, err error) {
	var row struct{ N, Orders, Oldest int64 }
	err = d.Read.NewRaw("SELECT count(*) AS n, count(DISTINCT event_id) AS orders, coalesce(min(created_at), 0) AS oldest FROM"+
		" (SELECT event_id, created_at FROM deliveries WHERE next_at IS NOT NULL AND attempts = 0 AND currency <> '' ORDER BY created_at LIMIT ?) AS w",
		untriedRows).Scan(ctx, &row)
	if err != nil {
		return u, fmt.Errorf("count what was not tried: %w", err)
	}
	return Untried{Orders: row.Orders, More: row.N >= untriedRows, Oldest: row.Oldest}, nil
}

// recountedOrders is how far back orders are counted anew: the nights overlap.
const recountedOrders = 26 * time.Hour

// OrdersDifference is where report_orders and the deliveries do not agree.
type OrdersDifference struct {
	Span           time.Duration
	Start          int64
	Currency       string
	Rows, Counters [4]int64 // raised, its money, notified, its money
}

// RecountOrders counts the orders of the last day anew, from their deliveries, and
// returns where the counters say otherwise. keep is that of Clean.
func RecountOrders(ctx context.Context, d *db.DB, keep time.Duration) ([]OrdersDifference, error) {
	from := floor(d.Now()-min(keep, recountedOrders).Microseconds(), time.Hour) + time.Hour.Microseconds()
	var minutes, counted []ordersRow
	var tail []string
	err := d.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		// What was delivered once and is sent again has lost its currency: the merchant
		// knows of the money.
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
		if err := tx.NewSelect().Model(&counted).Where("ro.start >= ?", from).Where("ro.span_s IN (60, 3600)").Scan(ctx); err != nil {
			return err
		}
		return tx.NewRaw("SELECT body FROM report_deltas").Scan(ctx, &tail)
	})
	if err != nil {
		return nil, fmt.Errorf("recount orders notified: %w", err)
	}
	rows, counters := map[ordersKey]*ordersRow{}, map[ordersKey]*ordersRow{}
	for _, m := range minutes {
		addOrders(rows, m.Start, ordersSum{Currency: m.Currency, Raised: m.Raised, RaisedAmount: m.RaisedAmount, Notified: m.Notified, NotifiedAmount: m.NotifiedAmount})
	}
	for i := range counted {
		counters[counted[i].key()] = &counted[i]
	}
	for _, body := range tail {
		var x Delta
		if err := json.Unmarshal([]byte(body), &x); err != nil {
			return nil, fmt.Errorf("read a delta: %w", err)
		}
		for _, o := range x.Orders {
			if cmp.Or(o.Minute, x.Minute) >= from {
				addOrders(counters, x.Minute, o)
			}
		}
	}
	return differences(rows, counters), nil
}

func differences(rows, counters map[ordersKey]*ordersRow) (wrong []OrdersDifference) {
	for k, c := range counters {
		if rows[k] == nil {
			rows[k] = &ordersRow{}
		}
		if is, says := rows[k].counts(), c.counts(); is != says {
			wrong = append(wrong, OrdersDifference{time.Duration(k.spanS) * time.Second, k.start, k.currency, is, says})
		}
	}
	for k, r := range rows {
		if counters[k] == nil && r.counts() != [4]int64{} {
			wrong = append(wrong, OrdersDifference{time.Duration(k.spanS) * time.Second, k.start, k.currency, r.counts(), [4]int64{}})
		}
	}
	slices.SortFunc(wrong, func(a, b OrdersDifference) int {
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Currency, b.Currency))
	})
	return wrong
}

// MendOrders puts the counters where RecountOrders says that they are wrong. It
// adds, so that nothing that happens meanwhile is lost.
func MendOrders(ctx context.Context, d *db.DB, wrong []OrdersDifference) error {
	all := map[ordersKey]*ordersRow{}
	for _, f := range wrong {
		r := &ordersRow{SpanS: int64(f.Span / time.Second), Start: f.Start, Currency: f.Currency}
		r.add(f.Rows[0]-f.Counters[0], f.Rows[1]-f.Counters[1], f.Rows[2]-f.Counters[2], f.Rows[3]-f.Counters[3])
		all[r.key()] = r
	}
	return writeOrders(ctx, d, all)
}
