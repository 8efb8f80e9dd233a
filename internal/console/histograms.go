package console

import (
	"context"
	"time"

	"backstop/internal/list"
	"backstop/internal/payment"
	"backstop/internal/report"
)

// Bar counts what happened within one time step: good results and the rest.
type Bar struct {
	Start     int64 // Unix µs
	Good, Bad int64
}

// barStep returns the time that one bar covers, so that at most 72 are drawn. Steps of whole
// hours are read from figures with a long retention.
func barStep(span, age time.Duration) time.Duration {
	switch {
	case span <= time.Hour && age <= figuresByMinute:
		return time.Minute
	case span <= 25*time.Hour && age <= figuresByMinute:
		return 30 * time.Minute
	case span <= 25*time.Hour:
		return time.Hour
	case span <= 8*24*time.Hour:
		return 3 * time.Hour
	}
	return 12 * time.Hour
}

// figuresByMinute is how far back per-minute figures are certain to exist.
const figuresByMinute = 70 * time.Hour

// AttemptBars reads the results of notifying a merchant ("" = all) over a span. Attempts that
// were retried count as bad. A merchant that does not exist has none.
func (b *Reader) AttemptBars(ctx context.Context, merchant string, s list.Slice) ([]Bar, error) {
	id, there, err := b.barsFor(ctx, "merchants", merchant)
	if err != nil || !there {
		return nil, err
	}
	from, to, step := b.barsOf(s)
	points, err := report.Outcomes(ctx, b.db, id, from, to, step)
	if err != nil {
		return nil, err
	}
	bars := make([]Bar, len(points))
	for i, p := range points {
		bars[i] = Bar{p.Start, p.OK, p.Retried + p.Failed}
	}
	return bars, nil
}

// CallbackBars reads the results of a supplier's callbacks ("" = all) over a span; none if
// figures are not kept that long or the supplier does not exist.
func (b *Reader) CallbackBars(ctx context.Context, supplier string, s list.Slice) ([]Bar, error) {
	id, there, err := b.barsFor(ctx, "suppliers", supplier)
	if err != nil || !there {
		return nil, err
	}
	from, to, step := b.barsOf(s)
	flowed, kept, err := report.Callbacks(ctx, b.db, id, from, to, step)
	if err != nil || !kept {
		return nil, err
	}
	first := from - from%step.Microseconds()
	bars := make([]Bar, (to-first)/step.Microseconds()+1)
	for i := range bars {
		bars[i].Start = first + int64(i)*step.Microseconds()
	}
	for _, f := range flowed {
		bar := &bars[(f.Start-first)/step.Microseconds()]
		switch f.Outcome {
		case payment.Paid, payment.Repeat, payment.Ignored:
			bar.Good += f.N
		default:
			bar.Bad += f.N
		}
	}
	return bars, nil
}

// barsFor returns the id of a code; 0 = all.
func (b *Reader) barsFor(ctx context.Context, table, code string) (id int64, there bool, err error) {
	if code == "" {
		return 0, true, nil
	}
	id, err = idOf(ctx, b.db.Read, table, code)
	return id, id != 0, err
}

func (b *Reader) barsOf(s list.Slice) (from, to int64, step time.Duration) {
	now := b.db.Now()
	if to = s.To; to == 0 || to > now {
		to = now
	}
	from = min(s.From, to)
	return from, to, barStep(time.Duration(to-from)*time.Microsecond, time.Duration(now-from)*time.Microsecond)
}
