package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
)

// Flow is the number of callbacks from a supplier within the last span, and the usual number.
type Flow struct {
	Supplier int64
	Now      int64
	Usual    float64
	Span     time.Duration
}

const (
	// flowMin keeps a few missing callbacks from counting as silence.
	flowMin = 20
	// On an installation's first day there are no figures for this hour. The usual number is
	// then that of the time before the span, if that was a steady flow rather than a burst:
	// over at least steadyMinutes, and in at least every second minute.
	steadyMinutes = 30
	steadyShare   = 0.5
)

// Level returns the number of callbacks in percent of the usual number; false = the usual
// number is too small. Alerts and the overview detect a silent supplier with it.
func (f Flow) Level() (percent int64, ok bool) {
	if f.Usual < flowMin {
		return 0, false
	}
	return int64(float64(f.Now) * 100 / f.Usual), true
}

// PerMinute returns the usual number of callbacks per minute.
func (f Flow) PerMinute() float64 { return f.Usual / f.Span.Minutes() }

// Flows compares the last whole span with the usual number: the mean of the same span on the
// previous days, as far as they are kept. Suppliers that never called at this hour are left
// out.
func Flows(ctx context.Context, d *db.DB, span time.Duration) ([]Flow, error) {
	if span < time.Minute {
		return nil, fmt.Errorf("no flow of callbacks over %s", span)
	}
	end := floor(d.Now(), time.Minute)
	var oldest []int64
	if err := d.Read.NewRaw("SELECT start FROM report_callbacks ORDER BY start LIMIT 1").Scan(ctx, &oldest); err != nil {
		return nil, fmt.Errorf("read the first of the callbacks: %w", err)
	}
	if len(oldest) == 0 {
		return nil, nil
	}
	known := time.Duration(end-oldest[0]) * time.Microsecond
	days := int(min(known, minutesKept-span) / (24 * time.Hour))
	var usual map[int64]float64
	var err error
	if days > 0 {
		usual, err = onDaysBefore(ctx, d, end, span, days)
	} else {
		usual, err = steadyFlow(ctx, d, oldest[0], end-span.Microseconds(), span)
	}
	if err != nil {
		return nil, err
	}
	now, err := flowed(ctx, d, end-span.Microseconds(), end)
	if err != nil {
		return nil, err
	}
	all := make([]Flow, 0, len(usual))
	for id, n := range usual {
		all = append(all, Flow{Supplier: id, Now: now[id], Usual: n, Span: span})
	}
	slices.SortFunc(all, func(x, y Flow) int { return cmp.Compare(x.Supplier, y.Supplier) })
	return all, nil
}

// flowed counts the callbacks from each supplier between two times.
func flowed(ctx context.Context, d *db.DB, from, to int64) (map[int64]int64, error) {
	var rows []struct{ SupplierID, N int64 }
	err := d.Read.NewRaw(
		"SELECT supplier_id, CAST(sum(n) AS BIGINT) AS n FROM report_callbacks WHERE start >= ? AND start < ? GROUP BY supplier_id", from,
		to).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the flow of callbacks: %w", err)
	}
	by := make(map[int64]int64, len(rows))
	for _, r := range rows {
		by[r.SupplierID] = r.N
	}
	return by, nil
}

func onDaysBefore(ctx context.Context, d *db.DB, end int64, span time.Duration, days int) (map[int64]float64, error) {
	usual := map[int64]float64{}
	for day := 1; day <= days; day++ {
		to := end - (time.Duration(day) * 24 * time.Hour).Microseconds()
		then, err := flowed(ctx, d, to-span.Microseconds(), to)
		if err != nil {
			return nil, err
		}
		for id, n := range then {
			usual[id] += float64(n) / float64(days)
		}
	}
	return usual, nil
}

// steadyFlow returns the flow of suppliers that have called steadily since their first callback,
// less than a day ago, until the span began.
func steadyFlow(ctx context.Context, d *db.DB, from, to int64, span time.Duration) (map[int64]float64, error) {
	var rows []struct{ SupplierID, N, First, Minutes int64 }
	err := d.Read.NewRaw(
		"SELECT supplier_id, CAST(sum(n) AS BIGINT) AS n, min(start) AS first, count(DISTINCT start) AS minutes FROM report_callbacks"+
			" WHERE start >= ? AND start < ? GROUP BY supplier_id", from, to).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the flow of callbacks: %w", err)
	}
	usual := map[int64]float64{}
	for _, r := range rows {
		minutes := (time.Duration(to-r.First) * time.Microsecond).Minutes()
		if r.Minutes >= steadyMinutes && float64(r.Minutes) >= steadyShare*minutes {
			usual[r.SupplierID] = float64(r.N) / minutes * span.Minutes()
		}
	}
	return usual, nil
}

// LastCallback returns the minute (Unix µs) of a supplier's last callback, as far back as
// minutes are kept; 0 = none.
func LastCallback(ctx context.Context, d *db.DB, supplier int64) (start int64, err error) {
	var rows []int64
	if err := d.Read.NewRaw("SELECT start FROM report_callbacks WHERE supplier_id = ? ORDER BY start DESC LIMIT 1", supplier).Scan(ctx,
		&rows); err != nil {
		return 0, fmt.Errorf("read a supplier's last callback: %w", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	return rows[0], nil
}
