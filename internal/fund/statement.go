package fund

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"

	"github.com/uptrace/bun"
)

// Balance is what a merchant has in one currency, in minor units.
type Balance struct {
	Currency  string
	Available int64 // what it may spend
	Frozen    int64
	Reserved  int64 // for disputes
}

// Balances returns a merchant's balances, ordered by currency.
func Balances(ctx context.Context, d *db.DB, merchant string) ([]Balance, error) {
	own := ledger.MerchantAccount(merchant)
	accounts, err := ledger.Current(ctx, d, "a.code IN (?)", bun.List([]string{own, own + FrozenPart, own + ReservedPart}))
	if err != nil {
		return nil, err
	}
	all := []Balance{}
	for _, a := range accounts { // by currency
		if len(all) == 0 || all[len(all)-1].Currency != a.Currency {
			all = append(all, Balance{Currency: a.Currency})
		}
		b := &all[len(all)-1]
		switch strings.TrimPrefix(a.Code, own) {
		case FrozenPart:
			b.Frozen = a.Balance
		case ReservedPart:
			b.Reserved = a.Balance
		default:
			b.Available = a.Balance
		}
	}
	return all, nil
}

// Parts of a merchant's account.
const (
	FrozenPart   = ":frozen"
	ReservedPart = ":reserved"
)

// Statement is one page of a merchant's statement in one currency, in minor units.
type Statement struct {
	Currency                          string
	Opening, Closing, Credits, Debits int64
	Items                             []Item
	Next                              int64 // cursor of the next page; 0 = this is the last
}

// Item is one line of a statement.
type Item struct {
	ID      int64
	At      int64 // Unix µs
	Kind    fact.Kind
	Ref     string
	OrderNo string // "" = no order, or not known
	Amount  int64  // negative: debited from the merchant
	Fee     int64  // charged for a payment; also a line of its own
	Balance int64  // after this line
}

// edge is an account's balance and total of credits just below an id.
type edge struct{ Balance, Credits int64 }

// StatementOf reads a page of a merchant's statement, oldest first: the lines between from and
// to, also those that are not folded yet, as in its balance. after is the last id of the previous
// page.
func StatementOf(ctx context.Context, d *db.DB, merchant, currency string, from, to time.Time, after int64, limit int) (s Statement,
	err error,
) {
	s.Currency = currency
	err = d.Snapshot(ctx, func(ctx context.Context, q bun.IDB) error {
		a := new(ledger.Account)
		err := q.NewSelect().Model(a).Where("a.code = ?", ledger.MerchantAccount(merchant)).Where("a.currency = ?", currency).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an account: %w", err)
		}
		tails, err := ledger.Tails(ctx, q, []ledger.Account{*a})
		if err != nil {
			return err
		}
		tail := tails[a.ID]
		low, high := db.IDAt(from.UnixMicro()), db.IDAt(to.UnixMicro())
		first, err := before(ctx, q, a, tail, low)
		if err != nil {
			return err
		}
		last, err := before(ctx, q, a, tail, high)
		if err != nil {
			return err
		}
		s.Opening, s.Closing, s.Credits = first.Balance, last.Balance, last.Credits-first.Credits
		s.Debits = s.Opening + s.Credits - s.Closing
		return s.page(ctx, q, a, tail, max(low, after+1), high, limit)
	})
	return s, err
}

// before returns the account's edge below an id. tail is what is not folded yet.
func before(ctx context.Context, q bun.IDB, a *ledger.Account, tail []ledger.TailLine, id int64) (e edge, err error) {
	if n := below(tail, id); n > 0 {
		return edge{tail[n-1].Balance, tail[n-1].Credits}, nil
	}
	err = q.NewRaw("SELECT l.balance, l.credits FROM account_lines AS l WHERE l.account_id = ? AND l.id < ? ORDER BY l.id DESC LIMIT 1",
		a.ID, id).Scan(ctx, &e)
	if errors.Is(err, sql.ErrNoRows) {
		return edge{}, nil
	} else if err != nil {
		return e, fmt.Errorf("read a balance: %w", err)
	}
	return e, nil
}

// below returns the number of lines below an id.
func below(tail []ledger.TailLine, id int64) int {
	n, _ := slices.BinarySearchFunc(tail, id, func(l ledger.TailLine, id int64) int { return cmp.Compare(l.ID, id) })
	return n
}

// lineRow is a line as read.
type lineRow struct {
	ID, At, Amount, Balance int64
	Ref                     string
}

func (s *Statement) page(ctx context.Context, q bun.IDB, a *ledger.Account, tail []ledger.TailLine, low, high int64, limit int) error {
	var rows []lineRow
	err := q.NewRaw(
		"SELECT l.id, t.created_at AS at, CASE WHEN t.credit_account = l.account_id THEN t.amount ELSE -t.amount END AS amount, l.balance, t.ref"+
			" FROM account_lines AS l JOIN transfers AS t ON t.id = l.transfer_id WHERE l.account_id = ? AND l.id >= ? AND l.id < ? ORDER BY l.id LIMIT ?",
		a.ID, low, high, limit+1).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read a statement: %w", err)
	}
	for _, l := range tail[below(tail, low):below(tail, max(low, high))] {
		if len(rows) > limit {
			break
		}
		r := lineRow{ID: l.ID, At: l.CreatedAt, Amount: -l.Amount, Balance: l.Balance, Ref: l.Ref}
		if l.CreditAccount == a.ID {
			r.Amount = l.Amount
		}
		rows = append(rows, r)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		s.Next = rows[limit-1].ID
	}
	var fees []string
	refunds := map[string][]int{} // the items of each refund, by its id
	for _, r := range rows {
		it := Item{ID: r.ID, At: r.At, Ref: r.Ref, Amount: r.Amount, Balance: r.Balance}
		if row, id, ok := fact.Of(r.Ref, r.Amount > 0); ok {
			it.Kind = row.Kind
			if row.Fact == fact.Paid || row.Fact == fact.Fee {
				it.OrderNo = id
			} else if strings.HasPrefix(row.Ref, "refund:") {
				refunds[id] = append(refunds[id], len(s.Items))
			}
			if row.Fact == fact.Paid {
				fees = append(fees, fact.Ref(fact.Fee, fact.Values{ID: id}))
			}
		}
		s.Items = append(s.Items, it)
	}
	lines, err := ledger.Lines(ctx, q, fees)
	if err != nil {
		return err
	}
	charged := map[string]int64{}
	for _, l := range lines {
		charged[l.Ref] = l.Amount
	}
	for i := range s.Items {
		if it := &s.Items[i]; it.Kind == fact.KindPayment {
			it.Fee = charged[fact.Ref(fact.Fee, fact.Values{ID: it.OrderNo})]
		}
	}
	if err := s.orders(ctx, q); err != nil {
		return err
	}
	return s.refunds(ctx, q, refunds)
}

// refunds fills in the order numbers of refunds.
func (s *Statement) refunds(ctx context.Context, q bun.IDB, items map[string][]int) error {
	if len(items) == 0 {
		return nil
	}
	var ids []int64
	for id := range items {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			ids = append(ids, n)
		}
	}
	var rows []struct{ ID, OrderNo string }
	if err := q.NewRaw("SELECT CAST(r.id AS TEXT) AS id, r.order_no FROM refunds AS r WHERE r.id IN (?)", bun.List(ids)).Scan(ctx,
		&rows); err != nil {
		return fmt.Errorf("read the refunds of a statement: %w", err)
	}
	for _, r := range rows {
		for _, i := range items[r.ID] {
			s.Items[i].OrderNo = r.OrderNo
		}
	}
	return nil
}

// orders replaces order ids with order numbers.
func (s *Statement) orders(ctx context.Context, q bun.IDB) error {
	var ids []int64
	for _, it := range s.Items {
		if id, err := strconv.ParseInt(it.OrderNo, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		ID      int64
		OrderNo string
	}
	if err := q.NewRaw("SELECT o.id, o.order_no FROM orders AS o WHERE o.id IN (?)", bun.List(ids)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the orders of a statement: %w", err)
	}
	nos := map[string]string{}
	for _, r := range rows {
		nos[strconv.FormatInt(r.ID, 10)] = r.OrderNo
	}
	for i := range s.Items {
		s.Items[i].OrderNo = nos[s.Items[i].OrderNo]
	}
	return nil
}

// Day returns the start and the end of a calendar day, such as 2026-11-21, in a time zone.
func Day(text string, zone *time.Location) (from, to time.Time, err error) {
	from, err = calendar.ParseDay(text, zone)
	if err != nil {
		return from, to, fmt.Errorf("use a date such as %s", time.Now().In(zone).Format(time.DateOnly))
	}
	return from, calendar.DayStart(from, 1), nil
}
