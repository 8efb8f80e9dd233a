package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// foldDeltas bounds one transaction of Fold.
const foldDeltas = 500

// spans are the tables of attempts, with the time that a row covers. Hours have a long
// retention; both tables are written by the same fold.
var spans = []struct {
	table string
	span  time.Duration
}{{"report_minutes", time.Minute}, {"report_hours", time.Hour}}

// allRecipients is the recipient under which the sums of all of them are stored.
const allRecipients = 0

// Fold adds a bounded number of deltas to the figures, and returns how many. One node folds at
// a time; others have nothing to do. Days are those of the zone. The deltas are read and summed before the transaction:
// SQLite has one writer, and callbacks wait for it.
func Fold(ctx context.Context, d *db.DB, zone *time.Location) (deltas int, err error) {
	var rows []deltaRow
	if err := d.Read.NewRaw("SELECT id, body FROM report_deltas ORDER BY id LIMIT ?", foldDeltas).Scan(ctx, &rows); err != nil {
		return 0, fmt.Errorf("read the deltas: %w", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	ids, bodies := make([]int64, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		ids[i], bodies[i] = r.ID, r.Body
	}
	s, err := sumUp(bodies, zone)
	if err != nil {
		return 0, fmt.Errorf("fold the reports: %w", err)
	}
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var mine []int64
		lock := tx.NewSelect().Table("settings").Column("value").Where("name = 'report_fold'")
		if err := d.SkipLocked(lock).Scan(ctx, &mine); err != nil {
			return err
		}
		if len(mine) == 0 {
			return errFoldedElsewhere
		}
		deleted, err := tx.NewRaw("DELETE FROM report_deltas WHERE id IN (?)", bun.List(ids)).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := deleted.RowsAffected(); err != nil || n != int64(len(ids)) {
			return cmp.Or(err, errFoldedElsewhere)
		}
		return s.write(ctx, tx)
	})
	if errors.Is(err, errFoldedElsewhere) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("fold the reports: %w", err)
	}
	return len(rows), nil
}

// errFoldedElsewhere rolls back a fold that another node has already made.
var errFoldedElsewhere = errors.New("another node folds")

type spanKey struct{ recipient, start int64 }

type callbackKey struct {
	start, supplier int64
	outcome         string
}

type moneyKey struct {
	merchant int64
	currency string
}

// counts are numbers that are added up together; their meaning depends on the table.
type counts [4]int64

func (c counts) plus(o counts) counts {
	for i, n := range o {
		c[i] += n
	}
	return c
}

func (c counts) minus() counts {
	for i := range c {
		c[i] = -c[i]
	}
	return c
}

// sums are the sums of many deltas.
type sums struct {
	points     [2]map[spanKey]*Point // by spans
	callbacks  map[callbackKey]int64
	unnotified map[moneyKey]counts // orders, amount
	orders     map[ordersKey]counts
	last       map[int64]lastRow // by recipient
	suppliers  suppliers
	analytics
}

// sumUp adds deltas up; without a zone there are no days.
func sumUp(bodies []string, zone *time.Location) (*sums, error) {
	s := &sums{
		callbacks: map[callbackKey]int64{}, unnotified: map[moneyKey]counts{}, orders: map[ordersKey]counts{}, last: map[int64]lastRow{},
		suppliers: newSuppliers(), analytics: newAnalytics(zone),
	}
	minutes := map[spanKey]*Point{}
	var x Delta
	for _, body := range bodies {
		if err := x.parse(body); err != nil {
			return nil, err
		}
		for i := range x.Attempts {
			a := &x.Attempts[i]
			pointOf(minutes, spanKey{a.Recipient, x.Minute}).merge(&a.Point)
			l := s.last[a.Recipient]
			s.last[a.Recipient] = lastRow{RecipientID: a.Recipient, OKAt: max(l.OKAt, a.OKAt), FailedAt: max(l.FailedAt, a.FailedAt)}
		}
		for _, c := range x.Callbacks {
			s.callbacks[callbackKey{x.Minute, c.Supplier, c.Outcome}] += c.N
		}
		for _, u := range x.UnnotifiedSums {
			k := moneyKey{u.Merchant, u.Currency}
			s.unnotified[k] = s.unnotified[k].plus(counts{u.Orders, u.Amount})
		}
		for i := range x.Orders {
			o := &x.Orders[i]
			minute, n := cmp.Or(o.Minute, x.Minute), counts{o.Raised, o.RaisedAmount, o.Notified, o.NotifiedAmount}
			addOrders(s.orders, minute, o.Currency, n)
			if x.Unstored {
				addUnstored(s.orders, minute, o.Currency, n)
			}
			s.analytics.addOrders(s.orders, minute, o.Currency, n)
		}
		s.suppliers.add(&x)
		s.analytics.add(&x)
	}
	for i, sp := range spans {
		s.points[i] = map[spanKey]*Point{}
		for k, p := range minutes {
			for _, to := range []int64{allRecipients, k.recipient} {
				pointOf(s.points[i], spanKey{to, floor(k.start, sp.span)}).merge(p)
			}
		}
	}
	return s, nil
}

// pointOf returns the point of a key, creating it if necessary.
func pointOf(points map[spanKey]*Point, k spanKey) *Point {
	if points[k] == nil {
		points[k] = new(Point)
	}
	return points[k]
}

func (s *sums) write(ctx context.Context, tx db.Tx) error {
	for i, sp := range spans {
		if err := addPoints(ctx, tx, sp.table, s.points[i]); err != nil {
			return err
		}
	}
	var callbacks []callbackRow
	for k, n := range s.callbacks {
		callbacks = append(callbacks, callbackRow{Start: k.start, SupplierID: k.supplier, Outcome: k.outcome, N: n})
	}
	if err := addRows(ctx, tx, callbacks, "start, supplier_id, outcome", "n"); err != nil {
		return err
	}
	var unnotified []unnotifiedRow
	for k, n := range s.unnotified {
		unnotified = append(unnotified, unnotifiedRow{MerchantID: k.merchant, Currency: k.currency, Orders: n[0], Amount: n[1]})
	}
	if err := addRows(ctx, tx, unnotified, "merchant_id, currency", "orders", "amount"); err != nil {
		return err
	}
	if err := writeOrders(ctx, tx, s.orders); err != nil {
		return err
	}
	outcomes, calls := s.suppliers.rows()
	if err := addRows(ctx, tx, outcomes, "supplier_id, start, outcome", "n"); err != nil {
		return err
	}
	if err := addRows(ctx, tx, calls, "supplier_id, start, op, class, bucket", "n"); err != nil {
		return err
	}
	if err := s.analytics.write(ctx, tx); err != nil {
		return err
	}
	return writeLast(ctx, tx, s.last)
}

// addRows adds the columns of rows to those stored under the same key. The model's alias is r.
func addRows[T any](ctx context.Context, q bun.IDB, rows []T, key string, columns ...string) error {
	if len(rows) == 0 {
		return nil
	}
	up := q.NewInsert().Model(&rows).On("CONFLICT (" + key + ") DO UPDATE")
	for _, column := range columns {
		c := bun.Ident(column)
		up = up.Set("? = r.? + EXCLUDED.?", c, c, c)
	}
	if _, err := up.Exec(ctx); err != nil {
		return fmt.Errorf("add figures by %s: %w", key, err)
	}
	return nil
}

type callbackRow struct {
	bun.BaseModel `bun:"table:report_callbacks,alias:r"`

	Start      int64  `bun:"start,pk"`
	SupplierID int64  `bun:"supplier_id,pk"`
	Outcome    string `bun:"outcome,pk"`
	N          int64  `bun:"n"`
}

type unnotifiedRow struct {
	bun.BaseModel `bun:"table:report_unnotified,alias:r"`

	MerchantID int64  `bun:"merchant_id,pk"`
	Currency   string `bun:"currency,pk"`
	Orders     int64  `bun:"orders"`
	Amount     int64  `bun:"amount"`
}

// row is one span of report_minutes or report_hours.
type row struct {
	RecipientID int64  `bun:"recipient_id,pk"`
	Start       int64  `bun:"start,pk"`
	OK          int64  `bun:"ok"`
	Retried     int64  `bun:"retried"`
	Failed      int64  `bun:"failed"`
	TookUS      int64  `bun:"took_us"`
	Took        string `bun:"took"`
	Lag         string `bun:"lag"`
}

// addPoints adds to the spans' rows. Histograms are stored as text, so rows are read, added up
// here and written back; the fold's lock keeps other nodes out.
func addPoints(ctx context.Context, tx db.Tx, table string, points map[spanKey]*Point) error {
	if len(points) == 0 {
		return nil
	}
	recipients, starts := map[int64]bool{}, map[int64]bool{}
	for k := range points {
		recipients[k.recipient], starts[k.start] = true, true
	}
	var stored []row
	err := tx.NewSelect().Model(&stored).ModelTableExpr("? AS row", bun.Ident(table)).
		Where("recipient_id IN (?)", bun.List(slices.Collect(maps.Keys(recipients)))).
		Where("start IN (?)", bun.List(slices.Collect(maps.Keys(starts)))).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	for _, r := range stored {
		if p := points[spanKey{r.RecipientID, r.Start}]; p != nil {
			if err := p.add(r); err != nil {
				return err
			}
		}
	}
	rows := make([]row, 0, len(points))
	for k, p := range points {
		rows = append(rows, row{
			RecipientID: k.recipient, Start: k.start, OK: p.OK, Retried: p.Retried, Failed: p.Failed, TookUS: p.TookUS,
			Took: p.Took.text(), Lag: p.Lag.text(),
		})
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.RecipientID, y.RecipientID), cmp.Compare(x.Start, y.Start))
	})
	q := tx.NewInsert().Model(&rows).ModelTableExpr("?", bun.Ident(table)).On("CONFLICT (recipient_id, start) DO UPDATE")
	for _, column := range []string{"ok", "retried", "failed", "took_us", "took", "lag"} {
		q = q.Set("? = EXCLUDED.?", bun.Ident(column), bun.Ident(column))
	}
	if _, err := q.Exec(ctx); err != nil {
		return fmt.Errorf("write %s: %w", table, err)
	}
	return nil
}
