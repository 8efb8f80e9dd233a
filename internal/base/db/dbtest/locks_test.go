package dbtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

// A transaction that locks against the order is found however it sends its statements, and one
// that keeps the order is not.
func TestLocksAgainstTheOrderAreFound(t *testing.T) {
	t.Parallel()
	d, locks, _ := dbtest.WatchedPostgres(t, "orders", "refunds", "supplier_accounts", "accounts")
	raw := func(all ...string) func(context.Context, db.Tx) error {
		return func(ctx context.Context, tx db.Tx) error {
			for _, text := range all {
				if _, err := tx.NewRaw(text).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	const order7, order9 = "SELECT id FROM orders WHERE id = 7 FOR UPDATE", "SELECT id FROM orders WHERE id = 9 FOR UPDATE"
	const refund, account = "SELECT id FROM refunds AS rf WHERE rf.id = 1 FOR UPDATE", `UPDATE "accounts" SET balance = 0 WHERE "id" = 1`
	type row struct{ OrderID, Amount int64 }
	type delta struct {
		bun.BaseModel `bun:"table:report_deltas"`

		ID   int64
		Body string
	}
	each := func(ids ...int64) func(context.Context, db.Tx) error {
		return func(ctx context.Context, tx db.Tx) error {
			w, list := tx.Writes(), []row{}
			for _, id := range ids {
				list = append(list, row{OrderID: id})
			}
			w.GuardEach(&list, "UPDATE orders AS o SET refunded_amount = _v.amount FROM _v WHERE o.id = _v.order_id")
			if err := w.Exec(ctx); !errors.Is(err, db.ErrStale) { // there are no such orders
				return err
			}
			return nil
		}
	}
	read := func(text string, ids ...int64) func(context.Context, db.Tx) error {
		return func(ctx context.Context, tx db.Tx) error {
			r := tx.Reads()
			r.Add(func(db.Row) error { return nil }, text, ids)
			return r.Exec(ctx)
		}
	}
	prepared := func(ctx context.Context, tx db.Tx) error {
		var ids []int64
		list := []row{{OrderID: 9}}
		return tx.Prepared(ctx, &ids, "WITH _v ? SELECT o.id FROM orders o JOIN _v ON o.id = _v.order_id ORDER BY o.id FOR UPDATE",
			bulk.Each(&list))
	}
	for name, c := range map[string]struct {
		all  []func(context.Context, db.Tx) error
		want string // "" = nothing is wrong
	}{
		"in order": {[]func(context.Context, db.Tx) error{raw(order7, order9, refund, account)}, ""},
		"again":    {[]func(context.Context, db.Tx) error{raw(order9, refund, order9), each(9)}, ""},
		"a new row": {[]func(context.Context,
			db.Tx) error{raw(account, "INSERT INTO supplier_accounts (id, name) VALUES (5, 'new')",
			"UPDATE supplier_accounts SET name = 'newer' WHERE id = 5")}, ""},
		"without waiting": {[]func(context.Context,
			db.Tx) error{raw(account, "SELECT id FROM orders WHERE id = 7 FOR UPDATE SKIP LOCKED")}, ""},
		"an order after a refund": {
			[]func(context.Context, db.Tx) error{raw(refund, order7)},
			"orders after refunds: SELECT id FROM orders WHERE id = ? FOR UPDATE",
		},
		"a refund after a balance": {[]func(context.Context, db.Tx) error{raw(account, refund)}, "refunds after accounts"},
		"a greater id first":       {[]func(context.Context, db.Tx) error{raw(order9, order7)}, "rows of orders not by id"},
		"in one write":             {[]func(context.Context, db.Tx) error{each(9, 7)}, "rows of orders not by id: WITH _v"},
		"a write later":            {[]func(context.Context, db.Tx) error{raw(order9), each(7)}, "rows of orders not by id: WITH _v"},
		"joined in one statement": {[]func(context.Context, db.Tx) error{raw(account), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			w.Insert(&[]delta{{ID: 5, Body: "{}"}}, "")
			w.GuardEach(&[]row{{OrderID: 9}}, "UPDATE orders AS o SET refunded_amount = _v.amount FROM _v WHERE o.id = _v.order_id")
			if err := w.Exec(ctx); !errors.Is(err, db.ErrStale) {
				return err
			}
			return nil
		}}, "orders after accounts: WITH w0"},
		"a pipelined read": {[]func(context.Context, db.Tx) error{
			read("SELECT id FROM orders WHERE id IN (?) ORDER BY id FOR UPDATE", 7, 9),
			read("SELECT id FROM orders WHERE id IN (?) ORDER BY id FOR UPDATE", 5),
		}, "rows of orders not by id"},
		"in no order": {[]func(context.Context, db.Tx) error{read("SELECT id FROM orders WHERE merchant_id IN (?) FOR UPDATE",
			1)}, "rows of orders in no order"},
		"a prepared query": {[]func(context.Context, db.Tx) error{raw(refund), prepared}, "orders after refunds: WITH _v"},
		"a conflict": {
			[]func(context.Context,
				db.Tx) error{raw(account, "INSERT INTO supplier_accounts (id, name) VALUES (6, 'x') ON CONFLICT DO NOTHING")},
			"supplier_accounts after accounts: INSERT",
		},
		"it changes what was there": {
			[]func(context.Context,
				db.Tx) error{raw(account,
				"INSERT INTO supplier_accounts (id, name) VALUES (6, 'x') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name")},
			"supplier_accounts after accounts: INSERT",
		},
		"another's row": {[]func(context.Context,
			db.Tx) error{raw(account, "INSERT INTO supplier_accounts (id, name) VALUES (5, 'new')",
			"UPDATE supplier_accounts SET name = 'newer' WHERE id = 6")}, "supplier_accounts after accounts: UPDATE"},
		"a query in a change": {
			[]func(context.Context,
				db.Tx) error{raw(refund, "UPDATE deliveries SET id = id WHERE subject_id IN (SELECT id FROM orders WHERE id = 7 FOR UPDATE)")},
			"orders after refunds: UPDATE deliveries",
		},
		"one transaction each": {[]func(context.Context, db.Tx) error{raw(refund)}, ""},
	} {
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			for _, run := range c.all {
				if err := run(ctx, tx); err != nil {
					return err
				}
			}
			return errRollback
		})
		if !errors.Is(err, errRollback) {
			t.Fatalf("%s: %v", name, err)
		}
		found := locks.Broken()
		switch {
		case c.want == "" && len(found) > 0, c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)):
			t.Errorf("%s: %q, want %q", name, found, c.want)
		}
	}
	if got := locks.Locked(); got["orders"] == 0 || got["accounts"] == 0 {
		t.Errorf("locked: %v", got)
	}
}

var errRollback = errors.New("roll back")
