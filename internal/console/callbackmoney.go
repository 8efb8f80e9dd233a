package console

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/callback"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// CallbackMoney is what a callback says was paid, and the amount of its order.
type CallbackMoney struct {
	// Minor is what a message about a payment says was paid; Currency "" = it is not known.
	Minor    int64
	Currency string
	// OrderMinor is the amount of its order; OrderCurrency "" = it has none.
	OrderMinor    int64
	OrderCurrency string
}

// callbackMoneySQL reads what callbacks say was paid. A repeat says what the message said that it
// repeats, which has its key and its digest.
const callbackMoneySQL = "SELECT r.id, f.outcome, f.steps, COALESCE(o.amount, 0) AS order_minor, COALESCE(o.paid_amount, 0) AS paid_minor," +
	" COALESCE(o.currency, '') AS order_currency, COALESCE(x.amount, 0) AS exception_minor, COALESCE(x.currency, '') AS exception_currency" +
	" FROM (SELECT c.id, COALESCE((SELECT min(b.id) FROM callbacks AS b WHERE c.outcome = ?1 AND b.order_no = c.order_no AND b.order_no <> ''" +
	" AND b.event_key = c.event_key AND b.digest = c.digest AND b.outcome <> c.outcome), c.id) AS first FROM callbacks AS c WHERE c.id IN (?0)) AS r" +
	" JOIN callbacks AS f ON f.id = r.first LEFT JOIN orders AS o ON o.id = f.order_id" +
	" LEFT JOIN exceptions AS x ON x.id = (SELECT max(e.id) FROM exceptions AS e" +
	" WHERE e.order_no = f.order_no AND e.order_no <> '' AND e.kind = f.outcome AND e.subject = f.trade_no)"

// callbackMoney reads the money of authentic callbacks, by id: an exception has what the message said,
// or else it passed the comparison with the order's amount, or with what paid the order.
func (b *Reader) callbackMoney(ctx context.Context, ids []int64) (map[int64]CallbackMoney, error) {
	var rows []struct {
		ID                                    int64
		Outcome                               string
		Steps                                 supplier.Steps
		OrderMinor, PaidMinor, ExceptionMinor int64
		OrderCurrency, ExceptionCurrency      string
	}
	if err := b.db.Read.NewRaw(callbackMoneySQL, bun.List(ids), payment.Repeat).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the amounts of callbacks: %w", err)
	}
	all := make(map[int64]CallbackMoney, len(rows))
	for _, r := range rows {
		m := CallbackMoney{OrderMinor: r.OrderMinor, OrderCurrency: r.OrderCurrency}
		switch passed := func(check func(supplier.Step) bool) bool { return slices.ContainsFunc(r.Steps, check) }; {
		case r.ExceptionCurrency != "":
			m.Minor, m.Currency = r.ExceptionMinor, r.ExceptionCurrency
		case passed(func(s supplier.Step) bool { return s.Name == payment.AmountStep && s.OK }):
			m.Minor, m.Currency = r.OrderMinor, r.OrderCurrency
		case passed(func(s supplier.Step) bool { return s.Code == payment.SameTrade }):
			m.Minor, m.Currency = r.PaidMinor, r.OrderCurrency
		}
		all[r.ID] = m
	}
	return all, nil
}

// addCallbackMoney adds their amounts to the rows of a list.
func (b *Reader) addCallbackMoney(ctx context.Context, rows []callback.Row) error {
	var ids []int64
	for _, r := range rows {
		if !callback.IsRefusal(r.Outcome) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	paid, err := b.callbackMoney(ctx, ids)
	for i := range rows {
		m := paid[rows[i].ID]
		rows[i].Minor, rows[i].Currency = m.Minor, m.Currency
	}
	return err
}
