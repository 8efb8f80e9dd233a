package work

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
)

const (
	// claimBatch is the maximum number of rows of one claim and of results of one transaction:
	// more than one transaction creates, so that both catch up under load.
	claimBatch = 256
	// maxUnwritten bounds the jobs that have run but whose results are not committed yet: a
	// slow database slows the work down instead of filling memory.
	maxUnwritten = 1024
	// writeTries is the maximum number of attempts to commit a result.
	writeTries = 5
	// queryTime bounds one read of the rows, one claim and one release.
	queryTime = 5 * time.Second
)

// Options of a Worker.
type Options[T, R any] struct {
	DB     *db.DB
	Slots  *Slots
	Source Source[T]
	// Lease is how long a claim lasts: longer than any run takes.
	Lease time.Duration
	// Gather is how long a claim, and a commit of results, wait for others: fewer transactions,
	// where the rest of the program needs the database more than this work does. 0 = at once.
	Gather time.Duration
	// Run does one job. ctx ends when a shutdown can wait no longer.
	Run func(ctx context.Context, x Slot, row T) Ran[R]
	// Commit writes the results of several jobs. committed runs once after the commit, before
	// any of their lanes continues; it may be nil. A result whose commit was not confirmed comes
	// again: Commit must recognise one that is stored already.
	Commit func(ctx context.Context, tx db.Tx, all []R) (committed func(), err error)
	// Written is called for each committed result.
	Written func(R)
	// Observe is called for each transaction of results, and Use after slots were granted.
	Observe func(items int, took time.Duration, err error)
	Use     func(Stats)
	Log     *slog.Logger
}

// Worker runs a source's jobs in slots.
//
// A job passes three steps: the claim of its row (or its creation as claimed, see Creation), a
// slot, and the run. In a lane that is not known to be healthy, the slot comes before the
// claim. The claim is a compare-and-set in SQL and alone decides which node runs the job, so
// an id may be offered any number of times.
type Worker[T, R any] struct {
	o       Options[T, R]
	results *db.Batcher[R, func()]

	mu        sync.Mutex
	wake      *sync.Cond // there is something to claim, or the worker closes
	timer     *time.Timer
	toClaim   []Slot
	claimed   map[int64]Claimed[T] // claimed ahead and not begun, by job
	unwritten int
	closing   bool

	ctx      context.Context // ends runs that outlast the shutdown
	cancel   context.CancelFunc
	claimers sync.WaitGroup
	calls    sync.WaitGroup
}

// NewWorker starts a worker.
func NewWorker[T, R any](o Options[T, R]) *Worker[T, R] {
	w := &Worker[T, R]{o: o, claimed: map[int64]Claimed[T]{}}
	w.wake = sync.NewCond(&w.mu)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.timer = time.AfterFunc(time.Hour, w.pump)
	w.results = db.NewBatcher(o.DB, db.BatchOptions[R, func()]{
		Size: claimBatch, Writers: 2, Queue: maxUnwritten * 2, Gather: o.Gather, Observe: o.Observe,
	}, w.commit)
	claimers := 1
	if o.DB.IsPostgres() && o.Gather == 0 {
		claimers = 2
	}
	for range claimers {
		w.claimers.Go(w.claimLoop)
	}
	return w
}

// Offer takes jobs that are due now or at their moment. It never blocks; a job that does not
// fit is left to its row.
func (w *Worker[T, R]) Offer(jobs ...Job) {
	w.o.Slots.Offer(w.o.DB.Now(), jobs...)
	w.pump()
}

// Pull makes the worker read the lanes' due rows.
func (w *Worker[T, R]) Pull(lanes ...int64) {
	now := w.o.DB.Now()
	w.o.Slots.Age(now)
	w.o.Slots.More(now, lanes...)
	w.pump()
}

// Go runs f without a slot; Close waits for it. It does nothing after Close.
func (w *Worker[T, R]) Go(f func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closing {
		w.calls.Go(func() { f(w.ctx) })
	}
}

// Pending returns how many jobs have a slot and no claim yet, have a claim and no slot, or
// have run and wait for the commit of their result.
func (w *Worker[T, R]) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.toClaim) + len(w.claimed) + w.unwritten
}

// Close stops taking work and waits for running jobs until ctx ends; then it cancels them.
// Their results are written either way. A second call does nothing.
func (w *Worker[T, R]) Close(ctx context.Context) {
	w.mu.Lock()
	if w.closing {
		w.mu.Unlock()
		return
	}
	w.closing = true
	w.timer.Stop()
	w.wake.Broadcast()
	for id, c := range w.claimed {
		delete(w.claimed, id)
		go w.releaseAhead(c)
	}
	w.mu.Unlock()
	w.claimers.Wait()
	stop := context.AfterFunc(ctx, w.cancel)
	w.calls.Wait()
	stop()
	w.cancel()
	w.results.Close()
}

// pump starts the jobs that have a slot.
func (w *Worker[T, R]) pump() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next()
}

// next is pump with w.mu held.
func (w *Worker[T, R]) next() {
	if w.closing || w.unwritten >= maxUnwritten {
		return
	}
	now := w.o.DB.Now()
	grant, refill, wakeAt := w.o.Slots.Next(now)
	for _, x := range grant {
		if !x.Claimed && !x.Closed {
			w.toClaim = append(w.toClaim, x)
			w.wake.Signal()
			continue
		}
		c := w.claimed[x.ID]
		delete(w.claimed, x.ID)
		c.Slot = x
		if x.Closed {
			go w.releaseAhead(c)
			continue
		}
		go func() {
			defer w.calls.Done() // counted since it was claimed
			w.run(c)
		}()
	}
	for _, lane := range refill {
		w.calls.Go(func() { w.refill(lane) })
	}
	if wakeAt > 0 {
		w.timer.Reset(time.Duration(max(wakeAt-now, 0)) * time.Microsecond)
	}
	if w.o.Use != nil {
		w.o.Use(w.o.Slots.Stats())
	}
}

// refill reads a lane's next due rows.
func (w *Worker[T, R]) refill(lane int64) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	jobs, err := w.o.Source.Due(ctx, lane, w.o.DB.Now(), PageSize)
	if err != nil {
		w.o.Log.Error("read due jobs", "lane", lane, "error", db.ErrorText(err))
	}
	w.o.Slots.Refilled(w.o.DB.Now(), lane, jobs, len(jobs) == PageSize)
	w.pump()
}

// claimLoop claims the jobs that Slots has granted, in batches. A probe is claimed alone and
// concurrently: it may have to be leased first.
func (w *Worker[T, R]) claimLoop() {
	for {
		w.mu.Lock()
		for len(w.toClaim) == 0 && !w.closing {
			w.wake.Wait()
		}
		if len(w.toClaim) == 0 {
			w.mu.Unlock()
			return
		}
		if w.o.Gather > 0 && len(w.toClaim) < claimBatch && !w.closing {
			w.mu.Unlock()
			time.Sleep(w.o.Gather)
			w.mu.Lock()
		}
		n := min(len(w.toClaim), claimBatch)
		batch := make([]Slot, 0, n)
		for _, x := range w.toClaim[:n] {
			if x.Probe {
				w.calls.Go(func() { w.claim([]Slot{x}) })
			} else {
				batch = append(batch, x)
			}
		}
		w.toClaim = append(w.toClaim[:0], w.toClaim[n:]...)
		w.mu.Unlock()
		if len(batch) > 0 {
			w.claim(batch)
		}
	}
}

// hold keeps a job that is claimed ahead until there is a slot for it. w.mu is held.
func (w *Worker[T, R]) hold(c Claimed[T]) {
	if w.closing {
		go w.releaseAhead(c)
		return
	}
	w.claimed[c.Slot.ID] = c
	w.o.Slots.Committed(c.Slot)
}

// releaseAhead releases a job that was claimed ahead and will not run.
func (w *Worker[T, R]) releaseAhead(c Claimed[T]) {
	defer w.calls.Done()
	w.release(c, w.o.DB.Now())
}

// claim claims a batch. It runs the claimed jobs that have a slot, and frees the slots of the
// jobs that were not claimed.
func (w *Worker[T, R]) claim(batch []Slot) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	l := w.lease()
	all, err := w.o.Source.Claim(ctx, batch, l)
	if err != nil {
		w.o.Log.Error("claim jobs", "error", db.ErrorText(err))
	}
	got := make(map[int64]bool, len(all))
	for _, c := range all {
		got[c.Slot.ID] = true
		if c.Slot.Ahead {
			w.calls.Add(1) // until it has run
			w.mu.Lock()
			w.hold(c)
			w.mu.Unlock()
			continue
		}
		if c.Slot.Probe {
			w.o.Slots.Began(c.Slot)
		}
		w.calls.Go(func() { w.run(c) })
	}
	now := w.o.DB.Now()
	for _, x := range batch {
		if !got[x.ID] {
			w.o.Slots.Return(now, x, false)
		}
	}
	w.pump()
}

func (w *Worker[T, R]) lease() Lease {
	return Lease{Owner: w.o.DB.Boot(), Until: w.o.DB.Now() + w.o.Lease.Microseconds()}
}

// run runs a claimed job. After a success the slot is freed at once, while the result is
// committed; the row stays leased until then. Otherwise the slot is kept until the commit: the
// gate must reflect a failure, or the result of a probe, before the next job begins.
func (w *Worker[T, R]) run(c Claimed[T]) {
	late := time.AfterFunc(SlowAfter, func() {
		w.o.Slots.Late(c.Slot)
		w.pump()
	})
	ran := w.o.Run(w.ctx, c.Slot, c.Row)
	late.Stop()
	if len(ran.Results) == 0 {
		w.release(c, ran.ReleaseAt)
		return
	}
	free := func() { w.o.Slots.Done(w.o.DB.Now(), c.Slot, ran.Took, ran.OK) }
	if !ran.OK || c.Slot.Probe {
		w.write(c.Slot.ID, ran.Results)
		free()
		w.pump()
		return
	}
	w.mu.Lock()
	w.unwritten++
	free()
	w.next()
	w.mu.Unlock()
	w.write(c.Slot.ID, ran.Results)
	w.mu.Lock()
	w.unwritten--
	w.next()
	w.mu.Unlock()
}

// release frees the slot of a job that was not tried, and releases its row unless at is 0.
func (w *Worker[T, R]) release(c Claimed[T], at int64) {
	if at != 0 {
		ctx, cancel := context.WithTimeout(context.Background(), queryTime)
		defer cancel()
		if err := w.o.Source.Release(ctx, c.Row, at); err != nil {
			w.o.Log.Error("release a claim", "error", db.ErrorText(err))
		}
	}
	w.o.Slots.Return(w.o.DB.Now(), c.Slot, true)
	w.pump()
}

// write commits results. If a result cannot be written, its row stays leased and runs again
// after the lease (at least once).
func (w *Worker[T, R]) write(id int64, all []R) {
	var rest sync.WaitGroup
	for _, r := range all[1:] {
		rest.Go(func() { w.Write(id, r) })
	}
	w.Write(id, all[0])
	rest.Wait()
}

// Write commits one result. From outside it is for a job that an earlier process ran.
func (w *Worker[T, R]) Write(id int64, r R) {
	for try := range writeTries {
		committed, err := w.results.Do(context.Background(), r)
		if err == nil {
			committed()
			w.o.Written(r)
			return
		}
		if try == writeTries-1 {
			w.o.Log.Error("write the result of a job", "job", id, "error", db.ErrorText(err))
			return
		}
		time.Sleep(time.Duration(try+1) * 100 * time.Millisecond)
	}
}

// commit is one transaction of results. Its waiters continue when committed has run, once for
// all of them.
func (w *Worker[T, R]) commit(ctx context.Context, tx db.Tx, all []R) ([]func(), error) {
	committed, err := w.o.Commit(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	if committed == nil {
		committed = func() {}
	}
	once := sync.OnceFunc(committed)
	done := make([]func(), len(all))
	for i := range done {
		done[i] = once
	}
	return done, nil
}
