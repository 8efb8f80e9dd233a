package console

import (
	"context"
	"fmt"

	"backstop/internal/alert"
	"backstop/internal/compensation"
	"backstop/internal/exception"
)

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
