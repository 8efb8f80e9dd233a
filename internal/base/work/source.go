package work

import (
	"context"
	"time"
)

// Lease is the owner of a claimed row, and the time from which other nodes may claim it.
type Lease struct {
	Owner, Until int64 // db.DB.Boot; Unix µs
}

// Source gives access to the rows of one kind of work. It hides how a row is found and
// claimed, and where its due time is stored. T is what one slot runs: one row, or several
// together.
type Source[T any] interface {
	// Due reads at most n jobs of a lane that are due now or very soon.
	Due(ctx context.Context, lane, now int64, n int) ([]Job, error)
	// Claim claims the jobs that are due according to their rows. One statement counts the
	// attempt and writes the lease before anything is done, so that a crash costs one attempt
	// and never the job. Jobs that it returns together with an error are claimed.
	Claim(ctx context.Context, slots []Slot, l Lease) ([]Claimed[T], error)
	// Release undoes a claim and the count of its attempt: the row becomes due at at (Unix µs).
	Release(ctx context.Context, row T, at int64) error
}

// Claimed is a row that was claimed for a slot.
type Claimed[T any] struct {
	Slot Slot
	Row  T
}

// Ran is how a run ended.
type Ran[R any] struct {
	Results []R // to be committed; empty = no attempt was made
	OK      bool
	Took    time.Duration
	// ReleaseAt releases a row that was not tried, to be due at this time (Unix µs); 0 = it
	// has been released already.
	ReleaseAt int64
}
