package importer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/comparison"
	"backstop/internal/order"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Compare compares a file of JSON lines, as Import reads it, with the orders here: whether each is paid,
// unpaid for good or open, and the amount and the supplier's number of what was paid. Nothing is
// written. Each difference is passed on as it is found. The error of an invalid file is *apply.Invalid.
func Compare(ctx context.Context, d *db.DB, name string, in io.Reader, differs func(comparison.Difference) error) (comparison.Counts, error) {
	c := &comparing{db: d, name: name, seen: map[string]bool{}, first: math.MaxInt64, differs: differs}
	if err := eachLine(name, in, c.note, func(number int64, text []byte) error { return c.line(ctx, number, text) }); err != nil {
		return c.counts, err
	}
	if len(c.problems.Problems) > 0 {
		return c.counts, &c.problems
	}
	if err := c.page(ctx); err != nil {
		return c.counts, err
	}
	return c.counts, c.onlyHere(ctx)
}

// comparing is one comparison.
type comparing struct {
	db          *db.DB
	name        string
	differs     func(comparison.Difference) error
	problems    apply.Invalid
	seen        map[string]bool         // the order numbers of the file
	there       []comparison.Difference // the lines of a page, without what is here
	first, last int64                   // when the orders of the file were created here, Unix µs
	counts      comparison.Counts
}

func (c *comparing) note(line int64, field, problem string) {
	note(&c.problems, c.name, line, field, problem)
}

func (c *comparing) line(ctx context.Context, number int64, text []byte) error {
	r := reading{note: func(field, problem string) { c.note(number, field, problem) }}
	if err := supplier.DecodeConfig(text, &r.line); err != nil {
		if f := supplier.AsField(err); f != nil {
			c.note(number, f.Field, f.Problem)
		} else {
			c.note(number, "", "not one JSON object")
		}
		return nil
	}
	x := comparison.Difference{OrderNo: r.number("order_no", r.OrderNo, true), There: comparison.Outcome{Status: r.Status}}
	if !slices.Contains(order.Statuses, order.Status(r.Status)) {
		c.note(number, "status", "use pending, paying, closing, paid, failed or closed")
	}
	if amount := r.whole("amount", r.Amount, 0, money.MaxMinor, 0); r.Status == string(order.Paid) {
		x.There.PaidAmount = cmp.Or(r.whole("paid_amount", r.PaidAmount, 0, money.MaxMinor, 0), amount)
		x.There.TradeNo = r.number("supplier_trade_no", r.SupplierTradeNo, false)
		if x.There.PaidAmount == 0 {
			c.note(number, "paid_amount", "missing: a whole number of minor units")
		}
	}
	switch {
	case c.seen[x.OrderNo]:
		c.note(number, "order_no", "twice in the file")
	case len(c.seen) == maxLines:
		c.note(number, "", fmt.Sprintf("more than %d orders in one file: split it", maxLines))
	}
	if len(c.problems.Problems) > 0 {
		if c.problems.More > maxLines {
			return &c.problems // this is not a file of orders
		}
		return ctx.Err()
	}
	c.seen[x.OrderNo], c.there = true, append(c.there, x)
	if len(c.there) < pageRows {
		return nil
	}
	return c.page(ctx)
}

// outcomeRow is an order here.
type outcomeRow struct {
	OrderNo   string `bun:"order_no"`
	CreatedAt int64  `bun:"created_at"`
	Status    string `bun:"status"`
	Paid      int64  `bun:"paid_amount"`
	TradeNo   string `bun:"supplier_trade_no"`
}

func (r *outcomeRow) outcome() comparison.Outcome {
	return comparison.Outcome{Status: r.Status, PaidAmount: r.Paid, TradeNo: r.TradeNo}
}

const outcomeColumns = "SELECT order_no, created_at, status, paid_amount, supplier_trade_no FROM orders"

// page compares the lines of a page.
func (c *comparing) page(ctx context.Context) error {
	if len(c.there) == 0 {
		return nil
	}
	nos := make([]string, len(c.there))
	for i, x := range c.there {
		nos[i] = x.OrderNo
	}
	var rows []outcomeRow
	if err := c.db.Read.NewRaw(outcomeColumns+" WHERE order_no IN (?)", bun.List(nos)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the orders to compare: %w", err)
	}
	here := make(map[string]comparison.Outcome, len(rows))
	for _, r := range rows {
		here[r.OrderNo] = r.outcome()
		c.first, c.last = min(c.first, r.CreatedAt), max(c.last, r.CreatedAt)
	}
	for _, x := range c.there {
		x.Here = here[x.OrderNo]
		switch {
		case x.Here.Status == "":
			c.counts.OnlyThere++
		case x.Here.Agrees(x.There):
			c.counts.Same++
			continue
		default:
			c.counts.Differ++
		}
		if err := c.differs(x); err != nil {
			return err
		}
	}
	c.there = c.there[:0]
	return nil
}

// onlyHere finds what was paid here and is not in the file.
func (c *comparing) onlyHere(ctx context.Context) error {
	for after := ""; ; {
		var rows []outcomeRow
		err := c.db.Read.NewRaw(outcomeColumns+" WHERE status = ? AND created_at BETWEEN ? AND ? AND order_no > ? ORDER BY order_no LIMIT ?",
			order.Paid, c.first, c.last, after, pageRows).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("read the paid orders to compare: %w", err)
		}
		for _, r := range rows {
			after = r.OrderNo
			if c.seen[r.OrderNo] {
				continue
			}
			c.counts.OnlyHere++
			if err := c.differs(comparison.Difference{OrderNo: r.OrderNo, Here: r.outcome()}); err != nil {
				return err
			}
		}
		if len(rows) < pageRows {
			return nil
		}
	}
}
