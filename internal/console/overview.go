package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Range is the time covered by the overview's chart.
type Range struct {
	Name string // in the URL
	Span time.Duration
	Step time.Duration // covered by one bar
}

// Ranges are all ranges. Their bars are wide enough to point at.
var Ranges = []Range{
	{"1h", time.Hour, time.Minute},
	{"6h", 6 * time.Hour, 5 * time.Minute},
	{"24h", 24 * time.Hour, 30 * time.Minute},
	{"7d", 7 * 24 * time.Hour, 4 * time.Hour},
}

// RangeOf returns the range with this name; the default is a day.
func RangeOf(name string) Range {
	for _, r := range Ranges {
		if r.Name == name {
			return r
		}
	}
	return Ranges[2]
}

// Risk is the money at risk now and over the last day.
type Risk struct {
	*report.Risk
	Past []report.Past
	// Funds are beside the total: their money is in the books, and under way.
	Funds map[FundPart]report.Standing
}

// curveSpan is how far back the curves of money at risk go.
const curveSpan = 24 * time.Hour

// Risk reads the money at risk.
func (b *Reader) Risk(ctx context.Context) (*Risk, error) {
	now, err := report.AtRisk(ctx, b.db)
	if err != nil {
		return nil, err
	}
	past, err := report.History(ctx, b.db, now.At-curveSpan.Microseconds())
	if err != nil {
		return nil, err
	}
	funds, err := b.Funds(ctx)
	return &Risk{Risk: now, Past: past, Funds: funds}, err
}

// Outcomes is the results of notifications over a range.
type Outcomes struct {
	Range  Range
	Points []report.Point
	Total  report.Point
	// Notified counts the orders whose notifications were created in the range, by currency;
	// Steps, by point; Untried, all that wait now.
	Notified []report.Notified
	Steps    []report.Step
	Untried  report.Untried
	// PerSecond is the number of callbacks per second over the last full minutes.
	PerSecond float64
}

// rateMinutes is the number of full minutes over which callbacks per second are counted.
const rateMinutes = 5

// Outcomes reads the results of notifications.
func (b *Reader) Outcomes(ctx context.Context, r Range) (*Outcomes, error) {
	now := b.db.Now()
	// The last step is the one in progress.
	from := now - (r.Span - r.Step).Microseconds()
	points, err := report.Outcomes(ctx, b.db, 0, from, now, r.Step)
	if err != nil {
		return nil, err
	}
	o := &Outcomes{Range: r, Points: points, Total: report.Total(points)}
	if o.Notified, err = report.Orders(ctx, b.db, from, now, r.Step); err != nil {
		return nil, err
	}
	if err := o.addSteps(ctx, b.db, from, now); err != nil {
		return nil, err
	}
	if o.Untried, err = report.NotTried(ctx, b.db); err != nil {
		return nil, err
	}
	suppliers, err := report.Suppliers(ctx, b.db, now-rateMinutes*time.Minute.Microseconds())
	if err != nil {
		return nil, err
	}
	var callbacks int64
	for _, s := range suppliers {
		for _, n := range s.PerMinute[:len(s.PerMinute)-1] {
			callbacks += n
		}
	}
	o.PerSecond = float64(callbacks) / (rateMinutes * 60)
	return o, nil
}

// addSteps reads the orders of each point.
func (o *Outcomes) addSteps(ctx context.Context, d *db.DB, from, to int64) error {
	read, err := report.OrderSteps(ctx, d, from, to, o.Range.Step)
	if err != nil {
		return err
	}
	by := make(map[int64]report.Step, len(read))
	for _, s := range read {
		by[s.Start] = s
	}
	o.Steps = make([]report.Step, len(o.Points))
	for i, p := range o.Points {
		if o.Steps[i] = by[p.Start]; o.Steps[i].Start == 0 {
			o.Steps[i].Start = p.Start
		}
	}
	return nil
}

// MerchantHealth is one merchant's health and money at risk.
type MerchantHealth struct {
	report.Health
	Code, Name string
	AtRisk     report.Standing
	Waiting    int64 // paid orders of which it has not been notified yet
	Breaker    *breaker.Row
	Slow       bool // some node currently lists it as slow
}

const (
	// healthSpan is the time over which merchants are compared.
	healthSpan = time.Hour
	// healthShown is how many merchants the overview shows, the worst first.
	healthShown = 10
	// healthRead is how many of the lowest rates are read.
	healthRead = 300
)

// worst returns the merchants that need attention most, in this order.
func worst(all []MerchantHealth) []MerchantHealth {
	slices.SortFunc(all, func(x, y MerchantHealth) int {
		a, okA := x.Rate()
		c, okC := y.Rate()
		if !okA {
			a = 1
		}
		if !okC {
			c = 1
		}
		return cmp.Or(cmp.Compare(y.AtRisk.Orders(), x.AtRisk.Orders()), cmp.Compare(a, c), cmp.Compare(x.Merchant, y.Merchant))
	})
	return all[:min(len(all), healthShown)]
}

// Own returns the money at risk of some merchants, and those of them that need attention: all that can be
// summed up by merchant exactly.
func (b *Reader) Own(ctx context.Context, merchants []int64) (*Risk, []MerchantHealth, error) {
	risk, err := report.AtRiskOf(ctx, b.db, merchants)
	if err != nil {
		return nil, nil, err
	}
	rows, _, err := b.merchantStatuses(ctx, list.Of(merchants...), "", MerchantEnabled, 0, healthRead)
	if err != nil {
		return nil, nil, err
	}
	all := make([]MerchantHealth, len(rows))
	for i, m := range rows {
		all[i] = m.MerchantHealth
		all[i].Merchant, all[i].AtRisk, all[i].Waiting = m.ID, risk.ByMerchant[m.ID], risk.Waiting[m.ID].Orders()
	}
	return &Risk{Risk: risk}, worst(all), nil
}

// Health returns the merchants that need attention: first those with the most money at risk,
// then those with the lowest rate. Money in different currencies cannot be compared; numbers of
// orders can.
func (b *Reader) Health(ctx context.Context) ([]MerchantHealth, error) {
	risk, err := report.AtRisk(ctx, b.db)
	if err != nil {
		return nil, err
	}
	did, err := report.Merchants(ctx, b.db, b.db.Now()-healthSpan.Microseconds(), healthRead)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	var all []MerchantHealth
	for _, h := range did {
		seen[h.Merchant] = true
		all = append(all, MerchantHealth{Health: h, AtRisk: risk.ByMerchant[h.Merchant], Waiting: risk.Waiting[h.Merchant].Orders()})
	}
	for id, s := range risk.ByMerchant {
		if !seen[id] {
			all = append(all, MerchantHealth{Health: report.Health{Merchant: id}, AtRisk: s, Waiting: risk.Waiting[id].Orders()})
		}
	}
	all = worst(all)
	slow, err := notify.SlowRecipients(ctx, b.db)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Breaker, all[i].Slow = b.breakers.Of(b.settings.Merchants().RecipientOf(all[i].Merchant)),
			slices.Contains(slow, all[i].Merchant)
	}
	ids := make([]int64, len(all))
	for i, h := range all {
		ids[i] = h.Merchant
	}
	named, err := b.named(ctx, ids)
	for i, h := range all {
		all[i].Code, all[i].Name = named[h.Merchant].Code, named[h.Merchant].Name
	}
	return all, err
}

// named reads merchants and subscribers by id.
func (b *Reader) named(ctx context.Context, ids []int64) (map[int64]Named, error) {
	by := make(map[int64]Named, len(ids))
	if len(ids) == 0 {
		return by, nil
	}
	var rows []Named
	if err := b.db.Read.NewRaw("SELECT id, code, name FROM merchants WHERE id IN (?)"+
		" UNION ALL SELECT id, code, name FROM subscriptions WHERE id IN (?)", bun.List(ids), bun.List(ids)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the merchants' names: %w", err)
	}
	for _, r := range rows {
		by[r.ID] = r
	}
	return by, nil
}
