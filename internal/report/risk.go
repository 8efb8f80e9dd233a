package report

import (
	"context"
	"encoding/json"
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

// The parts. An order whose notification waits again is untold and no longer
// compensated; one with an exception is not stuck as well. What a mismatch is
// about is money that no order has taken.
const (
	Untold      Part = "untold"      // paid, and a notification of it waits or is on its way
	Compensated Part = "compensated" // given up or being pushed to an end: an exception stands for it
	Stuck       Part = "stuck"       // a payment was started, and the order is past its time
	Mismatch    Part = "mismatch"    // money that does not fit an order
)

// Parts are all of them, as they are shown.
var Parts = []Part{Untold, Compensated, Stuck, Mismatch}

// Sum is money of one currency and how many orders it is.
type Sum struct {
	Currency string `bun:"currency"`
	Orders   int64  `bun:"orders"`
	Minor    int64  `bun:"minor"`
}

// Standing is what one part comes to. Currencies are never added up.
type Standing struct {
	Sums   []Sum
	Oldest int64 // Unix µs; 0 = unknown or nothing there
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
	for i := range s.Sums {
		if s.Sums[i].Currency == m.Currency {
			s.Sums[i].Orders += m.Orders
			s.Sums[i].Minor += m.Minor
			return
		}
	}
	s.Sums = append(s.Sums, m)
}

// Risk is the money at risk.
type Risk struct {
	At         int64 // Unix µs
	Parts      map[Part]Standing
	Total      Standing            // the parts together
	ByMerchant map[int64]Standing  // the parts that are about a merchant
	Waiting    map[int64]Standing  // what is untold, by merchant
	Kinds      map[string]Standing // Mismatch by kind of exception
}

const (
	// riskRows bounds what is counted of a part that is read instead of kept. Each
	// row of those is an exception, or an order that the next second's tick takes
	// up: as many as this is an outage, and the page says "+".
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

// reads are the parts that are read exactly. What they count changes in many
// places, is small by its nature, and lies behind an index of its own; a counter
// would have to be kept in each of those places and could be wrong. Untold money
// grows with the traffic and is a counter.
var reads = []struct {
	part               Part
	table, kind, since string
	where              string
}{
	{Compensated, "exceptions", "x.kind", "x.opened_at", compensatedKinds +
		" AND " + unsettled + " AND EXISTS (SELECT 1 FROM orders AS o WHERE o.id = x.order_id AND " + moves.In("o.status", order.Paid, order.Paying, order.Closing) + ")" +
		" AND NOT EXISTS (SELECT 1 FROM deliveries AS w WHERE w.subject_id = x.order_id AND w.next_at IS NOT NULL AND w.currency <> '')"},
	{Stuck, "orders", "''", "o.next_at", "o.next_at IS NOT NULL AND o.next_at < ?" +
		" AND " + moves.In("o.status", order.Paying, order.Closing) + " AND NOT EXISTS (SELECT 1 FROM exceptions AS x WHERE x.order_no = o.order_no AND " + unsettled + ")"},
	{Mismatch, "exceptions", "x.kind", "x.opened_at", mismatchKinds + " AND " + unsettled},
}

// AtRisk reads the money at risk. The counter in it is at most as old as the last
// fold.
func AtRisk(ctx context.Context, d *db.DB) (*Risk, error) {
	r := &Risk{At: d.Now(), Parts: map[Part]Standing{}, ByMerchant: map[int64]Standing{}, Waiting: map[int64]Standing{}, Kinds: map[string]Standing{}}
	var rows []riskRow
	err := d.Read.NewRaw("SELECT merchant_id, currency, orders, amount AS minor, 0 AS since FROM report_untold WHERE orders <> 0 OR amount <> 0 ORDER BY currency").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read untold money: %w", err)
	}
	r.add(Untold, rows)
	for _, part := range reads {
		rows = nil
		of, _ := RowsOf(part.part, r.At)
		alias := aliases[part.table]
		err := d.Read.NewRaw("SELECT merchant_id, currency, kind, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor, min(since) AS since FROM (SELECT "+
			alias+".merchant_id, "+alias+".currency, "+alias+".amount, "+part.kind+" AS kind, "+part.since+" AS since FROM "+part.table+" AS "+alias+" WHERE "+of.Where+
			" LIMIT ?) AS w GROUP BY merchant_id, currency, kind ORDER BY currency", append(of.Args, riskRows)...).Scan(ctx, &rows)
		if err != nil {
			return nil, fmt.Errorf("sum up what is %s: %w", part.part, err)
		}
		r.add(part.part, rows)
	}
	return r, nil
}

type riskRow struct {
	MerchantID int64
	Kind       string // of the exception, where one stands for it
	Sum        `bun:",extend"`
	Since      int64
}

func (r *Risk) add(part Part, rows []riskRow) {
	var s Standing
	for _, row := range rows {
		s.Add(row.Sum)
		r.Total.Add(row.Sum)
		if part == Mismatch {
			k := r.Kinds[row.Kind]
			k.Add(row.Sum)
			r.Kinds[row.Kind] = k
		}
		if row.Since > 0 && (s.Oldest == 0 || row.Since < s.Oldest) {
			s.Oldest = row.Since
		}
		if row.MerchantID != 0 {
			m := r.ByMerchant[row.MerchantID]
			m.Add(row.Sum)
			r.ByMerchant[row.MerchantID] = m
			if part == Untold {
				w := r.Waiting[row.MerchantID]
				w.Add(row.Sum)
				r.Waiting[row.MerchantID] = w
			}
		}
	}
	s.Cut = part != Untold && s.Orders() >= riskRows
	r.Total.Cut = r.Total.Cut || s.Cut
	r.Parts[part] = s
}

// sampleEvery is how often what is at risk is written down for the curves.
const sampleEvery = 5 * time.Minute

// Sample writes down what is at risk once every few minutes; at other times, and
// on a second node, it does nothing.
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
	// A row is written even where nothing is at risk: it says that somebody looked.
	rows := []sampleRow{{Start: start}}
	for part, s := range risk.Parts {
		for _, m := range s.Sums {
			rows = append(rows, sampleRow{Start: start, Part: part, Currency: m.Currency, Orders: m.Orders, Amount: m.Minor})
		}
	}
	if _, err := d.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("write down what is at risk: %w", err)
	}
	return nil
}

type sampleRow struct {
	bun.BaseModel `bun:"table:report_risk,alias:rr"`

	Start    int64  `bun:"start,pk"`
	Part     Part   `bun:"part,pk"` // empty: somebody looked
	Currency string `bun:"currency,pk"`
	Orders   int64  `bun:"orders"`
	Amount   int64  `bun:"amount"`
}

// Past is what was at risk at one moment, by part.
type Past struct {
	At    int64 // Unix µs
	Parts map[Part]Standing
}

// History returns what was at risk since a moment (Unix µs), oldest first, as far
// as somebody looked.
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
		if r.Part == "" {
			continue
		}
		parts := all[len(all)-1].Parts
		s := parts[r.Part]
		s.Add(Sum{Currency: r.Currency, Orders: r.Orders, Minor: r.Amount})
		parts[r.Part] = s
	}
	return all, nil
}

// Difference is where a counter and the rows it counts do not agree.
type Difference struct {
	Merchant          int64
	Currency          string
	Orders, Amount    int64 // of the rows
	Counted, CountedM int64 // orders and minor units of the counter
}

// Recount counts untold money anew, from the deliveries, and returns where the
// counter says otherwise: nothing, or somebody changed rows by hand. It reads
// every waiting delivery, in one snapshot.
func Recount(ctx context.Context, d *db.DB) ([]Difference, error) {
	var rows, counted []untoldRow
	var tail []string
	err := d.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		if err := tx.NewRaw("SELECT merchant_id, currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS amount FROM"+
			// Money that several deliveries of an event stand for counts once.
			" (SELECT DISTINCT merchant_id, currency, event_id, amount FROM deliveries WHERE next_at IS NOT NULL AND currency <> '') AS w"+
			" GROUP BY merchant_id, currency").Scan(ctx, &rows); err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&counted).Scan(ctx); err != nil {
			return err
		}
		return tx.NewRaw("SELECT body FROM report_deltas").Scan(ctx, &tail)
	})
	if err != nil {
		return nil, fmt.Errorf("recount untold money: %w", err)
	}
	all := map[moneyKey]*Difference{}
	at := func(merchant int64, currency string) *Difference {
		k := moneyKey{merchant, currency}
		if all[k] == nil {
			all[k] = &Difference{Merchant: merchant, Currency: currency}
		}
		return all[k]
	}
	for _, r := range rows {
		at(r.MerchantID, r.Currency).Orders, at(r.MerchantID, r.Currency).Amount = r.Orders, r.Amount
	}
	for _, c := range counted {
		at(c.MerchantID, c.Currency).Counted, at(c.MerchantID, c.Currency).CountedM = c.Orders, c.Amount
	}
	for _, body := range tail {
		var x Delta
		if err := json.Unmarshal([]byte(body), &x); err != nil {
			return nil, fmt.Errorf("read a delta: %w", err)
		}
		for _, u := range x.Untolds {
			at(u.Merchant, u.Currency).Counted += u.Orders
			at(u.Merchant, u.Currency).CountedM += u.Amount
		}
	}
	var wrong []Difference
	for _, f := range all {
		if f.Orders != f.Counted || f.Amount != f.CountedM {
			wrong = append(wrong, *f)
		}
	}
	return wrong, nil
}

// Mend puts the counter where Recount says that it is wrong. Counters move by
// deltas alone, so that nothing that happens meanwhile is lost.
func Mend(ctx context.Context, d *db.DB, wrong []Difference) error {
	if len(wrong) == 0 {
		return nil
	}
	return d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		x := NewDelta(d.Now())
		for _, f := range wrong {
			x.Untold(f.Merchant, f.Currency, f.Orders-f.Counted, f.Amount-f.CountedM)
		}
		w := tx.Writes()
		x.Write(w, d)
		if err := w.Exec(ctx); err != nil {
			return fmt.Errorf("mend the counter of untold money: %w", err)
		}
		return nil
	})
}
