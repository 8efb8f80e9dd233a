package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/command/bench"
	"backstop/internal/ledger"
)

const (
	// lineDays is over how many days the lines of the long account are spread. Each day's
	// statement is requested for statementPages pages.
	lineDays       = 30
	statementPages = 10
	// lineStep is how many orders one statement adds.
	lineStep = 25_000
	// pageRows is the number of lines of a page by default, maxPageRows the largest.
	pageRows    = 50
	maxPageRows = 200
)

// longAccount measures the balance and the statement of a merchant whose account has held
// lines: the payments and the fees of half as many orders, copies of one that was paid.
func (s *subject) longAccount(ctx context.Context, d *sql.DB, held int) error {
	l, err := s.addLines(ctx, d, held)
	if err != nil {
		return err
	}
	key := s.Cast.Keys[longMerchant]
	took, err := bench.ClosedLoop(ctx, 1, lineDays*statementPages, func(int) error { return s.wantBalance(key, l.balance()) })
	if err != nil {
		return err
	}
	took = bench.Sorted(took)
	name := fmt.Sprintf("balance of an account with %d lines", 2*l.orders)
	s.Add(name+", p50", "ms", bench.MS(took.At(0.5)), 0)
	s.Add(name+", p95", "ms", bench.MS(took.At(0.95)), 10)
	goal := 100.0
	if s.DatabaseURL != "" {
		goal = 50
	}
	for _, limit := range []int{pageRows, maxPageRows} {
		took, err := s.statements(ctx, key, l, limit)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("a page of %d lines of its statement", limit)
		s.Add(name+", p50", "ms", bench.MS(took.At(0.5)), 0)
		s.Add(name+", p95", "ms", bench.MS(took.At(0.95)), goal)
	}
	return nil
}

// lines are those of the long account: of each order its payment and its fee.
type lines struct {
	orders   int
	fee      int64 // of each order
	from     time.Time
	first    int64         // id of the first order
	step     int64         // between the ids of two orders
	gap      time.Duration // between two orders
	account  int64
	merchant int64
	template int64 // the order that is copied
	others   [2]int64
	journal  int64
	columns  []string // of orders
}

func (l *lines) balance() int64 { return int64(l.orders) * (bench.Amount - l.fee) }

// addLines adds the account and its lines, and the orders that they belong to.
func (s *subject) addLines(ctx context.Context, d *sql.DB, held int) (*lines, error) {
	to := time.Now().UTC().Truncate(day)
	l := &lines{orders: max(held/2, 1), from: to.Add(-lineDays * day)}
	l.gap = max(lineDays*day/time.Duration(l.orders), time.Microsecond)
	l.first = db.IDAt(l.from.UnixMicro())
	l.step = (db.IDAt(to.UnixMicro()) - l.first) / int64(l.orders)
	// The journal and the accounts are older than their transfers.
	l.journal, l.account, l.others = l.first-1, l.first-1, [2]int64{l.first - 2, l.first - 3}
	err := d.QueryRowContext(ctx,
		"SELECT id, fee_amount FROM orders WHERE status = 'paid' AND fee_amount > 0 ORDER BY id DESC LIMIT 1").Scan(&l.template, &l.fee)
	if err != nil {
		return nil, fmt.Errorf("find a paid order with a fee: %w", err)
	}
	if err := d.QueryRowContext(ctx, "SELECT id FROM merchants WHERE code = '"+bench.MerchantCode(longMerchant)+
		"'").Scan(&l.merchant); err != nil {
		return nil, fmt.Errorf("find the merchant: %w", err)
	}
	rows, err := d.QueryContext(ctx, "SELECT * FROM orders LIMIT 0")
	if err != nil {
		return nil, fmt.Errorf("read the columns of orders: %w", err)
	}
	l.columns, err = rows.Columns()
	if err := cmp.Or(err, rows.Close()); err != nil {
		return nil, fmt.Errorf("read the columns of orders: %w", err)
	}
	if _, err := d.ExecContext(ctx, l.accounts()); err != nil {
		return nil, fmt.Errorf("add the accounts: %w", err)
	}
	if _, err := d.ExecContext(ctx, fmt.Sprintf("INSERT INTO journals (id, created_at, folded) VALUES (%d, %d, TRUE)", l.journal,
		l.from.UnixMicro())); err != nil {
		return nil, fmt.Errorf("add the journal: %w", err)
	}
	for i := 0; i < l.orders; i += lineStep {
		s.Progress("%s: %d of %d lines", s.Name, 2*i, 2*l.orders)
		for _, statement := range l.rows(i, min(i+lineStep, l.orders)) {
			if _, err := d.ExecContext(ctx, statement); err != nil {
				return nil, fmt.Errorf("add lines: %w", err)
			}
		}
	}
	statements := []string{"ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"}
	if s.DatabaseURL != "" {
		statements = []string{"VACUUM ANALYZE orders, transfers, account_lines, accounts, journals", "CHECKPOINT"}
	}
	for _, statement := range statements {
		if _, err := d.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return l, nil
}

// accounts returns the statement that adds the account with its balance, and the two accounts on
// the other side of its transfers. Those have no lines.
func (l *lines) accounts() string {
	n := int64(l.orders)
	row := func(id int64, code string, balance, credits, last int64) string {
		return fmt.Sprintf("(%d, '%s', 'CNY', %d, %d, %d, %d)", id, code, balance, credits, last, l.from.UnixMicro())
	}
	return "INSERT INTO accounts (id, code, currency, balance, credits, last_line, folded_at) VALUES " +
		strings.Join([]string{
			row(l.account, ledger.MerchantAccount(bench.MerchantCode(longMerchant)), l.balance(), n*bench.Amount, l.first+(n-1)*l.step+2),
			row(l.others[0], ledger.SupplierAccount("bench-long"), -n*bench.Amount, 0, 0),
			row(l.others[1], "income:bench-long", n*l.fee, n*l.fee, 0),
		}, ", ")
}

// rows returns the statements that add the orders from..to-1, their transfers and their lines.
func (l *lines) rows(from, to int) []string {
	values := make([]string, len(l.columns))
	id := fmt.Sprintf("(%d + n.i * %d)", l.first, l.step)
	at := fmt.Sprintf("(%d + n.i * %d)", l.from.UnixMicro(), l.gap.Microseconds())
	for i, c := range l.columns {
		switch {
		case c == "id":
			values[i] = id
		case c == "order_no":
			values[i] = "CAST(" + id + " AS TEXT)"
		case c == "merchant_id":
			values[i] = fmt.Sprint(l.merchant)
		case slices.Contains(ownedTexts, c):
			values[i] = "'long-' || n.i"
		case slices.Contains(movedAt, c):
			values[i] = "CASE WHEN t." + c + " IS NULL THEN NULL ELSE " + at + " END"
		default:
			values[i] = "t." + c
		}
	}
	numbers := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", from, to-1)
	transfer := func(offset int, ref string, debit, credit, sum int64) string {
		return fmt.Sprintf("SELECT %s + %d, %d, %d, %d, %d, 'CNY', '%s:' || %[1]s, %[8]s FROM n", id, offset, l.journal, debit, credit, sum,
			ref, at)
	}
	line := func(offset int, charged int64) string {
		return fmt.Sprintf("SELECT %d, %s + %d, %[2]s + %[3]d, (n.i + 1) * %[4]d - n.i * %[5]d - %[6]d, (n.i + 1) * %[4]d FROM n",
			l.account, id, offset, bench.Amount, l.fee, charged)
	}
	return []string{
		numbers + "INSERT INTO orders (" + strings.Join(l.columns, ", ") + ") SELECT " + strings.Join(values, ", ") +
			fmt.Sprintf(" FROM n, (SELECT * FROM orders WHERE id = %d) AS t", l.template),
		numbers + "INSERT INTO transfers (id, journal_id, debit_account, credit_account, amount, currency, ref, created_at) " +
			transfer(1, "paid", l.others[0], l.account, bench.Amount) + " UNION ALL " + transfer(2, "fee", l.account, l.others[1], l.fee),
		numbers + "INSERT INTO account_lines (account_id, id, transfer_id, balance, credits) " + line(1, 0) + " UNION ALL " +
			line(2, l.fee),
	}
}

// wantBalance requests the balance, which must be that of the lines.
func (s *subject) wantBalance(key string, want int64) error {
	var got struct {
		Items []struct{ Available int64 }
	}
	if err := s.read("/api/v1/balance", key, &got); err != nil {
		return err
	}
	if len(got.Items) != 1 || got.Items[0].Available != want {
		return fmt.Errorf("the balance is %+v, want %d", got.Items, want)
	}
	return nil
}

// statements requests the first pages of each day and returns the sorted durations.
func (s *subject) statements(ctx context.Context, key string, l *lines, limit int) (bench.Latencies, error) {
	var took bench.Latencies
	for i := 1; i < lineDays && ctx.Err() == nil; i++ { // in any time zone a day of the middle is full
		cursor := ""
		for range statementPages {
			path := fmt.Sprintf("/api/v1/statement?day=%s&currency=CNY&limit=%d", l.from.Add(time.Duration(i)*day).Format(time.DateOnly),
				limit)
			if cursor != "" {
				path += "&cursor=" + cursor
			}
			var page statementPage
			start := time.Now()
			if err := s.read(path, key, &page); err != nil {
				return nil, err
			}
			took = append(took, time.Since(start))
			if err := page.check(limit); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if page.Next == nil {
				break
			}
			cursor = *page.Next
		}
	}
	return bench.Sorted(took), ctx.Err()
}

// statementPage is what is checked of a page of the statement.
type statementPage struct {
	Items []struct {
		OrderNo string `json:"order_no"`
	}
	Next *string
}

// check reports what is missing in a page: one that is empty is read too quickly.
func (p statementPage) check(limit int) error {
	if len(p.Items) == 0 || p.Next != nil && len(p.Items) != limit {
		return fmt.Errorf("the page has %d lines, want %d", len(p.Items), limit)
	}
	for _, i := range p.Items {
		if i.OrderNo == "" {
			return errors.New("a line has no order")
		}
	}
	return nil
}

// read requests a page of the API.
func (s *subject) read(path, key string, into any) error {
	var answer []byte
	status, err := s.API.Get(path, key, func(body []byte) { answer = append(answer, body...) })
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s was answered %d %s", path, status, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}
