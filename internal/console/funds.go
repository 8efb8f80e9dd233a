package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/act"
	"backstop/internal/base/moves"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/list"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// NotEnded stands for every state of a refund, a payout or a dispute that has not ended.
const NotEnded = "open"

// fundList declares the list of refunds, payouts or disputes, with the fields by which their
// numbers are found.
func fundList[S ~string](table, alias string, states moves.Table[S], numbers ...list.Field) *list.Spec {
	all := append([]string{NotEnded}, states.Words()...)
	return list.New(list.Spec{
		Name: table,
		Sources: []list.Source{{
			Table: table, Alias: alias, Key: "id", MerchantColumn: alias + ".merchant_id",
			Money: list.Money{Minor: alias + ".amount", Currency: alias + ".currency"}, Columns: fundColumns(alias),
		}},
		Fields: append(
			numbers,
			list.Field{Name: "state", Match: matchFunds(table, alias, states), Values: all},
			list.Field{Name: "merchant", Match: alone("merchants", alias+".merchant_id"), Suggest: codes("merchants", "name")},
			list.Field{Name: "supplier", Match: alone("suppliers", alias+".supplier_id"), Suggest: codes("suppliers", "name")},
			amountField,
		),
	})
}

// fundColumns are all columns of the row, with the codes of its supplier and its merchant.
func fundColumns(alias string) string {
	return alias + ".*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = " + alias + ".supplier_id), '') AS supplier," +
		" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = " + alias + ".merchant_id), '') AS merchant"
}

func matchFunds[S ~string](table, alias string, states moves.Table[S]) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(_ context.Context, in list.Lookup, state string) (list.Match, error) {
		of := states.Open()
		if state != NotEnded {
			one, ok := states.Parse(state)
			if !ok {
				return list.Match{None: true}, nil
			}
			of = []S{one}
		}
		where := states.In(alias+".status", of...)
		return list.Match{Where: where, Indexed: len(in.Query.Terms) == 1, Candidates: func(context.Context, bun.IDB) (string, error) {
			return "SELECT * FROM " + table + " AS " + alias + " WHERE " + where, nil
		}}, nil
	}
}

// byNumber finds rows of any age by a number, for each "?" of the condition.
func byNumber(where string) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
		m := list.Match{Where: where, Indexed: true, AnyAge: true}
		for range strings.Count(where, "?") {
			m.Args = append(m.Args, no)
		}
		return m, nil
	}
}

// Behind is what proves the steps of a refund or a payout. Texts from outside are masked.
type Behind struct {
	Calls      []Call           // to the supplier, oldest first
	Entries    []ledger.Line    // oldest first
	Approval   *Approval        // nil = none was needed
	Item       *Compensation    // the newest one that makes its calls; nil = none
	Deliveries []Notified       // oldest first
	Exceptions []exception.Item // newest first
}

// Notified is a notification about something that is not an order.
type Notified struct {
	notify.Delivery
	PublicID string
}

// behindOf names what is read.
type behindOf struct {
	id, orderID, approval int64 // 0 = no order, no approval
	no, kind, supplier    string
	exceptions, refs      []string
}

// behindRows bounds the rows of each kind: the newest.
const behindRows = 100

func (b *Reader) behind(ctx context.Context, of behindOf) (d Behind, err error) {
	for _, read := range []func(context.Context, behindOf, *Behind) error{
		b.addItem, b.addFundCalls, b.addApproval, b.addFundDeliveries,
		b.addFundExceptions,
	} {
		if err := read(ctx, of, &d); err != nil {
			return d, err
		}
	}
	d.Entries, err = ledger.Lines(ctx, b.db.Read, of.refs)
	return d, err
}

func (b *Reader) addItem(ctx context.Context, of behindOf, d *Behind) error {
	var rows []compensation.Item
	err := b.db.Read.NewSelect().Model(&rows).Where("subject_id = ? AND subject_kind = ?", of.id,
		of.kind).OrderExpr("id DESC").Limit(1).Scan(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	all, err := b.withCodes(ctx, rows)
	if err == nil {
		d.Item = &all[0]
	}
	return err
}

// addFundCalls reads the calls. Without an order that leads to them, they are the calls of the
// tries of its compensations.
func (b *Reader) addFundCalls(ctx context.Context, of behindOf, d *Behind) error {
	q := b.db.Read.NewSelect().TableExpr("supplier_calls AS c").ColumnExpr("c.*, ? AS supplier", of.supplier)
	if of.orderID != 0 {
		q = q.Where("c.order_id = ? AND c.reference = ?", of.orderID, of.no)
	} else {
		q = q.Where(
			"c.id IN (SELECT ct.call_id FROM compensations AS cp JOIN compensation_tries AS ct ON ct.compensation_id = cp.id WHERE cp.subject_id = ? AND cp.subject_kind = ?)", of.id, of.kind)
	}
	if err := q.OrderExpr("c.id DESC").Limit(behindRows).Scan(ctx, &d.Calls); err != nil {
		return fmt.Errorf("read the calls of %s: %w", of.no, err)
	}
	slices.Reverse(d.Calls)
	return nil
}

// addApproval reads the decision about it, or the one that made it.
func (b *Reader) addApproval(ctx context.Context, of behindOf, d *Behind) (err error) {
	if of.approval == 0 {
		return nil
	}
	d.Approval, err = b.Approval(ctx, of.approval)
	if errors.Is(err, act.ErrNotFound) {
		return nil
	}
	return err
}

func (b *Reader) addFundDeliveries(ctx context.Context, of behindOf, d *Behind) error {
	var rows []notify.Delivery
	if err := b.db.Read.NewSelect().Model(&rows).Where("d.subject_id = ?",
		of.id).OrderExpr("d.id DESC").Limit(behindRows).Scan(ctx); err != nil {
		return fmt.Errorf("read the notifications of %s: %w", of.no, err)
	}
	slices.Reverse(rows)
	m := maskerOf(of.no)
	for i := range rows {
		m.delivery(&rows[i])
		d.Deliveries = append(d.Deliveries, Notified{rows[i], rows[i].PublicID()})
	}
	return nil
}

func (b *Reader) addFundExceptions(ctx context.Context, of behindOf, d *Behind) error {
	err := b.db.Read.NewSelect().Model(&d.Exceptions).Where("x.kind IN (?) AND x.id > ? AND x.subject = ?", bun.List(of.exceptions), of.id,
		of.no).
		OrderExpr("x.id DESC").Limit(behindRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the exceptions of %s: %w", of.no, err)
	}
	return nil
}
