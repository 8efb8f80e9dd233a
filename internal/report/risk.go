package report

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Part is one of the disjoint parts of the money at risk.
type Part string

// The parts. An order whose notification waits again is unnotified and no longer
// compensated; one with an exception is not stuck as well. A mismatch is about money that
// no order has taken.
const (
	Unnotified  Part = "untold"      // paid, and a notification of it waits or is on its way
	Compensated Part = "compensated" // it has an exception: given up, or compensation works on it
	Stuck       Part = "stuck"       // a payment was started, and the order is past its time
	Mismatch    Part = "mismatch"    // money that does not fit an order
)

// Parts are all of them, as they are shown.
var Parts = []Part{Unnotified, Compensated, Stuck, Mismatch}

// Sum is money of one currency and how many orders it is.
type Sum struct {
	Currency string `bun:"currency"`
	Orders   int64  `bun:"orders"`
	Minor    int64  `bun:"minor"`
}

// Standing is the sums of one part. Currencies are never added up.
type Standing struct {
	Sums   []Sum
	Oldest int64 // Unix µs; 0 = unknown or none
	Cut    bool  // there is more than was counted
}

// Orders is how many orders the part has.
func (s Standing) Orders() (n int64) {
	for _, m := range s.Sums {
		n += m.Orders
	}
	return n
}

// Add adds a sum.
func (s *Standing) Add(m Sum) {
	sum := entry(&s.Sums, Sum{Currency: m.Currency}, func(s *Sum) bool { return s.Currency == m.Currency })
	sum.Orders += m.Orders
	sum.Minor += m.Minor
}

// addTo adds a sum to the standing of a key.
func addTo[K comparable](to map[K]Standing, key K, m Sum) {
	s := to[key]
	s.Add(m)
	to[key] = s
}

// Risk is the money at risk.
type Risk struct {
	At         int64 // Unix µs
	Parts      map[Part]Standing
	Total      Standing            // the parts together
	ByMerchant map[int64]Standing  // the parts that are about a merchant
	Waiting    map[int64]Standing  // what is unnotified, by merchant
	Kinds      map[string]Standing // Mismatch by kind of exception
}

const (
	// riskRows bounds what is counted of a part that is read. Each row of those is an
	// exception, or an order that the next tick takes up: as many as this are an outage,
	// and the page shows "+".
	riskRows = 5000
	// stuckAfter is how long after its time an order may still be picked up by the
	// next tick or task.
	stuckAfter = 10 * time.Second
)

// Which exceptions the parts are made of, as conditions of SQL. A mismatch is money that
// a supplier holds and no order has taken; a dispute or an unknown refund is money
// that is taken back, which is another sum.
var (
	unsettled        = moves.In("x.state", exception.Moves.Open()...)
	compensatedKinds = moves.In("x.kind", exception.NotifyExhausted, exception.StuckPaying)
	mismatchKinds    = moves.In("x.kind", exception.HeldKinds...)
)

// late finds orders past their time: from the watermark on, by an index of their own where
// they could not be closed. Those of others that become due next are not read.
func late(when string) string {
	return "SELECT s.id FROM orders AS s WHERE s.next_at >= " + order.DueFrom + " AND " + when + " AND " + moves.In("s.status", order.Paying, order.Closing)
}

// openDelivery holds for a delivery d that is not over.
const openDelivery = "(d.next_at IS NOT NULL OR d.status = 'sending' AND d.lease_until IS NOT NULL)"

// sources are the rows that the parts consist of. Unnotified money grows with the traffic and
// has a counter. The other parts are read exactly: they change in many places, each of
// which would have to keep a counter, are small, and have an index each.
var sources = []struct {
	part               Part
	table, alias       string
	kind, since, where string
}{
	{Unnotified, "deliveries", "d", "", "", openDelivery + " AND d.currency <> ''"}, // as Recount counts them
	{Compensated, "exceptions", "x", "x.kind", "x.opened_at", compensatedKinds +
		" AND " + unsettled + " AND EXISTS (SELECT 1 FROM orders AS o WHERE o.id = x.order_id AND " + moves.In("o.status", order.Paid, order.Paying, order.Closing) + ")" +
		" AND NOT EXISTS (SELECT 1 FROM deliveries AS w WHERE w.subject_id = x.order_id AND w.next_at IS NOT NULL AND w.currency <> '')"},
	{
		Stuck, "orders", "o", "''", "CASE WHEN o.close_tries > 0 AND o.expires_at < o.next_at THEN o.expires_at ELSE o.next_at END",
		"o.id IN (" + late("s.next_at < ?") + " UNION ALL " + late("s.next_at < ? AND s.close_tries > 0") + ") AND NOT EXISTS (SELECT 1 FROM exceptions AS x WHERE x.order_no = o.order_no AND " + unsettled + ")",
	},
	{Mismatch, "exceptions", "x", "x.kind", "x.opened_at", mismatchKinds + " AND " + unsettled},
}

// Rows names the rows of one part of the money at risk, so that a list can show exactly
// those that were counted.
type Rows struct {
	Table string // "deliveries", "orders" or "exceptions"
	Where string // a condition under the aliases d, o and x
	IDs   string // a query for their ids
	Args  []any  // of Where, and of IDs
}

// RowsOf returns the rows of a part at a moment (Unix µs); false where there is no such
// part.
func RowsOf(part Part, now int64) (Rows, bool) {
	for _, s := range sources {
		if s.part == part {
			rows := Rows{Table: s.table, Where: s.where, IDs: "SELECT " + s.alias + ".id FROM " + s.table + " AS " + s.alias + " WHERE " + s.where}
			if part == Stuck {
				// One that cannot be closed is due again within RetryClose.
				rows.Args = []any{now - stuckAfter.Microseconds(), now + order.RetryClose.Microseconds()}
			}
			return rows, true
		}
	}
	return Rows{}, false
}

// AtRisk reads the money at risk. The counter in it is at most as old as the last fold.
func AtRisk(ctx context.Context, d *db.DB) (*Risk, error) {
	r := &Risk{At: d.Now(), Parts: map[Part]Standing{}, ByMerchant: map[int64]Standing{}, Waiting: map[int64]Standing{}, Kinds: map[string]Standing{}}
	var rows []riskRow
	err := d.Read.NewRaw("SELECT merchant_id, currency, orders, amount AS minor, 0 AS since FROM report_unnotified WHERE orders <> 0 OR amount <> 0 ORDER BY currency").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read unnotified money: %w", err)
	}
	r.add(Unnotified, rows)
	for _, s := range sources {
		if s.part == Unnotified {
			continue
		}
		rows = nil
		of, _ := RowsOf(s.part, r.At)
		err := d.Read.NewRaw("SELECT merchant_id, currency, kind, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor, min(since) AS since FROM (SELECT "+
			s.alias+".merchant_id, "+s.alias+".currency, "+s.alias+".amount, "+s.kind+" AS kind, "+s.since+" AS since FROM "+s.table+" AS "+s.alias+
			" WHERE "+of.Where+" LIMIT ?) AS w GROUP BY merchant_id, currency, kind ORDER BY currency", append(of.Args, riskRows)...).Scan(ctx, &rows)
		if err != nil {
			return nil, fmt.Errorf("sum up what is %s: %w", s.part, err)
		}
		r.add(s.part, rows)
	}
	return r, nil
}

type riskRow struct {
	MerchantID int64
	Kind       string // of the exception, if there is one
	Sum        `bun:",extend"`
	Since      int64
}

func (r *Risk) add(part Part, rows []riskRow) {
	var s Standing
	for _, row := range rows {
		s.Add(row.Sum)
		r.Total.Add(row.Sum)
		if part == Mismatch {
			addTo(r.Kinds, row.Kind, row.Sum)
		}
		if row.Since > 0 && (s.Oldest == 0 || row.Since < s.Oldest) {
			s.Oldest = row.Since
		}
		if row.MerchantID == 0 {
			continue
		}
		addTo(r.ByMerchant, row.MerchantID, row.Sum)
		if part == Unnotified {
			addTo(r.Waiting, row.MerchantID, row.Sum)
		}
	}
	s.Cut = part != Unnotified && s.Orders() >= riskRows
	r.Total.Cut = r.Total.Cut || s.Cut
	r.Parts[part] = s
}

// sampleEvery is how often the money at risk is recorded for the curves.
const sampleEvery = 5 * time.Minute

// Sample records the money at risk once every few minutes; at other times, and on a
// second node, it does nothing.
func Sample(ctx context.Context, d *db.DB) error {
	start := floor(d.Now(), sampleEvery)
	var done []int64
	if err := d.Read.NewRaw("SELECT start FROM report_risk WHERE start >= ? LIMIT 1", start).Scan(ctx, &done); err != nil || len(done) > 0 {
		return err
	}
	risk, err := AtRisk(ctx, d)
	if err != nil {
		return err
	}
	// A row is written even where nothing is at risk: it marks the sample.
	rows := []sampleRow{{Start: start}}
	for part, s := range risk.Parts {
		for _, m := range s.Sums {
			rows = append(rows, sampleRow{Start: start, Part: part, Currency: m.Currency, Orders: m.Orders, Amount: m.Minor})
		}
	}
	if _, err := d.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("record what is at risk: %w", err)
	}
	return nil
}

type sampleRow struct {
	bun.BaseModel `bun:"table:report_risk,alias:rr"`

	Start    int64  `bun:"start,pk"`
	Part     Part   `bun:"part,pk"` // empty: marks the sample
	Currency string `bun:"currency,pk"`
	Orders   int64  `bun:"orders"`
	Amount   int64  `bun:"amount"`
}

// Past is what was at risk at one moment, by part.
type Past struct {
	At    int64 // Unix µs
	Parts map[Part]Standing
}

// History returns the samples of the money at risk since a moment (Unix µs), oldest first.
func History(ctx context.Context, d *db.DB, since int64) ([]Past, error) {
	var rows []sampleRow
	if err := d.Read.NewSelect().Model(&rows).Where("rr.start >= ?", since).OrderExpr("rr.start").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read what was at risk: %w", err)
	}
	var all []Past
	for _, r := range rows {
		if len(all) == 0 || all[len(all)-1].At != r.Start {
			all = append(all, Past{At: r.Start, Parts: map[Part]Standing{}})
		}
		if r.Part != "" {
			addTo(all[len(all)-1].Parts, r.Part, Sum{Currency: r.Currency, Orders: r.Orders, Minor: r.Amount})
		}
	}
	return all, nil
}
