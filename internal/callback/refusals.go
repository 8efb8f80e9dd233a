package callback

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/report"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
	"golang.org/x/time/rate"
)

// Limits of the recorder. Anything above is only counted: forgeries must neither fill the disk
// nor keep the writer from real callbacks.
const (
	keepBytes    = 4 << 10                // stored of body, header and query each
	keepCode     = 64                     // stored of an unknown supplier's code, which can be anything
	refusalQueue = 512                    // refusals waiting to be written
	refusalBatch = 100                    // rows of one insert
	refusalFlush = 200 * time.Millisecond // how long the first row waits for others
	writeTimeout = 5 * time.Second
	countEvery   = time.Second
	pruneStep    = 500 // rows per delete
	pruneSteps   = 20  // deletes per run; the next run continues
)

// RefusalOptions bound a recorder.
type RefusalOptions struct {
	DB   *db.DB
	Rate int // recorded per second and supplier; unknown suppliers share one budget (REFUSED_RATE)
	Rows int // stored; the oldest are deleted first (REFUSED_ROWS)
	Log  *slog.Logger
}

// Refusals records refused callbacks, after the answer and separately from all commits of
// money.
type Refusals struct {
	o     RefusalOptions
	queue chan refusal
	stop  chan struct{}
	close sync.Once
	done  chan struct{}

	mu      sync.Mutex
	buckets map[int64]*rate.Limiter // by supplier; 0 = unknown. As many as suppliers are configured
	counts  map[refusalCount]int64  // since they were last written, recorded or not

	written int // rows since the last pruning
}

// refusal is one refused call, bounded in size.
type refusal struct {
	id         int64
	supplier   string
	outcome    string
	receivedAt int64
	request    *supplier.Request
	steps      []supplier.Step
}

// refusalCount is what refusals are counted by.
type refusalCount struct {
	supplierID int64
	outcome    string
}

// refusedRow is a refusal as stored.
type refusedRow struct {
	bun.BaseModel `bun:"table:refused_callbacks,alias:rc"`

	ID         int64  `bun:"id,pk"`
	Supplier   string `bun:"supplier"`
	Outcome    string `bun:"outcome"`
	ReceivedAt int64  `bun:"received_at"`
	RemoteAddr string `bun:"remote_addr"`
	Method     string `bun:"method"`
	Query      string `bun:"query"`
	Headers    string `bun:"headers"`
	Body       []byte `bun:"body"`
	Steps      string `bun:"steps"`
}

// NewRefusals starts a recorder.
func NewRefusals(o RefusalOptions) *Refusals {
	r := &Refusals{
		o: o, queue: make(chan refusal, refusalQueue), stop: make(chan struct{}), done: make(chan struct{}),
		buckets: map[int64]*rate.Limiter{}, counts: map[refusalCount]int64{},
	}
	go r.run()
	return r
}

// Close writes pending rows and stops the recorder.
func (r *Refusals) Close() {
	r.close.Do(func() { close(r.stop) })
	<-r.done
}

// note queues a refusal, or returns false if it is over the budget. It never blocks, so the
// answer does not wait.
func (r *Refusals) note(supplierID int64, f refusal) bool {
	r.count(supplierID, f.outcome)
	if !r.Spare(supplierID) {
		return false
	}
	req := *f.request
	req.Body = bytes.Clone(req.Body[:min(len(req.Body), keepBytes)]) // or a full queue would hold 512 whole bodies
	f.request = &req
	f.id = r.o.DB.NewID() // now: lists are sorted by id, and the row is written later
	f.supplier = textlimit.Cut(f.supplier, keepCode)
	select {
	case r.queue <- f:
		return true
	default:
		return false
	}
}

// Spare takes one record from a supplier's budget; false = used up. Repeats of taken messages
// use the same budget.
func (r *Refusals) Spare(supplierID int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[supplierID]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(r.o.Rate), r.o.Rate)
		r.buckets[supplierID] = b
	}
	return b.Allow()
}

// count counts a refusal of a known supplier for its figures. A crash loses up to a second of
// counts.
func (r *Refusals) count(supplierID int64, outcome string) {
	if supplierID == 0 {
		return
	}
	r.mu.Lock()
	r.counts[refusalCount{supplierID, outcome}]++
	r.mu.Unlock()
}

// writeCounts adds the counts to the figures.
func (r *Refusals) writeCounts() {
	r.mu.Lock()
	counts := r.counts
	r.counts = map[refusalCount]int64{}
	r.mu.Unlock()
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	figures := report.NewDelta(r.o.DB.Now())
	for k, n := range counts {
		figures.Refused(k.supplierID, k.outcome, n)
	}
	err := r.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		figures.Write(w, r.o.DB)
		return w.Exec(ctx)
	})
	if err != nil {
		r.o.Log.Warn("refused callbacks could not be counted", "error", err)
	}
}

func (r *Refusals) run() {
	defer close(r.done)
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case first := <-r.queue:
			r.write(r.gather(first))
		case <-tick.C:
			r.writeCounts()
		case <-r.stop:
			for len(r.queue) > 0 {
				r.write(r.gather(<-r.queue))
			}
			r.writeCounts()
			return
		}
	}
}

// gather waits briefly for more refusals, so that a flood costs a few transactions per second
// instead of one each.
func (r *Refusals) gather(first refusal) []refusal {
	batch := []refusal{first}
	flush := time.NewTimer(refusalFlush)
	defer flush.Stop()
	for len(batch) < refusalBatch {
		select {
		case next := <-r.queue:
			batch = append(batch, next)
		case <-flush.C:
			return batch
		case <-r.stop:
			if len(r.queue) == 0 {
				return batch
			}
		}
	}
	return batch
}

func (r *Refusals) write(batch []refusal) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	rows := make([]refusedRow, len(batch))
	for i, f := range batch {
		rows[i] = r.row(f)
	}
	if _, err := r.o.DB.NewInsert().Model(&rows).Exec(ctx); err != nil {
		r.o.Log.Warn("refused callbacks could not be recorded", "callbacks", len(rows), "error", err)
		return
	}
	r.written += len(rows)
	if r.written < max(1, r.o.Rows/100) {
		return
	}
	r.written = 0
	if err := r.prune(ctx); err != nil {
		r.o.Log.Warn("old refused callbacks could not be deleted", "error", err)
	}
}

func (r *Refusals) row(f refusal) refusedRow {
	body := f.request.Body
	if body == nil {
		body = []byte{}
	}
	return refusedRow{
		ID: f.id, Supplier: textlimit.Storable(f.supplier), Outcome: f.outcome, ReceivedAt: f.receivedAt,
		RemoteAddr: addrText(f.request), Method: textlimit.Storable(f.request.Method),
		Query:   textlimit.Cut(storableQuery(f.request), keepBytes),
		Headers: textlimit.Cut(storableHeader(f.request.Header), keepBytes),
		Body:    body, Steps: supplier.Steps(f.steps).Text(),
	}
}

// prune deletes the oldest rows above the limit, in short steps that hold no lock for long.
func (r *Refusals) prune(ctx context.Context) error {
	var beyond []int64
	err := r.o.DB.NewRaw("SELECT id FROM refused_callbacks ORDER BY id DESC LIMIT 1 OFFSET ?", r.o.Rows).Scan(ctx, &beyond)
	if err != nil || len(beyond) == 0 {
		return err
	}
	for range pruneSteps {
		res, err := r.o.DB.NewRaw("DELETE FROM refused_callbacks WHERE id IN"+
			" (SELECT id FROM refused_callbacks WHERE id <= ? ORDER BY id LIMIT ?)", beyond[0], pruneStep).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete refused callbacks: %w", err)
		}
		if n, _ := res.RowsAffected(); n < pruneStep {
			return nil
		}
	}
	return nil
}
