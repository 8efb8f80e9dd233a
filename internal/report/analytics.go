package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

const (
	// Fine is the shortest span of the figures for analytics.
	Fine = 5 * time.Minute
	// day is the span of a day's row, whatever the day's true length.
	day = 24 * time.Hour
)

// analytics are the sums of the analytics page: by five minutes, hour and day.
type analytics struct {
	zone     *time.Location // of the days; nil = no days
	days     map[int64]int64
	failures map[failureKey]counts // attempts, orders, amount
	waits    map[waitKey]int64
	volume   map[volumeKey]counts // created, their amount, paid, their amount
}

// spanStart is one span of time: its length in seconds, and its start in Unix µs.
type spanStart struct{ spanS, start int64 }

type failureKey struct {
	spanStart
	class, currency string
}

type waitKey struct {
	spanStart
	bucket int64
}

type volumeKey struct {
	spanStart
	merchant, supplier int64
	currency           string
}

func newAnalytics(zone *time.Location) analytics {
	return analytics{
		zone: zone, days: map[int64]int64{}, failures: map[failureKey]counts{}, waits: map[waitKey]int64{},
		volume: map[volumeKey]counts{},
	}
}

// dayOf returns the start of the zone's day that contains a time.
func (a *analytics) dayOf(us int64) int64 {
	quarter := floor(us, volumeQuarter)
	start, known := a.days[quarter]
	if !known {
		start = DayOf(us, a.zone)
		a.days[quarter] = start
	}
	return start
}

// DayOf returns the start of the zone's day that contains a time (Unix µs).
func DayOf(us int64, zone *time.Location) int64 {
	return calendar.DayStart(time.UnixMicro(us).In(zone), 0).UnixMicro()
}

// spansOf returns the five minutes, the hour and the day that contain a time.
func (a *analytics) spansOf(us int64) [3]spanStart {
	return [3]spanStart{
		{int64(Fine / time.Second), floor(us, Fine)},
		{int64(time.Hour / time.Second), floor(us, time.Hour)},
		{int64(day / time.Second), a.dayOf(us)},
	}
}

// addOrders adds what addOrders does not: the five minutes and the day.
func (a *analytics) addOrders(to map[ordersKey]counts, minute int64, currency string, n counts) {
	if a.zone == nil {
		return
	}
	for _, k := range []ordersKey{{Fine, floor(minute, Fine), currency}, {day, a.dayOf(minute), currency}} {
		to[k] = to[k].plus(n)
	}
}

// add adds a delta.
func (a *analytics) add(x *Delta) {
	if a.zone == nil {
		return
	}
	for _, f := range x.Failures {
		for _, s := range a.spansOf(x.Minute) {
			k := failureKey{s, f.Class, f.Currency}
			a.failures[k] = a.failures[k].plus(counts{f.Attempts, f.Orders, f.Amount})
		}
	}
	for i := range x.Orders {
		o := &x.Orders[i]
		spans := a.spansOf(cmp.Or(o.Minute, x.Minute))
		for bucket, n := range o.Waits {
			if n == 0 {
				continue
			}
			for _, s := range spans {
				a.waits[waitKey{s, int64(bucket)}] += n
			}
		}
	}
	for _, v := range x.Volumes {
		spans := a.spansOf(v.Quarter)
		for _, s := range spans[1:] { // a merchant's five minutes would be most of the rows
			k := volumeKey{s, v.Merchant, v.Supplier, v.Currency}
			a.volume[k] = a.volume[k].plus(counts{v.Created, v.CreatedAmount, v.Paid, v.PaidAmount})
		}
	}
}

func (a *analytics) write(ctx context.Context, tx db.Tx) error {
	failures := make([]failureRow, 0, len(a.failures))
	for k, n := range a.failures {
		failures = append(failures, failureRow{
			SpanS: k.spanS, Start: k.start, Class: k.class, Currency: k.currency, Attempts: n[0],
			Orders: n[1], Amount: n[2],
		})
	}
	if err := addRows(ctx, tx, inOrder(failures, failureRow.key), "span_s, start, class, currency", "attempts", "orders",
		"amount"); err != nil {
		return err
	}
	waits := make([]waitRow, 0, len(a.waits))
	for k, n := range a.waits {
		waits = append(waits, waitRow{SpanS: k.spanS, Start: k.start, Bucket: k.bucket, Orders: n})
	}
	if err := addRows(ctx, tx, inOrder(waits, waitRow.key), "span_s, start, bucket", "orders"); err != nil {
		return err
	}
	volume := make([]volumeRow, 0, len(a.volume))
	for k, n := range a.volume {
		volume = append(volume, volumeRow{
			SpanS: k.spanS, Start: k.start, MerchantID: k.merchant, SupplierID: k.supplier, Currency: k.currency,
			Created: n[0], CreatedAmount: n[1], Paid: n[2], PaidAmount: n[3],
		})
	}
	return addRows(ctx, tx, inOrder(volume, volumeRow.key), "span_s, start, merchant_id, supplier_id, currency", "created",
		"created_amount", "paid", "paid_amount")
}

// inOrder sorts rows by their keys, so that neighbours are written together.
func inOrder[T any](rows []T, key func(T) spanStart) []T {
	slices.SortFunc(rows, func(x, y T) int {
		a, b := key(x), key(y)
		return cmp.Or(cmp.Compare(a.spanS, b.spanS), cmp.Compare(a.start, b.start))
	})
	return rows
}

type failureRow struct {
	bun.BaseModel `bun:"table:report_failures,alias:r"`

	SpanS    int64  `bun:"span_s,pk"`
	Start    int64  `bun:"start,pk"`
	Class    string `bun:"class,pk"`
	Currency string `bun:"currency,pk"`
	Attempts int64  `bun:"attempts"`
	Orders   int64  `bun:"orders"`
	Amount   int64  `bun:"amount"`
}

func (r failureRow) key() spanStart { return spanStart{r.SpanS, r.Start} }

type waitRow struct {
	bun.BaseModel `bun:"table:report_waits,alias:r"`

	SpanS  int64 `bun:"span_s,pk"`
	Start  int64 `bun:"start,pk"`
	Bucket int64 `bun:"bucket,pk"`
	Orders int64 `bun:"orders"`
}

func (r waitRow) key() spanStart { return spanStart{r.SpanS, r.Start} }

type volumeRow struct {
	bun.BaseModel `bun:"table:report_volume,alias:r"`

	SpanS         int64  `bun:"span_s,pk"`
	Start         int64  `bun:"start,pk"`
	MerchantID    int64  `bun:"merchant_id,pk"`
	SupplierID    int64  `bun:"supplier_id,pk"`
	Currency      string `bun:"currency,pk"`
	Created       int64  `bun:"created"`
	CreatedAmount int64  `bun:"created_amount"`
	Paid          int64  `bun:"paid"`
	PaidAmount    int64  `bun:"paid_amount"`
}

func (r volumeRow) key() spanStart { return spanStart{r.SpanS, r.Start} }

// SampleBacklog records the number of deliveries that are due, and of those that are held for a
// breaker, once a minute; a second node does nothing.
func SampleBacklog(ctx context.Context, d *db.DB, due, held int64) error {
	_, err := d.NewRaw("INSERT INTO report_backlog (start, due, held) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", floor(d.Now(), time.Minute),
		due, held).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record the backlog: %w", err)
	}
	return nil
}
