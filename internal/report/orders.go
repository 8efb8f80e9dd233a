package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ordersRow is one span of report_orders.
type ordersRow struct {
	bun.BaseModel `bun:"table:report_orders,alias:r"`

	SpanS          int64  `bun:"span_s,pk"`
	Start          int64  `bun:"start,pk"`
	Currency       string `bun:"currency,pk"`
	Raised         int64  `bun:"raised"`
	RaisedAmount   int64  `bun:"raised_amount"`
	Notified       int64  `bun:"notified"`
	NotifiedAmount int64  `bun:"notified_amount"`
}

type ordersKey struct {
	span     time.Duration
	start    int64
	currency string
}

func (r *ordersRow) counts() counts {
	return counts{r.Raised, r.RaisedAmount, r.Notified, r.NotifiedAmount}
}

// addOrders adds the counts of a minute to the minute and to its hour.
func addOrders(to map[ordersKey]counts, minute int64, currency string, n counts) {
	for _, sp := range spans {
		k := ordersKey{sp.span, floor(minute, sp.span), currency}
		to[k] = to[k].plus(n)
	}
}

// addUnstored adds the counts of a minute without rows: they are stored again under the negative
// spans, for the recount.
func addUnstored(to map[ordersKey]counts, minute int64, currency string, n counts) {
	for _, sp := range spans {
		k := ordersKey{-sp.span, floor(minute, sp.span), currency}
		to[k] = to[k].plus(n)
	}
}

// writeOrders adds to the spans' rows.
func writeOrders(ctx context.Context, q bun.IDB, all map[ordersKey]counts) error {
	rows := make([]ordersRow, 0, len(all))
	for k, n := range all {
		rows = append(rows, ordersRow{
			SpanS: int64(k.span / time.Second), Start: k.start, Currency: k.currency,
			Raised: n[0], RaisedAmount: n[1], Notified: n[2], NotifiedAmount: n[3],
		})
	}
	slices.SortFunc(rows, func(a, b ordersRow) int {
		return cmp.Or(cmp.Compare(a.SpanS, b.SpanS), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Currency, b.Currency))
	})
	return addRows(ctx, q, rows, "span_s, start, currency", "raised", "raised_amount", "notified", "notified_amount")
}

// Notified counts, for one currency, the orders and money of which merchants had to be
// notified, and have been by now.
type Notified struct {
	Currency       string
	Raised         int64
	RaisedAmount   int64 // minor units
	Notified       int64
	NotifiedAmount int64
}

// Orders returns, by currency, the orders whose notifications were created from the step that
// contains from to the one that contains to (Unix µs); currencies without any are left out. An
// order counts as notified once every delivery owed to the merchant has been delivered; skipped
// deliveries and those to subscribers are not owed. A resent notification counts once.
func Orders(ctx context.Context, d *db.DB, from, to int64, step time.Duration) (all []Notified, err error) {
	err = d.Read.NewRaw("SELECT currency, CAST(sum(raised) AS BIGINT) AS raised, CAST(sum(raised_amount) AS BIGINT) AS raised_amount,"+
		" CAST(sum(notified) AS BIGINT) AS notified, CAST(sum(notified_amount) AS BIGINT) AS notified_amount"+
		" FROM report_orders WHERE span_s = ? AND start >= ? AND start <= ? GROUP BY currency HAVING sum(raised) > 0 ORDER BY 2 DESC, 1",
		ordersSpan(step), floor(from, step), to).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read orders notified: %w", err)
	}
	return all, nil
}

// ordersSpan is the span of the rows, in seconds, of which steps are made up.
func ordersSpan(step time.Duration) int64 {
	if step%time.Hour == 0 {
		return int64(time.Hour / time.Second)
	}
	return int64(time.Minute / time.Second)
}

// Step counts the orders of one step, of all currencies.
type Step struct{ Start, Raised, Notified int64 }

// Rate returns the share of the orders of which merchants have been notified; false = there are
// none.
func (s Step) Rate() (float64, bool) {
	return float64(s.Notified) / float64(max(s.Raised, 1)), s.Raised > 0
}

// OrderSteps returns the same orders by step; steps without any are left out.
func OrderSteps(ctx context.Context, d *db.DB, from, to int64, step time.Duration) (all []Step, err error) {
	us := step.Microseconds()
	err = d.Read.NewRaw(
		"SELECT start - start % ? AS start, CAST(sum(raised) AS BIGINT) AS raised, CAST(sum(notified) AS BIGINT) AS notified"+
			" FROM report_orders WHERE span_s = ? AND start >= ? AND start <= ? GROUP BY start - start % ? HAVING sum(raised) > 0 ORDER BY 1",
		us, ordersSpan(step), floor(from, step), to, us).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read orders notified by step: %w", err)
	}
	return all, nil
}

// Untried counts what has not been tried yet.
type Untried struct {
	Orders int64
	More   bool  // there are more than were counted
	Oldest int64 // when the oldest was created, Unix µs; 0 = none
}

// untriedRows bounds the count.
const untriedRows = 10_000

// NotTried counts the orders whose merchants must be notified but had no attempt yet, for any
// reason: a breaker, a digest, no worker.
func NotTried(ctx context.Context, d *db.DB) (u Untried, err error) {
	var row struct{ N, Orders, Oldest int64 }
	err = d.Read.NewRaw("SELECT count(*) AS n, count(DISTINCT event_id) AS orders, coalesce(min(created_at), 0) AS oldest FROM"+
		" (SELECT event_id, created_at FROM deliveries WHERE next_at IS NOT NULL AND attempts = 0 AND currency <> '' ORDER BY created_at LIMIT ?) AS w",
		untriedRows).Scan(ctx, &row)
	if err != nil {
		return u, fmt.Errorf("count untried notifications: %w", err)
	}
	return Untried{Orders: row.Orders, More: row.N >= untriedRows, Oldest: row.Oldest}, nil
}
