package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/seal"
	"backstop/internal/compensation"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

const (
	// pageRows is how many rows one statement looks at.
	pageRows = 500
	// chunk is how many rows one transaction pushes: callbacks wait for it on SQLite.
	chunk = 50
	// rest is between two pages of which nothing is pushed.
	rest = 5 * time.Millisecond
	// noteEvery is how often such pages are written down.
	noteEvery = time.Second
	// lease is for how long a node that ended keeps others from going on.
	lease = 30 * time.Second
	// leaseName is the name of the lease.
	leaseName = "sweep"
)

// Options of a Runner.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Schedule compensation.Schedule // of what asks about closed orders
	Keys     *seal.Keyring         // of the audit, which verify checks
	Rate     int                   // rows pushed per second
	// Keep is how long the rows and the counters of orders are kept: what is older is not
	// counted anew.
	Keep time.Duration
	Log  *slog.Logger
}

// Runner goes on with the sweep that is running. It is safe for concurrent use.
type Runner struct {
	o     Options
	busy  sync.Mutex // the lease is the process's: of its calls one runs
	began metric.Durations
}

// New makes a Runner.
func New(o Options) *Runner { return &Runner{o: o} }

// Continue goes on with the sweep that is running to its end, or until ctx ends. It returns at
// once where there is none, or another node goes on with it.
func (r *Runner) Continue(ctx context.Context) error {
	if !r.busy.TryLock() {
		return nil
	}
	defer r.busy.Unlock()
	s, err := Now(ctx, r.o.DB.Read)
	if err != nil || s == nil {
		return err
	}
	mine, err := r.o.DB.Lease(ctx, leaseName, lease)
	if err != nil || !mine {
		return err
	}
	failpoint.Hit("sweep_lease")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		r.renew(ctx, cancel)
	}()
	err = r.run(ctx, s)
	cancel(nil)
	<-renewed
	if errors.Is(err, db.ErrStale) { // another node goes on with it
		return nil
	}
	return err
}

// renew keeps the lease while the sweep runs. Two nodes that run it do no harm: one of them
// has the turn.
func (r *Runner) renew(ctx context.Context, lost context.CancelCauseFunc) {
	for tick := time.NewTicker(lease / 3); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			if mine, err := r.o.DB.Lease(ctx, leaseName, lease); err == nil && !mine {
				lost(db.ErrStale)
			}
		}
	}
}

// run takes the sweep over and goes through what is left of it.
func (r *Runner) run(ctx context.Context, s *Sweep) error {
	r.began = metric.Answered()
	// What the node before has written last is read with the turn: it can write no more.
	var rows []*Sweep
	err := r.o.DB.NewRaw("UPDATE sweeps SET turn = turn + 1, node = ? WHERE id = ? AND state = ? RETURNING *", r.o.DB.NodeName(), s.ID, Running).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("go on with the sweep: %w", err)
	}
	if len(rows) == 0 {
		return db.ErrStale
	}
	s = rows[0]
	left := time.Duration(s.BeganAt+longest.Microseconds()-r.o.DB.Now()) * time.Microsecond
	bound, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err = r.steps(bound, s)
	if bound.Err() != nil && ctx.Err() == nil {
		return r.end(ctx, s, Stopped)
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, db.ErrStale) {
			return cause
		}
		return err
	}
	return r.end(ctx, s, Done)
}

// steps are the scans that are left, and the books.
func (r *Runner) steps(ctx context.Context, s *Sweep) error {
	for s.Scan < len(scans) {
		if err := r.scan(ctx, s, &scans[s.Scan]); err != nil {
			return err
		}
		s.Scan, s.After = s.Scan+1, 0
		if err := r.keep(ctx, s); err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context) ([]Difference, error){r.figures, r.books}[s.Scan-len(scans):] {
		if err := r.keep(ctx, s); err != nil { // it is still ours
			return err
		}
		found, err := check(ctx)
		if err != nil {
			return err
		}
		s.differ(found)
		s.Scan++
		if err := r.keep(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweep) differ(found []Difference) { s.DifferText = text(append(s.Differences(), found...)) }

// scan goes through one table from where it has come to.
func (r *Runner) scan(ctx context.Context, s *Sweep, t *scan) error {
	noted := time.Now()
	for {
		p, err := r.o.page(ctx, t, t.begin(s), t.end(s))
		if err != nil || p == nil {
			return err
		}
		pushed := 0
		for _, f := range p.found {
			for ids := range slices.Chunk(f.ids, chunk) {
				n, err := r.push(ctx, s, p.look, t, f.rule, ids)
				if err != nil {
					return err
				}
				pushed += n
				if err := pause(ctx, time.Duration(n)*time.Second/time.Duration(r.o.Rate)); err != nil {
					return err
				}
			}
		}
		s.LookedAt, s.After = s.LookedAt+p.rows, p.to
		if pushed > 0 || time.Since(noted) > noteEvery {
			noted = time.Now()
			if err := r.keep(ctx, s); err != nil {
				return err
			}
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
	}
}

// push pushes some rows, and writes down how many, in one transaction: no row is counted that
// was not pushed, and none twice.
func (r *Runner) push(ctx context.Context, s *Sweep, l *look, t *scan, by rule, ids []int64) (n int, err error) {
	after := *s
	err = r.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		after = *s
		var err error
		if by.push != nil {
			n, err = by.push(ctx, tx, l, ids)
		} else {
			n, err = l.due(ctx, tx, t.table, by.lost, ids)
		}
		if err != nil {
			return err
		}
		after.count(by.what, n)
		err = r.write(ctx, tx, &after, Running)
		failpoint.Hit("sweep_page")
		return err
	})
	if err == nil {
		*s = after
	}
	return n, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// keep writes down how far the sweep is. Errors: db.ErrStale where another node goes on with it.
func (r *Runner) keep(ctx context.Context, s *Sweep) error {
	return r.write(ctx, r.o.DB, s, Running)
}

// end ends it. What it has pushed stays pushed.
func (r *Runner) end(ctx context.Context, s *Sweep, state State) error {
	now := r.o.DB.Now()
	s.EndedAt = &now
	if p99, ok := metric.Answered().Since(r.began).Quantile(0.99); ok {
		ms := max(p99.Milliseconds(), 1)
		s.P99MS = &ms
	}
	err := r.write(ctx, r.o.DB, s, state)
	if err == nil {
		r.o.Log.Info("sweep", "state", state, "looked_at", s.LookedAt, "pushed", s.PushedRows(), "differences", len(s.Differences()),
			"took", (time.Duration(now-s.BeganAt) * time.Microsecond).Round(time.Millisecond).String())
	}
	return err
}

// write stores what a sweep has come to, by compare-and-set on its turn.
func (r *Runner) write(ctx context.Context, q bun.IDB, s *Sweep, to State) error {
	from := []State{Running}
	if to != Running {
		from = Moves.From(to, Running)
	}
	res, err := q.NewRaw("UPDATE sweeps SET state = ?, ended_at = ?, node = ?, looked_at = ?, pushed = ?, differences = ?, p99_ms = ?, scan = ?, after = ?"+
		" WHERE id = ? AND state IN (?) AND turn = ?", to, s.EndedAt, s.Node, s.LookedAt, string(s.PushedText), string(s.DifferText), s.P99MS, s.Scan, s.After,
		s.ID, bun.List(from), s.Turn).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write what the sweep has done: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(db.ErrStale, err)
	}
	return nil
}
