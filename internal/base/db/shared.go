package db

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// shared merges transactions of group commit on SQLite, whose only writer would otherwise wait
// for the disk once for each kind of batch: all that arrive during a commit become one
// transaction.
type shared struct {
	mu      sync.Mutex
	waiting []*part
	led     bool
}

// part is the share of one caller in a shared transaction.
type part struct {
	ctx  context.Context // of the caller
	ends ends
	fn   func(context.Context, Tx) error
	err  error
	done chan struct{} // closed when the part is committed or has failed
	lead chan struct{} // receives when its caller must run all waiting parts
}

// SharedTx is Tx for short transactions. On SQLite several may be committed together; one that
// fails rolls back only its own writes. On PostgreSQL BEGIN goes with the first statements. fn may
// run several times, each time but the last in a transaction that is rolled back.
func (d *DB) SharedTx(ctx context.Context, fn func(context.Context, Tx) error) error {
	if d.IsPostgres() {
		return d.lateTx(ctx, fn)
	}
	p := &part{ctx: ctx, fn: fn, done: make(chan struct{}), lead: make(chan struct{}, 1)}
	d.shared.join(p, d.runParts)
	p.ends.run(p.err)
	return p.err
}

// join returns when the part is done. One caller at a time runs all waiting parts.
func (s *shared) join(p *part, run func([]*part)) {
	s.mu.Lock()
	s.waiting = append(s.waiting, p)
	if s.led {
		s.mu.Unlock()
		select {
		case <-p.done:
			return
		case <-p.lead:
		}
		s.mu.Lock()
	}
	s.led = true
	parts := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	run(parts)
	s.mu.Lock()
	if len(s.waiting) > 0 {
		s.waiting[0].lead <- struct{}{}
	} else {
		s.led = false
	}
	s.mu.Unlock()
	for _, p := range parts {
		close(p.done)
	}
}

// AsyncCommitTx is SharedTx for writes whose loss in a crash only means that work is repeated:
// on PostgreSQL it does not wait for the disk, and commits each statement separately.
func (d *DB) AsyncCommitTx(ctx context.Context, fn func(context.Context, Session) error) error {
	if d.IsPostgres() {
		err := fn(ctx, autocommit{d.asyncCommit, d})
		d.room.noteEnd(err)
		return err
	}
	return d.SharedTx(ctx, func(ctx context.Context, tx Tx) error { return fn(ctx, tx) })
}

// runParts runs parts as one transaction and sets the error of each. If one fails, each runs
// again in its own transaction. Savepoints would cost a sixth of the writer's time, since the
// engine copies every page that a part is the first to change, and would not always help: a
// full disk rolls back the whole transaction.
func (d *DB) runParts(parts []*part) {
	if !d.runTogether(parts) || len(parts) == 1 {
		return
	}
	for i, p := range parts {
		p.ends.run(errAgain)
		p.ends, p.err = nil, nil
		d.runTogether(parts[i : i+1])
	}
}

// runTogether runs parts in one transaction up to the first that fails, and reports whether
// one failed.
func (d *DB) runTogether(parts []*part) (failed bool) {
	// No caller's context may end the transaction of the others.
	ctx, cancel := context.WithTimeout(context.Background(), txTimeout)
	defer cancel()
	err := d.inTx(ctx, func(_ context.Context, tx Tx) error {
		for _, p := range parts {
			if p.err = p.try(tx); p.err != nil {
				failed = true
				return p.err
			}
		}
		return nil
	})
	d.room.noteEnd(err)
	for _, p := range parts {
		if p.err == nil {
			p.err = err
		}
	}
	return failed
}

// errAgain is the result of a part's first run if another part failed.
var errAgain = errors.New("another part of the transaction failed: all run again")

// try runs the part and turns its panic into its error.
func (p *part) try(tx Tx) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("panicked: %v\n%s", what, debug.Stack())
		}
	}()
	if err := p.ctx.Err(); err != nil {
		return err
	}
	tx.ends = &p.ends
	// On SQLite a cancelled statement rolls back the whole transaction, so statements, which
	// are short, are not cancelled.
	return p.fn(context.WithoutCancel(p.ctx), tx)
}
