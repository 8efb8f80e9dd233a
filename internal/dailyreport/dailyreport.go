// Package dailyreport makes the report of each day: what merchants were notified of, what was at risk,
// what was decided, who failed and what grew. A report is made once, when its day has ended in the
// installation's time zone, is stored, and does not change afterwards.
package dailyreport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/analytics"
	"backstop/internal/approval"
	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/recipient"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Figures are what a report says. They are stored as JSON.
type Figures struct {
	From, To  int64   // the day, Unix µs; To is exclusive
	At        int64   // when it was counted
	Objective float64 // at that time, 0 to 1

	Notified, LastWeek analytics.Notified
	Currencies         []analytics.Currency // most orders first

	Risk       *Risk // when the day ended; nil = not recorded
	RiskBefore *Risk // when it began

	Decisions  []approval.Tally
	Exceptions []Exceptions // most opened first

	Suppliers []Supplier // those that failed
	Merchants []Merchant // those that failed, most failed attempts first
	Growth    []Growth
}

// Risk is the money at risk at a moment.
type Risk struct {
	At    int64 // Unix µs
	Parts map[report.Part][]report.Sum
}

// Orders returns the number of orders at risk.
func (r *Risk) Orders() (n int64) {
	for _, s := range r.Total() {
		n += s.Orders
	}
	return n
}

// Total returns the sums of all parts.
func (r *Risk) Total() []report.Sum {
	var all report.Standing
	if r != nil {
		for _, part := range report.Parts {
			for _, s := range r.Parts[part] {
				all.Add(s)
			}
		}
	}
	return all.Sums
}

// Exceptions counts the exceptions of one kind.
type Exceptions struct {
	Kind                     string
	Opened, LastWeek, Closed int64
	Sums                     []report.Sum // of those opened
}

// Supplier is a supplier that failed: its breaker opened, or a smaller share of its orders was
// paid than a week before.
type Supplier struct {
	Code               string
	Created, Paid      int64
	Before, PaidBefore int64 // a week before
	Openings           int64 // of its breaker
}

// Merchant is a merchant or subscriber that failed: its breaker opened, or it acknowledged too few
// attempts.
type Merchant struct {
	Code, Name   string
	Attempts, OK int64
	Openings     int64 // of its breaker
}

// Kinds of Growth.
const (
	OfCause     = "cause"     // failed attempts, by class
	OfException = "exception" // opened exceptions, by kind
	OfSupplier  = "supplier"  // created orders
	OfMerchant  = "merchant"  // created orders
)

// Growth is a number that was larger than a week before.
type Growth struct {
	Kind       string
	Name       string // a class, a kind, or a code
	N, Before  int64
	FirstSince int64 // when a cause appeared for the first time, if it did on this day
	Sums       []report.Sum
}

const (
	// failedRate is the share of acknowledged attempts below which a merchant failed.
	failedRate = 0.95
	// conversionDrop is by how much a smaller share of a supplier's orders was paid if it failed.
	conversionDrop = 0.10
	// minOrders keeps a few orders from counting as a share.
	minOrders = 20
	// shown bounds the merchants and suppliers of a report, and the growth of each kind.
	shown = 10
	grown = 5
	// recipientsRead bounds the merchants that are compared, those with the most failures first.
	recipientsRead = 1000
)

// Read counts the figures of the zone's day that begins at start (Unix µs).
func Read(ctx context.Context, d *db.DB, zone *time.Location, start int64, objective float64) (*Figures, error) {
	day, err := analytics.ReadDay(ctx, d, zone, start)
	if err != nil {
		return nil, err
	}
	f := &Figures{
		From: day.Starts[0], To: day.At + 1, At: d.Now(), Objective: objective,
		Notified: day.Total, LastWeek: day.LastWeek[0], Currencies: day.Currencies,
	}
	if f.Risk, err = riskAt(ctx, d, f.To); err != nil {
		return nil, err
	}
	if f.RiskBefore, err = riskAt(ctx, d, f.From); err != nil {
		return nil, err
	}
	if f.Decisions, err = approval.DecidedWithin(ctx, d, f.From, f.To); err != nil {
		return nil, err
	}
	if err := f.readExceptions(ctx, d, zone); err != nil {
		return nil, err
	}
	openings, err := breaker.Openings(ctx, d, f.From, f.To)
	if err != nil {
		return nil, err
	}
	f.failingSuppliers(day.Suppliers, openings)
	if err := f.readMerchants(ctx, d, openings); err != nil {
		return nil, err
	}
	f.grow(day)
	return f, nil
}

func riskAt(ctx context.Context, d *db.DB, at int64) (*Risk, error) {
	past, err := report.PastAt(ctx, d, at)
	if err != nil || past == nil {
		return nil, err
	}
	r := &Risk{At: past.At, Parts: map[report.Part][]report.Sum{}}
	for part, s := range past.Parts {
		r.Parts[part] = s.Sums
	}
	return r, nil
}

func (f *Figures) readExceptions(ctx context.Context, d *db.DB, zone *time.Location) error {
	by := map[string]*Exceptions{}
	of := func(kind string) *Exceptions {
		if by[kind] == nil {
			by[kind] = &Exceptions{Kind: kind}
		}
		return by[kind]
	}
	opened, err := exception.OpenedWithin(ctx, d, f.From, f.To)
	if err != nil {
		return err
	}
	for _, c := range opened {
		x := of(c.Kind)
		x.Opened += c.N
		if c.Currency != "" {
			x.Sums = append(x.Sums, report.Sum{Currency: c.Currency, Orders: c.N, Minor: c.Amount})
		}
	}
	from, to := calendar.DayStart(time.UnixMicro(f.From).In(zone), -7), calendar.DayStart(time.UnixMicro(f.To).In(zone), -7)
	before, err := exception.OpenedWithin(ctx, d, from.UnixMicro(), to.UnixMicro())
	if err != nil {
		return err
	}
	for _, c := range before {
		of(c.Kind).LastWeek += c.N
	}
	ended, err := exception.EndedWithin(ctx, d, f.From, f.To)
	if err != nil {
		return err
	}
	for _, c := range ended {
		of(c.Kind).Closed += c.N
	}
	for _, kind := range exception.Kinds {
		if x := by[kind]; x != nil && x.Opened+x.Closed > 0 {
			f.Exceptions = append(f.Exceptions, *x)
		}
	}
	slices.SortStableFunc(f.Exceptions, func(a, b Exceptions) int { return cmp.Compare(b.Opened, a.Opened) })
	return nil
}

func (f *Figures) failingSuppliers(all []analytics.Flow, openings map[recipient.Recipient]int64) {
	for _, s := range all {
		x := Supplier{
			Code: s.Code, Created: s.Created, Paid: s.Paid, Before: s.Before, PaidBefore: s.PaidBefore,
			Openings: openings[recipient.OfSupplier(s.ID)],
		}
		now, known := s.Conversion()
		before, had := s.ConversionBefore()
		fell := known && had && s.Created >= minOrders && s.Before >= minOrders && now < before-conversionDrop
		if fell || x.Openings > 0 {
			f.Suppliers = append(f.Suppliers, x)
		}
	}
	f.Suppliers = f.Suppliers[:min(len(f.Suppliers), shown)]
}

func (f *Figures) readMerchants(ctx context.Context, d *db.DB, openings map[recipient.Recipient]int64) error {
	rows, err := report.Recipients(ctx, d, f.From, f.To, recipientsRead)
	if err != nil {
		return err
	}
	// The ids of merchants and subscribers are of one series.
	opened := map[int64]int64{}
	for of, n := range openings {
		if of.Kind == recipient.Supplier {
			continue
		}
		opened[of.ID] = n
		if !slices.ContainsFunc(rows, func(r report.Recipient) bool { return r.ID == of.ID }) {
			rows = append(rows, report.Recipient{ID: of.ID})
		}
	}
	rows = slices.DeleteFunc(rows, func(r report.Recipient) bool {
		return opened[r.ID] == 0 && (r.Attempts < minOrders || float64(r.OK) >= failedRate*float64(r.Attempts))
	})
	slices.SortStableFunc(rows, func(a, b report.Recipient) int { return cmp.Compare(b.Attempts-b.OK, a.Attempts-a.OK) })
	rows = rows[:min(len(rows), shown)]
	if len(rows) == 0 {
		return nil
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	var named []struct {
		ID         int64
		Code, Name string
	}
	err = d.Read.NewRaw(
		"SELECT id, code, name FROM merchants WHERE id IN (?) UNION ALL SELECT id, code, name FROM subscriptions WHERE id IN (?)",
		bun.List(ids), bun.List(ids)).Scan(ctx, &named)
	if err != nil {
		return fmt.Errorf("read the names of merchants: %w", err)
	}
	for _, r := range rows {
		m := Merchant{Attempts: r.Attempts, OK: r.OK, Openings: opened[r.ID]}
		for _, n := range named {
			if n.ID == r.ID {
				m.Code, m.Name = n.Code, n.Name
			}
		}
		f.Merchants = append(f.Merchants, m)
	}
	return nil
}

func (f *Figures) grow(day *analytics.Page) {
	add := func(kind string, all []Growth) {
		all = slices.DeleteFunc(all, func(g Growth) bool { return g.N <= g.Before })
		slices.SortStableFunc(all, func(a, b Growth) int { return cmp.Compare(b.N-b.Before, a.N-a.Before) })
		for _, g := range all[:min(len(all), grown)] {
			g.Kind = kind
			f.Growth = append(f.Growth, g)
		}
	}
	var causes, exceptions []Growth
	for _, c := range day.Causes {
		g := Growth{Name: c.Class, N: c.Attempts, Before: c.Before, Sums: c.Sums}
		if c.NewSince >= f.From && c.NewSince < f.To {
			g.FirstSince = c.NewSince
		}
		causes = append(causes, g)
	}
	for _, x := range f.Exceptions {
		exceptions = append(exceptions, Growth{Name: x.Kind, N: x.Opened, Before: x.LastWeek, Sums: x.Sums})
	}
	flows := func(all []analytics.Flow) (of []Growth) {
		for _, w := range all {
			if w.Before >= minOrders { // a new one, or a few orders, tell nothing
				of = append(of, Growth{Name: w.Code, N: w.Created, Before: w.Before, Sums: w.Sums})
			}
		}
		return of
	}
	add(OfCause, causes)
	add(OfException, exceptions)
	add(OfSupplier, flows(day.Suppliers))
	add(OfMerchant, flows(day.Merchants))
}
