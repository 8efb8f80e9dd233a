package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/alert"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/report"
	"backstop/internal/supplier"
)

// Matter is what a line of what needs an operator is about.
type Matter string

// Matters.
const (
	MatterExceptions Matter = "exceptions"  // of one kind
	MatterBreaker    Matter = "breaker"     // one merchant's, open, without an incident
	MatterSupplier   Matter = "supplier"    // a silent one without an incident
	MatterUnreached  Matter = "unreachable" // a supplier whose breaker is open, without an incident
	MatterApprovals  Matter = "approvals"   // proposals waiting for a second person
	MatterIncident   Matter = "incident"    // one that runs, or ended a while ago
)

// Todo is one line of work for an operator.
type Todo struct {
	Matter
	Kind       string // of exceptions, or the rule of an incident
	ID         int64  // of the merchant or supplier
	Code, Name string // of the merchant or supplier; the subject of an incident
	Count      int64  // exceptions, proposals, firings of an incident; for a breaker, the orders that wait
	Waits      int64  // of an incident about a recipient's breaker, the orders that wait
	More       bool   // there are more than were counted
	Sums       []report.Sum
	Oldest     int64            // Unix µs
	Next       *dispute.Dispute // of disputes, the one whose evidence is due next; nil = none is
	Flow       *report.Flow     // of a supplier
	Silent     time.Duration
	Proposals  Waiting // who may decide them depends on the viewer
	Incident   *alert.Incident
}

// Several reports whether the line stands for several items, so that Oldest is that of the
// oldest.
func (t Todo) Several() bool {
	return t.Matter == MatterExceptions || t.Matter == MatterApprovals && t.Count > 1
}

// todoRows bounds the count of one kind.
const todoRows = 1000

// byMoney sorts by money, descending. Amounts in two currencies cannot be compared: currencies
// are ranked by the number of lines with money in them, and each line is sorted by the
// highest-ranked of its currencies. Lines without money come last, in their original order.
func byMoney(all []Todo) {
	lines := map[string]int{}
	for _, t := range all {
		for _, s := range t.Sums {
			lines[s.Currency]++
		}
	}
	earlier := func(a, b report.Sum) int {
		return cmp.Or(cmp.Compare(lines[b.Currency], lines[a.Currency]), cmp.Compare(a.Currency, b.Currency))
	}
	for _, t := range all {
		slices.SortFunc(t.Sums, earlier)
	}
	slices.SortStableFunc(all, func(x, y Todo) int {
		if len(x.Sums) == 0 || len(y.Sums) == 0 {
			return min(1, len(y.Sums)) - min(1, len(x.Sums))
		}
		return cmp.Or(earlier(x.Sums[0], y.Sums[0]), cmp.Compare(y.Sums[0].Minor, x.Sums[0].Minor))
	})
}

// todoApprovals returns the waiting proposals as one line.
func (b *Reader) todoApprovals(ctx context.Context) ([]Todo, error) {
	waiting, err := b.Waiting(ctx)
	if err != nil || len(waiting.Rows) == 0 {
		return nil, err
	}
	return []Todo{{Matter: MatterApprovals, Proposals: waiting}}, nil
}

// todoExceptions returns the kinds of exceptions that wait, in the order of exception.Kinds.
func (b *Reader) todoExceptions(ctx context.Context) ([]Todo, error) {
	var all []Todo
	for _, kind := range exception.Kinds {
		var rows []struct {
			report.Sum `bun:",extend"`
			Oldest     int64
		}
		err := b.db.Read.NewRaw("SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor, min(opened_at) AS oldest FROM"+
			" (SELECT currency, amount, opened_at FROM exceptions AS x WHERE kind = ? AND "+openExceptions+" AND "+
			exception.Moves.In("x.state", exception.Moves.NeedsPerson()...)+
			" ORDER BY id LIMIT ?) AS w GROUP BY currency ORDER BY currency", kind, todoRows).Scan(ctx, &rows)
		if err != nil {
			return nil, fmt.Errorf("count exceptions: %w", err)
		}
		t := Todo{Matter: MatterExceptions, Kind: kind}
		for _, r := range rows {
			t.Count += r.Orders
			t.Oldest = older(t.Oldest, r.Oldest)
			if r.Currency != "" && r.Minor != 0 {
				t.Sums = append(t.Sums, r.Sum)
			}
		}
		if t.More = t.Count >= todoRows; t.Count == 0 {
			continue
		}
		if kind == exception.DisputeOpened {
			if t.Next, err = b.NextDue(ctx); err != nil {
				return nil, err
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// older returns the earlier of two times; 0 = none.
func older(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// unreached returns the suppliers whose breaker is open, with the orders that wait for their answer.
func (b *Reader) unreached(ctx context.Context) ([]Todo, error) {
	var suppliers []SupplierHealth
	for _, e := range b.settings.Current().Suppliers.All() {
		suppliers = append(suppliers, SupplierHealth{Entry: e})
	}
	if err := b.addSupplierBreakers(ctx, suppliers); err != nil {
		return nil, err
	}
	suppliers = slices.DeleteFunc(suppliers, func(s SupplierHealth) bool { return !s.Breaker.Tripped() })
	if len(suppliers) == 0 {
		return nil, nil
	}
	awaited, err := report.Awaiting(ctx, b.db)
	if err != nil {
		return nil, err
	}
	all := make([]Todo, len(suppliers))
	for i, s := range suppliers {
		waits := awaited[s.ID]
		all[i] = Todo{
			Matter: MatterUnreached, ID: s.ID, Code: s.Code, Count: waits.Orders(), More: waits.Cut, Sums: waits.Sums,
			Oldest: s.OpenSince,
		}
	}
	return all, nil
}

// flows returns the rule about silent suppliers, and the flow of each supplier over its window.
func (b *Reader) flows(ctx context.Context) (rule alert.Rule, flows []report.Flow, err error) {
	rules, err := alert.Rules(ctx, b.db.Read)
	if err != nil {
		return rule, nil, err
	}
	rule = rules[slices.IndexFunc(rules, func(r alert.Rule) bool { return r.Name == alert.SupplierSilent })]
	flows, err = report.Flows(ctx, b.db, time.Duration(rule.WindowS)*time.Second)
	return rule, flows, err
}

// isSilent reports whether a supplier's flow violates the rule, or its alert is still firing.
func isSilent(s supplier.Entry, f report.Flow, rule alert.Rule, firing []alert.Fires) bool {
	level, known := f.Level()
	return s.Enabled && known && (rule.Beyond(level) ||
		slices.ContainsFunc(firing, func(a alert.Fires) bool { return a.Rule == rule.Name && a.Subject == s.Code }))
}

// silentSuppliers returns the suppliers whose flow currently violates the alert's rule, or
// whose alert is still firing.
func (b *Reader) silentSuppliers(ctx context.Context) ([]Todo, error) {
	firing, err := alert.FiringByRule(ctx, b.db.Read, alert.SupplierSilent)
	if err != nil {
		return nil, err
	}
	rule, flows, err := b.flows(ctx)
	if err != nil {
		return nil, err
	}
	var all []Todo
	for _, f := range flows {
		s, ok := b.settings.Current().Suppliers.ByID(f.Supplier)
		if !ok || !isSilent(s, f, rule, firing) {
			continue
		}
		last, err := report.LastCallback(ctx, b.db, f.Supplier)
		if err != nil {
			return nil, err
		}
		t := Todo{Matter: MatterSupplier, ID: f.Supplier, Code: s.Code, Flow: &f}
		if last > 0 {
			t.Oldest = last
			t.Silent = max(0, time.Duration(b.db.Now()-last-time.Minute.Microseconds())*time.Microsecond)
		}
		all = append(all, t)
	}
	return all, nil
}

// AtWork is what waits for operators, as counts for the navigation.
type AtWork struct {
	Exceptions Waits // that need a person
	Dead       Waits // compensations that need one
	Incidents  Waits // that nobody has acknowledged or snoozed
	Proposals  Waiting
}

// Waits is a bounded count.
type Waits struct {
	N    int64
	More bool
}

// mostWaits bounds each count: a navigation shows 999+.
const mostWaits = 999

// AtWork counts what waits for operators, by the indexes of what is open.
func (b *Reader) AtWork(ctx context.Context) (w AtWork, err error) {
	for _, c := range []struct {
		of   *Waits
		from string
	}{
		{&w.Exceptions, "exceptions AS x WHERE " + openExceptions + " AND " + exception.Moves.In("x.state", exception.Moves.NeedsPerson()...)},
		{&w.Incidents, "incidents AS inc WHERE inc.over_at IS NULL AND " + alert.IncidentMoves.In("inc.state", alert.IncidentMoves.NeedsPerson()...)},
		{&w.Dead, "compensations AS cp WHERE " + compensation.Moves.In("cp.state", compensation.Moves.NeedsPerson()...)},
	} {
		var n int64
		if err := b.db.Read.NewRaw("SELECT count(*) FROM (SELECT 1 AS one FROM "+c.from+" LIMIT ?) AS w", mostWaits+1).Scan(ctx,
			&n); err != nil {
			return w, fmt.Errorf("count what waits: %w", err)
		}
		*c.of = Waits{min(n, mostWaits), n > mostWaits}
	}
	w.Proposals, err = b.Waiting(ctx)
	return w, err
}
