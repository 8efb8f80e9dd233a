package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Part is one of the disjoint parts of the money at risk.
type Part string

// The parts. An order whose notification waits again is unnotified and no longer compensated;
// an order with an exception does not count as stuck. A mismatch is money that paid no order.
const (
	Unnotified  Part = "untold"      // paid, and its notification waits or is being sent
	Compensated Part = "compensated" // it has an exception: given up, or being compensated
	Stuck       Part = "stuck"       // a payment was started, and the order has expired
	Mismatch    Part = "mismatch"    // money that matches no order
)

// Parts lists all parts in display order.
var Parts = []Part{Unnotified, Compensated, Stuck, Mismatch}

// Sum is the money and number of orders in one currency.
type Sum struct {
	Currency string `bun:"currency"`
	Orders   int64  `bun:"orders"`
	Minor    int64  `bun:"minor"`
}

// InCurrencies returns the sums without that of what has no money.
func InCurrencies(all []Sum) []Sum {
	return slices.DeleteFunc(slices.Clone(all), func(s Sum) bool { return s.Currency == "" })
}

// Standing is the sums of one part. Currencies are never added up.
type Standing struct {
	Sums   []Sum
	Oldest int64 // Unix µs; 0 = unknown or none
	Cut    bool  // there is more than was counted
}

// Orders returns the number of orders in the part.
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
	Total      Standing            // of all parts
	ByMerchant map[int64]Standing  // the parts that belong to a merchant
	Waiting    map[int64]Standing  // the unnotified part, by merchant
	Kinds      map[string]Standing // Mismatch by kind of exception
}

const (
	// riskRows bounds the rows counted in parts without a counter. Each such row is an
	// exception, or an order that the next tick handles: this many mean an outage, and the page
	// shows "+".
	riskRows = 5000
	// stuckAfter is how long after its expiry the next tick or task may still handle an order.
	stuckAfter = 10 * time.Second
)

// SQL conditions for the exceptions in each part. A mismatch is money that a supplier holds and
// that paid no order; a dispute or an unknown refund is money taken back, which is a separate
// sum.
var (
	unsettled        = exception.Moves.In("x.state", exception.Moves.Open()...)
	compensatedKinds = moves.Words("x.kind", exception.NotifyExhausted, exception.StuckPaying)
	mismatchKinds    = moves.Words("x.kind", exception.HeldKinds...)
)

// late selects expired orders: from the watermark on, by an index of their own if they could
// not be closed. Others that become due next are not read.
func late(when string) string {
	return "SELECT s.id FROM orders AS s WHERE s.next_at >= " + order.DueFrom + " AND " + when + " AND " +
		order.Moves.In("s.status", order.Paying, order.Closing)
}

const (
	// openDelivery is the condition that a delivery d is open.
	openDelivery = "(d.next_at IS NOT NULL OR d.status = 'sending' AND d.lease_until IS NOT NULL)"
	// firstOfEvent leaves one of the open deliveries that share the money of an event: it counts once.
	firstOfEvent = "(NOT d.shared OR NOT EXISTS (SELECT 1 FROM deliveries AS e WHERE e.subject_id = d.subject_id" +
		" AND e.event_id = d.event_id" +
		" AND e.recipient_id = d.recipient_id AND e.id < d.id AND e.currency <> ''" +
		" AND (e.next_at IS NOT NULL OR e.status = 'sending' AND e.lease_until IS NOT NULL)))"
)

// sources are the rows of each part. Unnotified money grows with the traffic and has a counter.
// The other parts are read exactly: they are small, each has an index, and they change in many
// places, each of which would otherwise have to maintain a counter.
var sources = []struct {
	part               Part
	table, alias       string
	kind, since, where string
}{
	{Unnotified, "deliveries", "d", "", "", openDelivery + " AND d.currency <> '' AND " + firstOfEvent}, // as Recount counts them
	{Compensated, "exceptions", "x", "x.kind", "x.opened_at", compensatedKinds +
		" AND " + unsettled + " AND EXISTS (SELECT 1 FROM orders AS o WHERE o.id = x.order_id AND " + order.Moves.In("o.status", order.Paid,
		order.Paying, order.Closing) + ")" +
		" AND NOT EXISTS (SELECT 1 FROM deliveries AS w WHERE w.subject_id = x.order_id AND w.next_at IS NOT NULL AND w.currency <> '')"},
	{
		Stuck, "orders", "o", "''", "CASE WHEN o.close_tries > 0 AND o.expires_at < o.next_at THEN o.expires_at ELSE o.next_at END",
		"o.id IN (" + late("s.next_at < ?") + " UNION ALL " + late("s.next_at < ? AND s.close_tries > 0") +
			") AND NOT EXISTS (SELECT 1 FROM exceptions AS x WHERE x.order_no = o.order_no AND " + unsettled + ")",
	},
	{Mismatch, "exceptions", "x", "x.kind", "x.opened_at", mismatchKinds + " AND " + unsettled},
}

// Rows identifies the rows of one part of the money at risk, so that a list can show exactly
// those that were counted.
type Rows struct {
	Table string // "deliveries", "orders" or "exceptions"
	Where string // a condition with the aliases d, o and x
	IDs   string // a query for their ids
	Args  []any  // of Where, and of IDs
}

// RowsOf returns the rows of a part at a time (Unix µs); false = no such part.
func RowsOf(part Part, now int64) (Rows, bool) {
	for _, s := range sources {
		if s.part == part {
			rows := Rows{Table: s.table, Where: s.where, IDs: "SELECT " + s.alias + ".id FROM " + s.table + " AS " + s.alias + " WHERE " +
				s.where}
			if part == Stuck {
				// An order that cannot be closed is due again within RetryClose.
				rows.Args = []any{now - stuckAfter.Microseconds(), now + order.RetryClose.Microseconds()}
			}
			return rows, true
		}
	}
	return Rows{}, false
}

// AtRisk reads the money at risk. Its counter is as of the last fold.
func AtRisk(ctx context.Context, d *db.DB) (*Risk, error) { return atRisk(ctx, d, true, nil) }

// AtRiskOf is AtRisk for some merchants.
func AtRiskOf(ctx context.Context, d *db.DB, merchants []int64) (*Risk, error) {
	return atRisk(ctx, d, false, merchants)
}

// atRisk reads the money at risk of all merchants, or of some.
func atRisk(ctx context.Context, d *db.DB, all bool, merchants []int64) (*Risk, error) {
	of := bun.List(append([]int64{-1}, merchants...)) // -1 is no merchant: a list is never empty
	r := &Risk{
		At: d.Now(), Parts: map[Part]Standing{}, ByMerchant: map[int64]Standing{}, Waiting: map[int64]Standing{},
		Kinds: map[string]Standing{},
	}
	var rows []riskRow
	err := d.Read.NewRaw("SELECT merchant_id, currency, orders, amount AS minor, 0 AS since FROM report_unnotified"+
		" WHERE (orders <> 0 OR amount <> 0) AND (? OR merchant_id IN (?)) ORDER BY currency", all, of).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read unnotified money: %w", err)
	}
	r.add(Unnotified, rows)
	for _, s := range sources {
		if s.part == Unnotified {
			continue
		}
		rows = nil
		rowsOf, _ := RowsOf(s.part, r.At)
		err := d.Read.NewRaw(
			"SELECT merchant_id, currency, kind, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor, min(since) AS since FROM (SELECT "+
				s.alias+".merchant_id, "+s.alias+".currency, "+s.alias+".amount, "+s.kind+" AS kind, "+s.since+" AS since FROM "+s.table+
				" AS "+
				s.alias+
				" WHERE "+rowsOf.Where+" AND (? OR "+s.alias+".merchant_id IN (?)) LIMIT ?) AS w GROUP BY merchant_id, currency, kind ORDER BY currency",
			append(rowsOf.Args, all, of, riskRows)...).Scan(ctx, &rows)
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

// sampleEvery is how often the money at risk is recorded for the charts.
const sampleEvery = 5 * time.Minute

// Sample records the money at risk every few minutes; in between, and on a second node, it does
// nothing.
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
	// A row is written even if nothing is at risk, to mark the sample.
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
	Part     Part   `bun:"part,pk"` // empty = marks the sample
	Currency string `bun:"currency,pk"`
	Orders   int64  `bun:"orders"`
	Amount   int64  `bun:"amount"`
}

// Past is the money at risk at one time, by part.
type Past struct {
	At    int64 // Unix µs
	Parts map[Part]Standing
}

// History returns the samples of the money at risk since a time (Unix µs), oldest first.
func History(ctx context.Context, d *db.DB, since int64) ([]Past, error) {
	var rows []sampleRow
	if err := d.Read.NewSelect().Model(&rows).Where("rr.start >= ?", since).OrderExpr("rr.start").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read what was at risk: %w", err)
	}
	return pastOf(rows), nil
}

// pastOf joins rows in the order of time to samples.
func pastOf(rows []sampleRow) (all []Past) {
	for _, r := range rows {
		if len(all) == 0 || all[len(all)-1].At != r.Start {
			all = append(all, Past{At: r.Start, Parts: map[Part]Standing{}})
		}
		if r.Part != "" {
			addTo(all[len(all)-1].Parts, r.Part, Sum{Currency: r.Currency, Orders: r.Orders, Minor: r.Amount})
		}
	}
	return all
}

// PastAt returns the last sample of the money at risk at or before a time (Unix µs), at most a day
// older; nil = there is none.
func PastAt(ctx context.Context, d *db.DB, at int64) (*Past, error) {
	var last []int64
	err := d.Read.NewRaw("SELECT start FROM report_risk WHERE start > ? AND start <= ? ORDER BY start DESC LIMIT 1", at-day.Microseconds(),
		at).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	var rows []sampleRow
	if err := d.Read.NewSelect().Model(&rows).Where("rr.start = ?", last[0]).OrderExpr("rr.part, rr.currency").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read what was at risk: %w", err)
	}
	return &pastOf(rows)[0], nil
}
