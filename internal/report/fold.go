package report

import (
	"cmp"
	"context"
	"encoding/json"
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

// row is one span of report_minutes or report_hours.
type row struct {
	MerchantID int64  `bun:"merchant_id,pk"`
	Start      int64  `bun:"start,pk"`
	OK         int64  `bun:"ok"`
	Retried    int64  `bun:"retried"`
	Failed     int64  `bun:"failed"`
	TookUS     int64  `bun:"took_us"`
	Took       string `bun:"took"`
	TookLong   string `bun:"took_long"`
	Lag        string `bun:"lag"`
	LagLong    string `bun:"lag_long"`
}

// spans are the tables of attempts and how much time a row covers. The hours are
// kept for long; both are written by the same fold, so that neither waits.
var spans = []struct {
	table string
	span  time.Duration
}{{"report_minutes", time.Minute}, {"report_hours", time.Hour}}

// everybody is the merchant under which all of them are summed up.
const everybody = 0

// Fold adds deltas to the figures, a bounded number at a time, and says how many
// it took. One node folds at a time; the others find nothing to do. The deltas are
// read and summed up before the transaction: SQLite has one writer, and callbacks
// wait for it.
func Fold(ctx context.Context, d *db.DB) (deltas int, err error) {
	var rows []struct {
		ID   int64
		Body string
	}
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
	s, err := sumUp(bodies)
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

// errFoldedElsewhere rolls back a fold that another node was quicker with.
var errFoldedElsewhere = errors.New("another node folds")

type spanKey struct{ merchant, start int64 }

type callbackKey struct {
	start, supplier int64
	outcome         string
}

type moneyKey struct {
	merchant int64
	currency string
}

// sums is what many deltas come to.
type sums struct {
	attempts  [2]map[spanKey]*Point // by spans
	callbacks map[callbackKey]int64
	untold    map[moneyKey]*Sum
	orders    map[ordersKey]*ordersRow
	last      map[int64]lastRow // by merchant
}

func sumUp(bodies []string) (*sums, error) {
	s := &sums{attempts: [2]map[spanKey]*Point{{}, {}}, callbacks: map[callbackKey]int64{}, untold: map[moneyKey]*Sum{}, orders: map[ordersKey]*ordersRow{}, last: map[int64]lastRow{}}
	for _, body := range bodies {
		var x Delta
		if err := json.Unmarshal([]byte(body), &x); err != nil {
			return nil, fmt.Errorf("read a delta: %w", err)
		}
		for _, a := range x.Attempts {
			if err := s.addAttempts(x.Minute, a); err != nil {
				return nil, err
			}
			s.addLast(a)
		}
		for _, c := range x.Callbacks {
			s.callbacks[callbackKey{x.Minute, c.Supplier, c.Outcome}] += c.N
		}
		for _, u := range x.Untolds {
			k := moneyKey{u.Merchant, u.Currency}
			if s.untold[k] == nil {
				s.untold[k] = &Sum{Currency: u.Currency}
			}
			s.untold[k].Orders += u.Orders
			s.untold[k].Minor += u.Amount
		}
		for _, o := range x.Orders {
			addOrders(s.orders, x.Minute, o)
		}
	}
	return s, nil
}

func (s *sums) addAttempts(minute int64, a attempts) error {
	took, err := parseHistogram(a.Took, a.TookLong)
	if err != nil {
		return err
	}
	lag, err := parseHistogram(a.Lag, a.LagLong)
	if err != nil {
		return err
	}
	p := Point{OK: a.Results[OK], Retried: a.Results[Retried], Failed: a.Results[Failed], TookUS: a.TookUS, Took: took, Lag: lag}
	for i, sp := range spans {
		for _, merchant := range []int64{everybody, a.Merchant} {
			k := spanKey{merchant, floor(minute, sp.span)}
			if s.attempts[i][k] == nil {
				s.attempts[i][k] = new(Point)
			}
			s.attempts[i][k].merge(p)
		}
	}
	return nil
}

func (s *sums) write(ctx context.Context, tx db.Tx) error {
	for i, sp := range spans {
		if err := addPoints(ctx, tx, sp.table, s.attempts[i]); err != nil {
			return err
		}
	}
	if len(s.callbacks) > 0 {
		rows := make([]callbackRow, 0, len(s.callbacks))
		for k, n := range s.callbacks {
			rows = append(rows, callbackRow{Start: k.start, SupplierID: k.supplier, Outcome: k.outcome, N: n})
		}
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (start, supplier_id, outcome) DO UPDATE").Set("n = rc.n + EXCLUDED.n").Exec(ctx)
		if err != nil {
			return fmt.Errorf("add callbacks: %w", err)
		}
	}
	if len(s.untold) > 0 {
		rows := make([]untoldRow, 0, len(s.untold))
		for k, u := range s.untold {
			rows = append(rows, untoldRow{MerchantID: k.merchant, Currency: k.currency, Orders: u.Orders, Amount: u.Minor})
		}
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (merchant_id, currency) DO UPDATE").
			Set("orders = ru.orders + EXCLUDED.orders").Set("amount = ru.amount + EXCLUDED.amount").Exec(ctx)
		if err != nil {
			return fmt.Errorf("add untold money: %w", err)
		}
	}
	if err := writeOrders(ctx, tx, s.orders); err != nil {
		return err
	}
	return writeLast(ctx, tx, s.last)
}

type callbackRow struct {
	bun.BaseModel `bun:"table:report_callbacks,alias:rc"`

	Start      int64  `bun:"start,pk"`
	SupplierID int64  `bun:"supplier_id,pk"`
	Outcome    string `bun:"outcome,pk"`
	N          int64  `bun:"n"`
}

type untoldRow struct {
	bun.BaseModel `bun:"table:report_untold,alias:ru"`

	MerchantID int64  `bun:"merchant_id,pk"`
	Currency   string `bun:"currency,pk"`
	Orders     int64  `bun:"orders"`
	Amount     int64  `bun:"amount"`
}

// addPoints adds to the spans' rows. Histograms are texts, so that the rows are
// read, added up here and written back; the fold's lock keeps others away.
func addPoints(ctx context.Context, tx db.Tx, table string, points map[spanKey]*Point) error {
	if len(points) == 0 {
		return nil
	}
	merchants, starts := map[int64]bool{}, map[int64]bool{}
	for k := range points {
		merchants[k.merchant], starts[k.start] = true, true
	}
	var have []row
	err := tx.NewSelect().Model(&have).ModelTableExpr("? AS row", bun.Ident(table)).
		Where("merchant_id IN (?)", bun.List(slices.Collect(maps.Keys(merchants)))).
		Where("start IN (?)", bun.List(slices.Collect(maps.Keys(starts)))).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	for _, r := range have {
		if p := points[spanKey{r.MerchantID, r.Start}]; p != nil {
			before, err := r.point()
			if err != nil {
				return err
			}
			p.merge(before)
		}
	}
	rows := make([]row, 0, len(points))
	for k, p := range points {
		rows = append(rows, row{
			MerchantID: k.merchant, Start: k.start, OK: p.OK, Retried: p.Retried, Failed: p.Failed, TookUS: p.TookUS,
			Took: text(p.Took.n[:]), TookLong: text(p.Took.long[:]), Lag: text(p.Lag.n[:]), LagLong: text(p.Lag.long[:]),
		})
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.MerchantID, y.MerchantID), cmp.Compare(x.Start, y.Start))
	})
	q := tx.NewInsert().Model(&rows).ModelTableExpr("?", bun.Ident(table)).On("CONFLICT (merchant_id, start) DO UPDATE")
	for _, column := range []string{"ok", "retried", "failed", "took_us", "took", "took_long", "lag", "lag_long"} {
		q = q.Set("? = EXCLUDED.?", bun.Ident(column), bun.Ident(column))
	}
	if _, err := q.Exec(ctx); err != nil {
		return fmt.Errorf("write %s: %w", table, err)
	}
	return nil
}

func (r row) point() (Point, error) {
	took, err := parseHistogram(r.Took, r.TookLong)
	if err != nil {
		return Point{}, err
	}
	lag, err := parseHistogram(r.Lag, r.LagLong)
	return Point{Start: r.Start, OK: r.OK, Retried: r.Retried, Failed: r.Failed, TookUS: r.TookUS, Took: took, Lag: lag}, err
}
