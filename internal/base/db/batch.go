package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy means that an item waited too long, or that too many others were waiting. It may
// have been committed nevertheless; the caller may try again.
var ErrBusy = errors.New("too busy: try again")

// ErrCommitUnknown means that the connection broke during the commit: the items may or
// may not be stored. The caller must not claim either.
var ErrCommitUnknown = errors.New("the database did not confirm the commit")

// BatchOptions bound a Batcher.
type BatchOptions[In, Out any] struct {
	Size    int           // maximum number of items in one transaction
	Writers int           // transactions at a time; always one on SQLite
	Queue   int           // maximum number of waiting items; further ones get ErrBusy at once
	Wait    time.Duration // maximum time from Do to the result; 0 = until its transaction has ended
	// Gather is how long the first item of a transaction waits for others, where fewer commits
	// are worth more than this time; 0 = it commits at once.
	Gather time.Duration
	// Key identifies what an item works on: two items with the same key are never in one
	// transaction; the second waits for the next. nil = no such rule.
	Key func(In) string
	// After runs once per committed transaction, after its callers have their results, to
	// send nudges. It must not block. Optional.
	After func([]In, []Out)
	// Observe runs for each transaction, for metrics. Optional.
	Observe func(items int, took time.Duration, err error)
}

// Batcher implements group commit: all items that are waiting when a writer becomes free form
// one transaction, and each caller gets the result of its own item. A single item commits at
// once. While transactions run, another one begins when as many items wait as the running
// ones carry on average: under load, batches grow by themselves instead of starting with the
// first item that arrives.
//
// If a transaction fails, its items run again one by one, so that one bad item cannot stop the
// others.
type Batcher[In, Out any] struct {
	db    *DB
	o     BatchOptions[In, Out]
	run   func(context.Context, Tx, []In) ([]Out, error)
	queue chan *batchItem[In, Out]
	// held counts items that writers took and postponed because of their key.
	held atomic.Int64
	// turn lets one writer gather at a time: two would halve each other's batches.
	turn   sync.Mutex
	load   load
	stop   chan struct{}
	closed sync.Once
	done   sync.WaitGroup
}

type batchItem[In, Out any] struct {
	in    In
	out   Out
	err   error
	gone  atomic.Bool   // the caller has stopped waiting
	ready chan struct{} // closed when out and err are set
}

// NewBatcher starts the writers. run must return one Out per In, in order.
func NewBatcher[In, Out any](d *DB, o BatchOptions[In, Out], run func(context.Context, Tx, []In) ([]Out, error)) *Batcher[In, Out] {
	if !d.IsPostgres() || o.Writers < 1 {
		o.Writers = 1
	}
	b := &Batcher[In, Out]{
		db: d, o: o, run: run, queue: make(chan *batchItem[In, Out], o.Queue), stop: make(chan struct{}),
		load: load{ended: make(chan struct{}, 1)},
	}
	for range o.Writers {
		b.done.Go(b.write)
	}
	return b
}

// Do queues the item and waits for its transaction. ErrBusy and ctx's error mean that the
// outcome is unknown. A caller that repeats its item by itself must not get them while the
// transaction runs, or the item would be in two: it sets no Wait, and gives no ctx that ends.
// ErrBusy then means that the item was not taken.
func (b *Batcher[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	it := &batchItem[In, Out]{in: in, ready: make(chan struct{})}
	select {
	case <-b.stop:
		return out, ErrBusy
	default:
	}
	select {
	case b.queue <- it:
	default:
		return out, ErrBusy
	}
	var patience <-chan time.Time
	if b.o.Wait > 0 {
		timer := time.NewTimer(b.o.Wait)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-it.ready:
		return it.out, it.err
	case <-patience:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	it.gone.Store(true)
	return out, err
}

// Waiting returns how many items wait for a transaction.
func (b *Batcher[In, Out]) Waiting() int { return len(b.queue) + int(b.held.Load()) }

// Close lets the writers commit all waiting items and then stops them.
func (b *Batcher[In, Out]) Close() {
	b.closed.Do(func() { close(b.stop) })
	b.done.Wait()
}

func (b *Batcher[In, Out]) write() {
	var held []*batchItem[In, Out]
	for {
		batch := b.gather(&held)
		if batch == nil {
			return
		}
		b.load.begin(len(batch))
		b.commit(batch)
		b.load.end(len(batch))
	}
}

// gather waits for one item and takes all other waiting ones. It returns nil when the Batcher
// is closed and nothing is waiting.
func (b *Batcher[In, Out]) gather(held *[]*batchItem[In, Out]) []*batchItem[In, Out] {
	// Held items have already waited for one transaction: they do not wait for a turn.
	if len(*held) == 0 {
		b.turn.Lock()
		defer b.turn.Unlock()
	}
	var batch []*batchItem[In, Out]
	keys := map[string]bool{}
	var later []*batchItem[In, Out]
	take := func(it *batchItem[In, Out]) {
		if it.gone.Load() {
			return
		}
		if b.o.Key != nil {
			k := b.o.Key(it.in)
			if keys[k] {
				later = append(later, it)
				return
			}
			keys[k] = true
		}
		batch = append(batch, it)
	}
	for _, it := range *held {
		take(it)
	}
	for len(batch) == 0 {
		select {
		case it := <-b.queue:
			take(it)
		case <-b.stop:
			select {
			case it := <-b.queue:
				take(it)
			default:
				return nil
			}
		}
	}
	// later is bounded too: many items with the same key must not exceed the queue's memory
	// bound.
	var patience <-chan time.Time
	for len(batch) < b.o.Size && len(later) < b.o.Size {
		select {
		case it := <-b.queue:
			take(it)
			continue
		default:
		}
		if len(*held) > 0 || b.o.Gather == 0 && b.load.carries(len(batch)) {
			break
		}
		if patience == nil {
			timer := time.NewTimer(cmp.Or(b.o.Gather, maxGather))
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case it := <-b.queue:
			take(it)
			continue
		case <-b.load.ended:
			continue
		case <-patience:
		case <-b.stop:
		}
		break
	}
	b.held.Add(int64(len(later) - len(*held)))
	*held = later
	return batch
}

func (b *Batcher[In, Out]) commit(batch []*batchItem[In, Out]) {
	outs, err := b.attempt(batch)
	if err == nil || errors.Is(err, ErrCommitUnknown) {
		for i, it := range batch {
			if err == nil {
				it.out = outs[i]
			}
			it.end(err)
		}
		b.after(batch, outs, err)
		return
	}
	for _, it := range batch {
		b.alone(it)
	}
}

// conflictTries is how often an item runs that loses against other transactions. Each loss
// means that another transaction won, so the retries end.
const conflictTries = 5

func (b *Batcher[In, Out]) alone(it *batchItem[In, Out]) {
	for try := 1; ; try++ {
		outs, err := b.attempt([]*batchItem[In, Out]{it})
		if err == nil {
			it.out = outs[0]
		} else if (IsConflict(err) || IsUnique(err)) && try < conflictTries && !it.gone.Load() {
			// If a key exists already, another process has just written the same fact. The
			// next run reads it.
			continue
		}
		it.end(err)
		b.after([]*batchItem[In, Out]{it}, outs, err)
		return
	}
}

func (b *Batcher[In, Out]) after(batch []*batchItem[In, Out], outs []Out, err error) {
	if b.o.After == nil || err != nil {
		return
	}
	ins := make([]In, len(batch))
	for i, it := range batch {
		ins[i] = it.in
	}
	b.o.After(ins, outs)
}

// txTimeout bounds one transaction: a hanging database must not block a writer forever.
const txTimeout = 10 * time.Second

func (b *Batcher[In, Out]) attempt(batch []*batchItem[In, Out]) (outs []Out, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), txTimeout)
	defer cancel()
	start := time.Now()
	ran := false // run succeeded: a later error is an error of the commit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("batch panicked: %v\n%s", p, debug.Stack())
		}
		if b.o.Observe != nil {
			b.o.Observe(len(batch), time.Since(start), err)
		}
	}()
	ins := make([]In, len(batch))
	for i, it := range batch {
		ins[i] = it.in
	}
	err = b.db.SharedTx(ctx, func(ctx context.Context, tx Tx) error {
		var err error
		outs, err = b.run(ctx, tx, ins)
		if err == nil && len(outs) != len(ins) {
			err = fmt.Errorf("batch of %d returned %d results", len(ins), len(outs))
		}
		ran = err == nil
		return err
	})
	if err != nil && ran {
		return nil, fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return outs, err
}

func (it *batchItem[In, Out]) end(err error) {
	it.err = err
	close(it.ready)
}
