// Package comparison keeps how orders compared with those of another system, beside which the
// installation runs in shadow mode.
package comparison

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Outcome is what became of an order.
type Outcome struct {
	Status     string `json:"status"`      // "" = there is no such order
	PaidAmount int64  `json:"paid_amount"` // minor units
	TradeNo    string `json:"supplier_trade_no"`
}

// String describes the outcome.
func (o Outcome) String() string {
	switch {
	case o.Status == "":
		return "none"
	case o.PaidAmount == 0:
		return o.Status
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %s", o.Status, o.PaidAmount, o.TradeNo))
}

// ended is whether an order is paid, unpaid for good, or open: the statuses of two systems change at
// different moments.
func (o Outcome) ended() string {
	switch order.Status(o.Status) {
	case "":
		return ""
	case order.Paid:
		return "paid"
	case order.Failed, order.Closed:
		return "unpaid"
	}
	return "open"
}

// Agrees reports whether the order became the same there. A number of the supplier that the other
// system does not name is not compared.
func (o Outcome) Agrees(there Outcome) bool {
	return o.ended() == there.ended() &&
		(o.ended() != "paid" || o.PaidAmount == there.PaidAmount && (there.TradeNo == "" || o.TradeNo == there.TradeNo))
}

// Side is where an order that differs was found.
type Side string

// The sides.
const (
	Both  Side = "both"
	There Side = "there" // in the other system only
	Here  Side = "here"  // paid here, and not in the file
)

// Sides are all of them.
var Sides = []string{string(Both), string(There), string(Here)}

// Difference is an order that became something else in the other system.
type Difference struct {
	OrderNo string  `json:"order_no"`
	Here    Outcome `json:"here"`
	There   Outcome `json:"there"`
}

// Side returns where the order was found.
func (d Difference) Side() Side {
	switch "" {
	case d.Here.Status:
		return There
	case d.There.Status:
		return Here
	}
	return Both
}

// Counts are the orders of a comparison.
type Counts struct {
	Same      int64 `json:"same" bun:"same"`
	Differ    int64 `json:"differ" bun:"differ"`
	OnlyThere int64 `json:"only_there" bun:"only_there"`
	OnlyHere  int64 `json:"only_here" bun:"only_here"` // paid, and created between the first and the last order of the file
}

// Agree reports whether no order differs or is on one side only.
func (c Counts) Agree() bool { return c.Different() == 0 }

// Different is how many orders differ or are on one side only.
func (c Counts) Different() int64 { return c.Differ + c.OnlyThere + c.OnlyHere }

// Agreement is the share of orders that became the same; false = none were compared.
func (c Counts) Agreement() (share float64, ok bool) {
	all := c.Same + c.Different()
	if all == 0 {
		return 0, false
	}
	return float64(c.Same) / float64(all), true
}

// Comparison is one file of the other system, compared with the orders here.
type Comparison struct {
	bun.BaseModel `bun:"table:comparisons,alias:cm"`

	ID     int64  `bun:"id,pk"`
	MadeAt int64  `bun:"made_at"` // Unix µs
	File   string `bun:"file"`    // its name, without its folder
	Counts
	Kept int64 `bun:"kept"` // how many of the orders that differ have a row
}

// Row is an order that differed, as it was when it was compared.
type Row struct {
	bun.BaseModel `bun:"table:comparison_rows,alias:cr"`

	ID           int64  `bun:"id,pk"`
	ComparisonID int64  `bun:"comparison_id"`
	OrderNo      string `bun:"order_no"`
	Side         Side   `bun:"side"`
	HereStatus   string `bun:"here_status"`
	HerePaid     int64  `bun:"here_paid"`
	HereTradeNo  string `bun:"here_trade_no"`
	ThereStatus  string `bun:"there_status"`
	TherePaid    int64  `bun:"there_paid"`
	ThereTradeNo string `bun:"there_trade_no"`
}

// Here is what had become of the order here.
func (r *Row) Here() Outcome { return Outcome{r.HereStatus, r.HerePaid, r.HereTradeNo} }

// There is what had become of it in the other system.
func (r *Row) There() Outcome { return Outcome{r.ThereStatus, r.TherePaid, r.ThereTradeNo} }

// Limits of what is kept.
const (
	MaxRows        = 10_000 // of one comparison
	maxComparisons = 100    // the newest
	maxFile        = 200    // bytes of its name, before it is cut
	insertRows     = 500
)

// Save stores a comparison of a file with the first MaxRows of its differences, and returns its id. Older ones
// than the newest hundred are deleted.
func Save(ctx context.Context, d *db.DB, file string, counts Counts, differences []Difference) (int64, error) {
	differences = differences[:min(len(differences), MaxRows)]
	file = textlimit.Clip(textlimit.Storable(filepath.Base(file)), maxFile)
	c := &Comparison{ID: d.NewID(), MadeAt: d.Now(), File: file, Counts: counts, Kept: int64(len(differences))}
	err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewInsert().Model(c).Exec(ctx); err != nil {
			return fmt.Errorf("store a comparison: %w", err)
		}
		for part := range slices.Chunk(differences, insertRows) {
			rows := make([]Row, len(part))
			for i, x := range part {
				rows[i] = Row{
					ID: d.NewID(), ComparisonID: c.ID, OrderNo: x.OrderNo, Side: x.Side(),
					HereStatus: x.Here.Status, HerePaid: x.Here.PaidAmount, HereTradeNo: x.Here.TradeNo,
					ThereStatus: x.There.Status, TherePaid: x.There.PaidAmount, ThereTradeNo: x.There.TradeNo,
				}
			}
			if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
				return fmt.Errorf("store the orders that differ: %w", err)
			}
		}
		return deleteOld(ctx, tx)
	})
	return c.ID, err
}

func deleteOld(ctx context.Context, tx db.Tx) error {
	const old = "SELECT id FROM comparisons ORDER BY id DESC LIMIT 1000 OFFSET ?"
	for _, query := range []string{
		"DELETE FROM comparison_rows WHERE comparison_id IN (" + old + ")", "DELETE FROM comparisons WHERE id IN (" + old + ")",
	} {
		if _, err := tx.NewRaw(query, maxComparisons).Exec(ctx); err != nil {
			return fmt.Errorf("delete old comparisons: %w", err)
		}
	}
	return nil
}
