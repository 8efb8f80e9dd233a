package dispute

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
)

// ByNo finds a dispute by its number, ours or the supplier's; of several suppliers' that are
// equal, the newest. Errors: ErrNotFound.
func ByNo(ctx context.Context, q bun.IDB, no string) (*Dispute, error) {
	return one(ctx, q.NewSelect().Where("dp.id = (SELECT max(d.id) FROM disputes AS d WHERE d.dispute_no = ? OR d.supplier_dispute_no = ?)",
		no, no))
}

func one(ctx context.Context, q *bun.SelectQuery) (*Dispute, error) {
	d := new(Dispute)
	err := q.Model(d).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a dispute: %w", err)
	}
	return d, nil
}

// maxOfOrder bounds how many disputes of one order are read.
const maxOfOrder = 1000

// OfOrder reads an order's disputes, oldest first.
func OfOrder(ctx context.Context, q bun.IDB, orderID int64) ([]*Dispute, error) {
	all := []*Dispute{}
	if orderID == 0 {
		return all, nil
	}
	if err := q.NewSelect().Model(&all).Where("dp.order_id = ? AND dp.order_id <> 0",
		orderID).OrderExpr("dp.id").Limit(maxOfOrder).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an order's disputes: %w", err)
	}
	return all, nil
}

// EvidenceOf reads the evidence about a dispute, oldest first.
func EvidenceOf(ctx context.Context, q bun.IDB, id int64) ([]Evidence, error) {
	all := []Evidence{}
	if err := q.NewSelect().Model(&all).Where("de.dispute_id = ?", id).OrderExpr("de.id").Limit(maxEvidence).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the evidence about a dispute: %w", err)
	}
	return all, nil
}
