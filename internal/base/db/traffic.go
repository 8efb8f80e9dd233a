package db

import (
	"sync/atomic"

	"backstop/internal/base/metric"
)

// traffic counts what a DB has sent to its database.
type traffic struct{ statements, trips atomic.Int64 }

// sent counts statements that are sent together.
func (t *traffic) sent(n int) {
	t.statements.Add(int64(n))
	t.trips.Add(1)
	metric.Statements.Add(float64(n))
	metric.RoundTrips.Inc()
}

// Traffic returns how many statements the DB has sent, with BEGIN and COMMIT, and in how many round
// trips.
func (d *DB) Traffic() (statements, roundTrips int64) {
	return d.traffic.statements.Load(), d.traffic.trips.Load()
}
