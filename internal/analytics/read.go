package analytics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/report"
)

// reader reads a page.
type reader struct {
	d      *db.DB
	p      *Page
	before []int64 // the steps a week before; nil = not compared
}

// figures reads all but the exceptions.
func (q *reader) figures(ctx context.Context) error {
	for _, read := range []func(context.Context) error{q.first, q.orders, q.waits, q.causes, q.flows} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rows is the condition for the rows of the range, and of the one a week before.
func (q *reader) rows() (where string, args []any) {
	where, args = "span_s = ? AND start >= ? AND start <= ?", []any{q.spanS(), q.p.Starts[0], q.p.At}
	if q.before == nil {
		return where, args
	}
	// As one list: each part is found by the primary key.
	return "(" + where + " OR span_s = ? AND start >= ? AND start < ?)",
		append(args, q.spanS(), q.before[0], min(q.p.Starts[0], q.weekAgo()+1))
}

// weekAgo returns where the range a week before ends. Days end at the same time of day, whatever
// their length: 168 hours before the end of a day of 25 hours, the next day has begun.
func (q *reader) weekAgo() int64 {
	if q.p.Range.Days() {
		return calendar.AddDays(time.UnixMicro(q.p.At).In(q.p.Zone), -7).UnixMicro()
	}
	return q.p.At - 7*day.Microseconds()
}

// step returns the SQL for the start of a row's step: days are joined when they are read.
func (q *reader) step() string {
	if q.p.Range.Days() {
		return "start"
	}
	return fmt.Sprintf("start - start %% %d", q.p.Range.Step.Microseconds())
}

func (q *reader) spanS() int64 { return int64(q.p.Range.span() / time.Second) }

// each calls add with the step of a time, in the range and in the one a week before. The last
// step of last week ends where the current one is now, so that equal times are compared.
func (q *reader) each(us int64, now, before func(i int)) {
	if i, ok := at(q.p.Starts, us); ok {
		now(i)
	}
	if q.before == nil || before == nil || us > q.weekAgo() {
		return
	}
	if i, ok := at(q.before, us); ok {
		before(i)
	}
}

func (q *reader) first(ctx context.Context) error {
	var first []int64
	err := q.d.Read.NewRaw("SELECT start FROM report_orders WHERE span_s = 86400 ORDER BY start LIMIT 1").Scan(ctx, &first)
	if err != nil {
		return fmt.Errorf("read the first day of figures: %w", err)
	}
	if len(first) > 0 {
		q.p.First = first[0]
	}
	return nil
}

func (q *reader) orders(ctx context.Context) error {
	p := q.p
	p.Notified, p.LastWeek, p.Money = make([]Notified, p.Range.N), make([]Notified, p.Range.N), make([]Notified, p.Range.N)
	where, args := q.rows()
	var rows []struct {
		At                                             int64
		Currency                                       string
		Raised, RaisedAmount, Notified, NotifiedAmount int64
	}
	err := q.d.Read.NewRaw("SELECT "+q.step()+
		" AS at, currency, CAST(sum(raised) AS BIGINT) AS raised, CAST(sum(raised_amount) AS BIGINT) AS raised_amount,"+
		" CAST(sum(notified) AS BIGINT) AS notified, CAST(sum(notified_amount) AS BIGINT) AS notified_amount"+
		" FROM report_orders WHERE "+where+" GROUP BY 1, 2", args...).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read orders notified: %w", err)
	}
	money := map[string][]Notified{}
	for _, r := range rows {
		n := Notified{r.Raised, r.Notified, r.RaisedAmount, r.NotifiedAmount}
		q.each(r.At, func(i int) {
			p.Notified[i].add(n)
			p.Total.add(n)
			if money[r.Currency] == nil {
				money[r.Currency] = make([]Notified, p.Range.N)
			}
			money[r.Currency][i].add(n)
		}, func(i int) { p.LastWeek[i].add(n) })
	}
	for code, steps := range money {
		c := Currency{Code: code}
		for _, n := range steps {
			c.add(n)
		}
		p.Currencies = append(p.Currencies, c)
	}
	slices.SortFunc(p.Currencies, func(a, b Currency) int {
		return cmp.Or(cmp.Compare(b.Raised, a.Raised), cmp.Compare(a.Code, b.Code))
	})
	if len(p.Currencies) > 0 {
		p.Currency = p.Currencies[0].Code
		p.Money = money[p.Currency]
	}
	return nil
}

func (q *reader) waits(ctx context.Context) error {
	p := q.p
	where, args := q.rows()
	var rows []struct{ At, Bucket, Orders int64 }
	err := q.d.Read.NewRaw("SELECT "+q.step()+" AS at, bucket, CAST(sum(orders) AS BIGINT) AS orders FROM report_waits"+
		" WHERE "+where+" GROUP BY 1, 2", args...).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read how long orders waited: %w", err)
	}
	p.Waits, p.WaitsBefore = make([]report.Histogram, p.Range.N), make([]report.Histogram, p.Range.N)
	for _, r := range rows {
		if r.Bucket < 0 || r.Bucket >= int64(len(report.Histogram{})) {
			continue // of a later version
		}
		q.each(r.At, func(i int) { p.Waits[i][r.Bucket] += r.Orders }, func(i int) { p.WaitsBefore[i][r.Bucket] += r.Orders })
	}
	return nil
}

// newWithin is for how long a cause is new.
const newWithin = 7 * day

func (q *reader) causes(ctx context.Context) error {
	p := q.p
	where, args := q.rows()
	var rows []struct {
		At                       int64
		Class, Currency          string
		Attempts, Orders, Amount int64
	}
	err := q.d.Read.NewRaw("SELECT "+q.step()+
		" AS at, class, currency, CAST(sum(attempts) AS BIGINT) AS attempts, CAST(sum(orders) AS BIGINT) AS orders,"+
		" CAST(sum(amount) AS BIGINT) AS amount FROM report_failures WHERE "+where+" GROUP BY 1, 2, 3", args...).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the causes of failures: %w", err)
	}
	p.FailedBefore = make([]int64, p.Range.N)
	by := map[string]*Cause{}
	for _, r := range rows {
		c := by[r.Class]
		if c == nil {
			c = &Cause{Class: r.Class, Steps: make([]int64, p.Range.N)}
			by[r.Class] = c
		}
		q.each(r.At, func(i int) {
			c.Steps[i] += r.Attempts
			c.Attempts += r.Attempts
			c.Orders += r.Orders
			c.Sums = addSum(c.Sums, report.Sum{Currency: r.Currency, Orders: r.Orders, Minor: r.Amount})
		}, func(i int) {
			c.Before += r.Attempts
			p.FailedBefore[i] += r.Attempts
		})
	}
	// A cause is new only where there were figures before it.
	var known []struct {
		Class string
		First int64
	}
	if err := q.d.Read.NewRaw("SELECT class, min(start) AS first FROM report_failures WHERE span_s = 86400 GROUP BY class").Scan(ctx,
		&known); err != nil {
		return fmt.Errorf("read since when causes are known: %w", err)
	}
	for _, k := range known {
		c := by[k.Class]
		if c == nil || p.First == 0 || k.First <= p.First || k.First < p.At-newWithin.Microseconds() {
			continue
		}
		var fine []int64
		if err := q.d.Read.NewRaw(
			"SELECT start FROM report_failures WHERE span_s = 300 AND start >= ? AND class = ? ORDER BY start LIMIT 1", k.First,
			k.Class).Scan(ctx, &fine); err != nil {
			return fmt.Errorf("read since when a cause is known: %w", err)
		}
		if c.NewSince = k.First; len(fine) > 0 {
			c.NewSince = fine[0]
		}
	}
	for _, c := range by {
		if c.Attempts > 0 {
			p.Causes = append(p.Causes, *c)
		}
	}
	slices.SortFunc(p.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), cmp.Compare(a.Class, b.Class))
	})
	return nil
}

// addSum adds to the sum of the same currency; orders without money count nowhere.
func addSum(sums []report.Sum, m report.Sum) []report.Sum {
	if m.Currency == "" || m.Orders == 0 && m.Minor == 0 {
		return sums
	}
	s := report.Standing{Sums: sums}
	s.Add(m)
	return s.Sums
}

// flowsRead bounds the merchants and suppliers read, those with the most orders first.
const flowsRead = 200

func (q *reader) flows(ctx context.Context) error {
	p := q.p
	span := max(p.Range.span(), time.Hour)
	for _, of := range []struct {
		column, table, name string
		to                  *[]Flow
	}{{"merchant_id", "merchants", "name", &p.Merchants}, {"supplier_id", "suppliers", "kind", &p.Suppliers}} {
		read := func(from, to int64) (rows []struct {
			ID            int64
			Currency      string
			Created, Paid int64
			PaidAmount    int64
		}, err error,
		) {
			err = q.d.Read.NewRaw("SELECT "+of.column+
				" AS id, currency, CAST(sum(created) AS BIGINT) AS created, CAST(sum(paid) AS BIGINT) AS paid,"+
				" CAST(sum(paid_amount) AS BIGINT) AS paid_amount FROM report_volume WHERE span_s = ? AND start >= ? AND start <= ? GROUP BY 1, 2",
				int64(span/time.Second), from, to).Scan(ctx, &rows)
			return rows, err
		}
		rows, err := read(p.Starts[0], p.At)
		if err != nil {
			return fmt.Errorf("read the volume of %s: %w", of.table, err)
		}
		by := map[int64]*Flow{}
		for _, r := range rows {
			if by[r.ID] == nil {
				by[r.ID] = &Flow{ID: r.ID}
			}
			f := by[r.ID]
			f.Created, f.Paid = f.Created+r.Created, f.Paid+r.Paid
			f.Sums = addSum(f.Sums, report.Sum{Currency: r.Currency, Orders: r.Paid, Minor: r.PaidAmount})
		}
		if q.before != nil {
			if rows, err = read(q.before[0], q.weekAgo()); err != nil {
				return fmt.Errorf("read last week's volume of %s: %w", of.table, err)
			}
			for _, r := range rows {
				if f := by[r.ID]; f != nil {
					f.Before, f.PaidBefore = f.Before+r.Created, f.PaidBefore+r.Paid
				}
			}
		}
		all := make([]Flow, 0, len(by))
		for _, f := range by {
			all = append(all, *f)
		}
		slices.SortFunc(all, func(a, b Flow) int { return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID)) })
		*of.to = all[:min(len(all), flowsRead)]
		if err := q.names(ctx, of.table, of.name, *of.to); err != nil {
			return err
		}
	}
	return nil
}

// names reads the codes and names of merchants or suppliers.
func (q *reader) names(ctx context.Context, table, name string, flows []Flow) error {
	var rows []struct {
		ID         int64
		Code, Name string
	}
	if err := q.d.Read.NewRaw("SELECT id, code, "+name+" AS name FROM "+table).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the names of %s: %w", table, err)
	}
	for i := range flows {
		for _, r := range rows {
			if r.ID == flows[i].ID {
				flows[i].Code, flows[i].Name = r.Code, r.Name
			}
		}
	}
	return nil
}
