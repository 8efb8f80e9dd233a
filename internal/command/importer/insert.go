package importer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/payment"
)

const (
	// abandonedAfter is how long a run may be inactive before the next run treats it as
	// crashed. A page takes milliseconds.
	abandonedAfter = 10 * time.Minute
	cleanupTime    = 30 * time.Second
	cleanupRows    = 5000
)

// known has the merchants and suppliers that lines may refer to.
type known struct {
	merchants map[string]int64
	suppliers map[string]supplierIDs
}

type supplierIDs struct{ ID, AccountID int64 }

func readKnown(ctx context.Context, d *db.DB) (*known, error) {
	var merchants []struct {
		Code string
		ID   int64
	}
	if err := d.Read.NewRaw("SELECT code, id FROM merchants").Scan(ctx, &merchants); err != nil {
		return nil, fmt.Errorf("read merchants: %w", err)
	}
	var suppliers []struct {
		Code          string
		ID, AccountID int64
	}
	if err := d.Read.NewRaw("SELECT code, id, account_id FROM suppliers").Scan(ctx, &suppliers); err != nil {
		return nil, fmt.Errorf("read suppliers: %w", err)
	}
	k := &known{merchants: make(map[string]int64, len(merchants)), suppliers: make(map[string]supplierIDs, len(suppliers))}
	for _, m := range merchants {
		k.merchants[m.Code] = m.ID
	}
	for _, s := range suppliers {
		k.suppliers[s.Code] = supplierIDs{s.ID, s.AccountID}
	}
	return k, nil
}

func (r *run) begin(ctx context.Context) error {
	now := r.env.DB.Now()
	err := retry(ctx, func() error {
		_, err := r.env.DB.NewRaw("INSERT INTO import_runs (id, started_at, seen_at) VALUES (?, ?, ?)", r.id, now, now).Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin the import: %w", err)
	}
	return nil
}

// duplicates finds orders that already exist in the file or in the database. Each query returns
// the line and the problem. A mistake is reported once: for two identical lines, only order_no
// is reported.
var duplicates = []struct{ field, query string }{
	{"order_no", `SELECT s.line, 'also in line ' || CAST(s.first AS TEXT) AS problem FROM
		(SELECT line, min(line) OVER (PARTITION BY order_no) AS first FROM import_orders WHERE run_id = ?0) s
		WHERE s.line <> s.first`},
	{"out_trade_no", `SELECT s.line, 'the merchant has it in line ' || CAST(s.first AS TEXT) || ' too' AS problem FROM
		(SELECT line, order_no, first_value(line) OVER w AS first, first_value(order_no) OVER w AS first_no
			FROM import_orders WHERE run_id = ?0 WINDOW w AS (PARTITION BY merchant_id, out_trade_no ORDER BY line)) s
		WHERE s.order_no <> s.first_no`},
	{"supplier_trade_no", `SELECT s.line, 'it paid the order in line ' || CAST(s.first AS TEXT) || ' too' AS problem FROM
		(SELECT line, order_no, first_value(line) OVER w AS first, first_value(order_no) OVER w AS first_no
			FROM import_orders WHERE run_id = ?0 AND attempt_status = 'succeeded' AND supplier_trade_no <> ''
			WINDOW w AS (PARTITION BY account_id, supplier_trade_no ORDER BY line)) s
		WHERE s.order_no <> s.first_no`},
	{"order_no", `SELECT s.line, 'there is already an order with this number' AS problem
		FROM import_orders s JOIN orders o ON o.order_no = s.order_no WHERE s.run_id = ?0`},
	{"out_trade_no", `SELECT s.line, 'the merchant already has an order with this number: ' || o.order_no AS problem
		FROM import_orders s JOIN orders o ON o.merchant_id = s.merchant_id AND o.out_trade_no = s.out_trade_no
		WHERE s.run_id = ?0 AND o.order_no <> s.order_no`},
	{"order_no", `SELECT s.line, 'the supplier has another payment with this number' AS problem
		FROM import_orders s JOIN payment_attempts a ON a.account_id = s.account_id AND a.supplier_ref = s.order_no
		WHERE s.run_id = ?0 AND s.attempt_status <> '' AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_no = s.order_no)`},
	{"supplier_trade_no", `SELECT s.line, 'it has already paid another order' AS problem
		FROM import_orders s JOIN payment_attempts a ON a.account_id = s.account_id AND a.supplier_trade_no = s.supplier_trade_no
		WHERE s.run_id = ?0 AND s.attempt_status = 'succeeded' AND a.supplier_trade_no <> '' AND a.order_id <> 0 AND ` +
		payment.Moves.In("a.status", payment.Settled...) + `
		AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_no = s.order_no)`},
}

// check finds orders that already exist.
func (r *run) check(ctx context.Context) error {
	for _, t := range duplicates {
		var found []struct {
			Line    int64
			Problem string
		}
		err := r.env.DB.Read.NewRaw(t.query+" ORDER BY s.line LIMIT ?1", r.id, maxProblems+1).Scan(ctx, &found)
		if err != nil {
			return fmt.Errorf("look for existing orders: %w", err)
		}
		for _, f := range found {
			r.note(f.Line, t.field, f.Problem)
		}
	}
	if len(r.problems.Problems) > 0 {
		return &r.problems
	}
	return nil
}

// insert turns the staged rows into orders, in one transaction.
func (r *run) insert(ctx context.Context, tx db.Tx) error {
	if r.env.DB.IsPostgres() {
		// The largest file takes longer than the server's statement timeout.
		if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = '10min'"); err != nil {
			return fmt.Errorf("import orders: %w", err)
		}
	}
	res, err := tx.NewRaw("DELETE FROM import_runs WHERE id = ?", r.id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end the import: %w", err)
	}
	if n, _ := res.RowsAffected(); n != 1 {
		return errors.New("the import was inactive for so long that another one treated it as crashed: run it again")
	}
	now := r.env.DB.Now()
	n, err := order.InsertStaged(ctx, tx, r.id, now)
	if err != nil {
		return fmt.Errorf("import orders: %w", err)
	}
	if n != int64(r.rows) {
		return fmt.Errorf("only %d of %d orders were found staged: run the import again", n, r.rows)
	}
	if _, err := payment.FreeStaged(tx, r.id).Exec(ctx); err != nil {
		return fmt.Errorf("free held trade numbers: %w", err)
	}
	if err := payment.EndImported(ctx, tx, r.env.DB, r.id); err != nil {
		return fmt.Errorf("end what is open about imported payments: %w", err)
	}
	_, err = tx.NewRaw(
		"INSERT INTO payment_attempts (id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at)"+
			" SELECT attempt_id, id, account_id, order_no, supplier_trade_no, attempt_status, CASE WHEN paid_amount > 0 THEN paid_amount ELSE amount END, ?, ?"+
			" FROM import_orders WHERE run_id = ? AND attempt_status <> ''", now, now, r.id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write attempts: %w", err)
	}
	if r.rows == 0 {
		return nil
	}
	return r.env.Audit.Write(ctx, tx, audit.Act{
		Actor: audit.Command(), Action: "orders.import", Object: "file", ObjectID: filepath.Base(r.name),
		Params: map[string]any{"orders": r.rows, "sha256": hex.EncodeToString(r.sum.Sum(nil))},
	})
}

// clearAbandoned removes staged rows of crashed imports.
func clearAbandoned(ctx context.Context, d *db.DB) error {
	_, err := d.NewRaw("DELETE FROM import_runs WHERE seen_at < ?", d.Now()-abandonedAfter.Microseconds()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("clear earlier imports: %w", err)
	}
	var runs []int64
	err = d.NewRaw(
		"SELECT DISTINCT s.run_id FROM import_orders s WHERE NOT EXISTS (SELECT 1 FROM import_runs r WHERE r.id = s.run_id)").Scan(ctx,
		&runs)
	if err != nil {
		return fmt.Errorf("find earlier imports: %w", err)
	}
	for _, id := range runs {
		if err := clearRun(ctx, d, id); err != nil {
			return err
		}
	}
	return nil
}

// clearRun deletes a run and its staged rows, a bounded number at a time.
func clearRun(ctx context.Context, d *db.DB, id int64) error {
	err := retry(ctx, func() error {
		_, err := d.NewRaw("DELETE FROM import_runs WHERE id = ?", id).Exec(ctx)
		return err
	})
	var last int64
	if err == nil {
		err = d.NewRaw("SELECT coalesce(max(line), 0) FROM import_orders WHERE run_id = ?", id).Scan(ctx, &last)
	}
	// Deletion goes by ranges of lines: selecting the first rows again and again would scan
	// all deleted ones on PostgreSQL.
	for from := int64(0); err == nil && from < last; from += cleanupRows {
		err = retry(ctx, func() error {
			_, err := d.NewRaw("DELETE FROM import_orders WHERE run_id = ? AND line > ? AND line <= ?", id, from,
				from+cleanupRows).Exec(ctx)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("clear the staging table: %w", err)
	}
	return nil
}
