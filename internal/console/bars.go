package console

import (
	"context"
	"time"

	"backstop/internal/list"
	"backstop/internal/payment"
	"backstop/internal/report"
)

// Bar is what happened within one step of time: what went as it should, and the
// rest.
type Bar struct {
	Start     int64 // Unix µs
	Good, Bad int64
}

// barStep is what one bar covers: no more than 72 of them are drawn. Steps of
// whole hours are read from figures that are kept for long.
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

// figuresByMinute is for how long figures by the minute are surely there.
const figuresByMinute = 70 * time.Hour

// AttemptBars is what came of notifying a merchant ("" = all of them) over a span;
// what was tried again counts as bad, as it did not work that time. None of a merchant
// that does not exist.
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

// CallbackBars is what came of a supplier's callbacks ("" = all of them) over a span;
// none where figures are not kept for so long, or of a supplier that does not exist.
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

// barsFor is the id of a code, 0 for all.
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
