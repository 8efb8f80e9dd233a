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
	// pageRows is the number of rows read per statement.
	pageRows = 500
	// chunk is the number of rows pushed per transaction; callbacks wait for it on SQLite.
	chunk = 50
	// rest is the pause between two pages without lost rows.
	rest = 5 * time.Millisecond
	// noteEvery is how often progress over such pages is stored.
	noteEvery = time.Second
	// lease is how long a node that ended keeps others from continuing.
	lease = 30 * time.Second
	// leaseName is the name of the lease.
	leaseName = "sweep"
)

// Options of a Runner.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Schedule compensation.Schedule // of compensations that query closed orders
	Keys     *seal.Keyring         // of the audit, which verify checks
	Rate     int                   // rows pushed per second
	// Keep is the retention of orders' rows and counters; older ones are not recounted.
	Keep time.Duration
	Zone *time.Location // of the days of figures
	Log  *slog.Logger
}

// Runner continues the running sweep. It is safe for concurrent use.
type Runner struct {
	o     Options
	busy  sync.Mutex // the lease belongs to the process: one call runs at a time
	began metric.Durations
}

// New returns a Runner.
func New(o Options) *Runner { return &Runner{o: o} }

// Continue continues the running sweep until it ends or ctx ends. It returns at once if there
// is none, or if another node is working on it.
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
	r.yield(ctx)
	if errors.Is(err, db.ErrStale) { // another node continues it
		return nil
	}
	return err
}

// yield lets the next sweep, or another node, begin at once.
func (r *Runner) yield(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := r.o.DB.Yield(ctx, leaseName); err != nil {
		r.o.Log.Warn("sweep", "err", err)
	}
}

// renew keeps the lease while the sweep runs. Two nodes running it do no harm: only one of them
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

// run takes over the sweep and does the rest of it.
func (r *Runner) run(ctx context.Context, s *Sweep) error {
	r.began = metric.Answered()
	// The previous node's last state is read together with taking the turn, after which that
	// node can no longer write.
	var rows []*Sweep
	err := r.o.DB.NewRaw("UPDATE sweeps SET turn = turn + 1, node = ? WHERE id = ? AND state = ? RETURNING *", r.o.DB.NodeName(), s.ID,
		Running).Scan(ctx, &rows)
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

// steps runs the remaining scans, and checks the books.
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
	for _, check := range []func(context.Context) ([]Difference, error){r.Figures, r.books}[s.Scan-len(scans):] {
		if err := r.keep(ctx, s); err != nil { // checks that it is still ours
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

func (s *Sweep) differ(found []Difference) { s.DifferText = encode(append(s.Differences(), found...)) }

// scan continues the scan of one table.
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

// push pushes some rows and stores their number in one transaction, so that exactly the pushed
// rows are counted, once.
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

// keep stores the progress of the sweep. Errors: db.ErrStale if another node continues it.
func (r *Runner) keep(ctx context.Context, s *Sweep) error {
	return r.write(ctx, r.o.DB, s, Running)
}

// end ends the sweep. What it has pushed stays pushed.
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

// write stores the state of a sweep, by compare-and-set on its turn.
func (r *Runner) write(ctx context.Context, q bun.IDB, s *Sweep, to State) error {
	from := []State{Running}
	if to != Running {
		from = Moves.From(to, Running)
	}
	res, err := q.NewRaw(
		"UPDATE sweeps SET state = ?, ended_at = ?, node = ?, looked_at = ?, pushed = ?, differences = ?, p99_ms = ?, scan = ?, after = ?"+
			" WHERE id = ? AND state IN (?) AND turn = ?", to, s.EndedAt, s.Node, s.LookedAt, string(s.PushedText), string(s.DifferText),
		s.P99MS, s.Scan, s.After,
		s.ID, bun.List(from), s.Turn).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store the progress of the sweep: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(db.ErrStale, err)
	}
	return nil
}
