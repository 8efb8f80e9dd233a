package order

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ErrNotFound means that there is no such order.
var ErrNotFound = errors.New("no such order")

// Change is one order's change of status. Order is as it was read, with the fields that belong
// to the new status (PaidAmount, ClosedAt, NextAt, …) already set.
type Change struct {
	Order    *Order
	To       Status
	Cause    Cause
	Actor    string
	SourceID int64
	// SourceKind is the kind of row that SourceID refers to.
	SourceKind string
}

// changeRow is a Change as a row of values joined by the update.
type changeRow struct {
	ID              int64  `bun:"id"`
	FromStatus      string `bun:"from_status"`
	FromVersion     int64  `bun:"from_version"`
	ToStatus        string `bun:"to_status"`
	SupplierTradeNo string `bun:"supplier_trade_no"`
	PaidAmount      int64  `bun:"paid_amount"`
	FeeAmount       int64  `bun:"fee_amount"`
	CloseReason     string `bun:"close_reason"`
	CloseTries      int64  `bun:"close_tries"`
	NextAt          *int64 `bun:"next_at"`
	PaidAt          *int64 `bun:"paid_at"`
	ClosedAt        *int64 `bun:"closed_at"`
	PaidFrom        string `bun:"paid_from,nullzero"`
	PaidVersion     *int64 `bun:"paid_version"`
	PaidBy          string `bun:"paid_by,nullzero"`
	PaidCallback    *int64 `bun:"paid_callback"`
	ConfirmedAt     *int64 `bun:"confirmed_at"`
}

// Move adds each order's change of status to the writes, by compare-and-set on status and
// version, with its history, and updates the given orders in memory. If any of them has changed
// in between, the writes end with db.ErrStale, and the caller must roll back and read again. An
// order must not occur twice in changes.
func Move(w *db.Writes, d *db.DB, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	now := d.Now()
	rows := make([]changeRow, len(changes))
	history := make([]History, 0, len(changes))
	for i, c := range changes {
		o := c.Order
		if !Moves.Can(o.Status, c.To) {
			return fmt.Errorf("illegal change of an order's status: %s from %s to %s", o.OrderNo, o.Status, c.To)
		}
		if c.To == Paid && c.Cause == ByCallback && c.SourceID != 0 {
			version := o.Version + 1
			o.PaidFrom, o.PaidVersion, o.PaidBy, o.PaidCallback, o.ConfirmedAt = o.Status, &version, c.Actor, &c.SourceID, &now
		} else {
			history = append(history, History{
				ID: d.NewID(), OrderID: o.ID, Version: o.Version + 1, From: o.Status, To: c.To,
				Cause: c.Cause, Actor: c.Actor, SourceID: c.SourceID, SourceKind: c.SourceKind, CreatedAt: now,
			})
		}
		rows[i] = changeRow{
			ID: o.ID, FromStatus: string(o.Status), FromVersion: o.Version, ToStatus: string(c.To),
			SupplierTradeNo: o.SupplierTradeNo, PaidAmount: o.PaidAmount, FeeAmount: o.FeeAmount, CloseReason: o.CloseReason,
			CloseTries: o.CloseTries, NextAt: o.NextAt, PaidAt: o.PaidAt, ClosedAt: o.ClosedAt,
			PaidFrom: string(o.PaidFrom), PaidVersion: o.PaidVersion, PaidBy: o.PaidBy, PaidCallback: o.PaidCallback,
			ConfirmedAt: o.ConfirmedAt,
		}
	}
	if len(history) > 0 {
		w.Insert(&history, "")
	}
	w.GuardEach(&rows, "UPDATE orders AS o SET status = _v.to_status, version = o.version + 1,"+
		" supplier_trade_no = _v.supplier_trade_no, paid_amount = _v.paid_amount, fee_amount = _v.fee_amount,"+
		" close_reason = _v.close_reason, close_tries = _v.close_tries,"+
		" next_at = _v.next_at, paid_at = _v.paid_at, closed_at = _v.closed_at,"+
		" paid_from = _v.paid_from, paid_version = _v.paid_version, paid_by = _v.paid_by,"+
		" paid_callback = _v.paid_callback, confirmed_at = _v.confirmed_at,"+
		" query_tries = CASE WHEN _v.to_status = 'closing' THEN 0 ELSE o.query_tries END"+ // the waits start again
		" FROM _v WHERE o.id = _v.id AND o.status = _v.from_status AND o.version = _v.from_version")
	for _, c := range changes {
		if c.To == Closing {
			c.Order.QueryTries = 0
		}
		c.Order.Status = c.To
		c.Order.Version++
	}
	return nil
}

// Insert adds new orders and the first row of their history to the writes; InsertStaged does so
// for an import.
func Insert(w *db.Writes, d *db.DB, orders []*Order, cause Cause, actor func(*Order) string) {
	if len(orders) == 0 {
		return
	}
	w.Insert(&orders, "")
	insertHistory(w, d, orders, cause, actor)
}

// InsertUnknown is Insert for orders that are expected to be new: one with the same out_trade_no
// fails the transaction with db.ErrStale.
func InsertUnknown(w *db.Writes, d *db.DB, orders []*Order, cause Cause, actor func(*Order) string) {
	w.GuardInsert(&orders, "CONFLICT (merchant_id, out_trade_no) DO NOTHING")
	insertHistory(w, d, orders, cause, actor)
}

func insertHistory(w *db.Writes, d *db.DB, orders []*Order, cause Cause, actor func(*Order) string) {
	history := make([]History, len(orders))
	for i, o := range orders {
		history[i] = History{
			ID: d.NewID(), OrderID: o.ID, Version: o.Version, To: o.Status,
			Cause: cause, Actor: actor(o), CreatedAt: o.CreatedAt,
		}
	}
	w.Insert(&history, "")
}

// InsertStaged creates orders from what an import has staged, each with the first row of its
// history, and returns how many. They keep the status that they have in the other system.
// Nothing is posted to the ledger, no stock is moved and no notification is sent, because that
// system has done so.
func InsertStaged(ctx context.Context, tx db.Tx, runID, now int64) (int64, error) {
	if err := lowerWatermark(ctx, tx, runID); err != nil {
		return 0, err
	}
	const columns = "id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, notify_url," +
		" status, version, supplier_trade_no, paid_amount, close_reason, created_at, expires_at, next_at, paid_at, closed_at"
	res, err := tx.NewRaw("INSERT INTO orders (request_digest, "+columns+") SELECT '', "+columns+" FROM import_orders WHERE run_id = ?",
		runID).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("insert staged orders: %w", err)
	}
	_, err = tx.NewRaw("INSERT INTO order_history (id, order_id, version, from_status, to_status, cause, actor, created_at)"+
		" SELECT history_id, id, version, '', status, ?, 'import', ? FROM import_orders WHERE run_id = ?", Imported, now, runID).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("write order history: %w", err)
	}
	return res.RowsAffected()
}

// ByNo returns the order with this number, or ErrNotFound.
func ByNo(ctx context.Context, q bun.IDB, orderNo string) (*Order, error) {
	return one(ctx, q.NewSelect().Model((*Order)(nil)).Where("o.order_no = ?", orderNo))
}

// ByID is ByNo by id.
func ByID(ctx context.Context, q bun.IDB, id int64) (*Order, error) {
	return one(ctx, q.NewSelect().Model((*Order)(nil)).Where("o.id = ?", id))
}

// ByOutTradeNo returns a merchant's order by the merchant's own number, or ErrNotFound.
func ByOutTradeNo(ctx context.Context, q bun.IDB, merchantID int64, outTradeNo string) (*Order, error) {
	return one(ctx, q.NewSelect().Model((*Order)(nil)).
		Where("o.merchant_id = ?", merchantID).Where("o.out_trade_no = ?", outTradeNo))
}

// ByNos reads and locks the orders with the given numbers by id; every writer locks in that
// order, which prevents deadlocks.
func ByNos(ctx context.Context, tx db.Tx, d *db.DB, nos []string) (map[string]*Order, error) {
	return locked(ctx, d, tx, "order_no", nos, func(o *Order) string { return o.OrderNo })
}

// ReadByNos is ByNos as one of several reads: the orders are in found after their Exec.
func ReadByNos(r *db.Reads, d *db.DB, nos []string, found *[]*Order) {
	r.Into(found, lockedText(d, "order_no"), nos)
}

// ByIDs is ByNos by id.
func ByIDs(ctx context.Context, tx db.Tx, d *db.DB, ids []int64) (map[int64]*Order, error) {
	return locked(ctx, d, tx, "id", ids, func(o *Order) int64 { return o.ID })
}

// lockedText locks by id; every writer does, which prevents deadlocks.
func lockedText(d *db.DB, column string) string {
	return "SELECT " + d.Columns((*Order)(nil)) + " FROM orders WHERE " + column + " IN (?) ORDER BY id" + d.ForUpdateText()
}

func locked[K int64 | string](ctx context.Context, d *db.DB, tx db.Tx, column string, keys []K, key func(*Order) K) (map[K]*Order, error) {
	found := make(map[K]*Order, len(keys))
	if len(keys) == 0 {
		return found, nil
	}
	var rows []*Order
	if err := tx.Prepared(ctx, &rows, lockedText(d, column), keys); err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	for _, o := range rows {
		found[key(o)] = o
	}
	return found, nil
}

func one(ctx context.Context, q *bun.SelectQuery) (*Order, error) {
	o := new(Order)
	err := q.Model(o).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	return o, nil
}
