package payment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Limits on repeats of a message. One genuine message can be sent as often as the connection
// allows: it must neither fill the disk nor keep the writer from new payments.
const (
	repeatsEvery   = time.Second // minimum interval between writes of a message's count
	repeatsKept    = 5           // raw repeats stored per message
	repeatsOpen    = 10_000      // messages counted between two writes; further ones are counted by supplier only
	repeatsTimeout = 5 * time.Second
)

// repeats counts messages that were taken before, apart from the commit batches. A crash loses
// up to a second of counts, but never a payment.
type repeats struct {
	db    *db.DB
	log   *slog.Logger
	spare func(supplierID int64) bool // whether the budget allows one more raw record

	mu     sync.Mutex
	open   map[int64]*repeat // by the callback that was taken
	other  map[int64]int64   // by supplier, beyond repeatsOpen
	enough map[int64]bool    // messages with repeatsKept stored repeats

	stop chan struct{}
	done chan struct{}
}

// repeat counts one message since the last write.
type repeat struct {
	supplierID, seen, lastAt int64
	lastAddr                 string
	raw                      []callbackRow
}

// repeatRow is a message's count as stored.
type repeatRow struct {
	bun.BaseModel `bun:"table:callback_repeats,alias:cr"`

	CallbackID int64  `bun:"callback_id,pk"`
	Seen       int64  `bun:"seen"`
	LastSeenAt int64  `bun:"last_seen_at"`
	LastAddr   string `bun:"last_addr"`
	Kept       int64  `bun:"kept"`
}

func newRepeats(o Options) *repeats {
	r := &repeats{
		db: o.DB, log: o.Log, spare: o.Spare, open: map[int64]*repeat{}, other: map[int64]int64{}, enough: map[int64]bool{},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// note counts one repeat of a callback. It never blocks.
func (r *repeats) note(of int64, row *callbackRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.open[of]
	if x == nil {
		if len(r.open) >= repeatsOpen {
			r.other[row.SupplierID]++
			return
		}
		x = &repeat{supplierID: row.SupplierID}
		r.open[of] = x
	}
	x.seen++
	x.lastAt, x.lastAddr = row.ReceivedAt, row.RemoteAddr
	if len(x.raw) < repeatsKept && !r.enough[of] && r.spare != nil && r.spare(row.SupplierID) {
		x.raw = append(x.raw, *row)
	}
}

func (r *repeats) run() {
	defer close(r.done)
	tick := time.NewTicker(repeatsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.flush()
		case <-r.stop:
			r.flush()
			return
		}
	}
}

// close writes the counts and stops the recorder.
func (r *repeats) close() {
	close(r.stop)
	<-r.done
}

func (r *repeats) flush() {
	r.mu.Lock()
	open, other := r.open, r.other
	r.open, r.other = map[int64]*repeat{}, map[int64]int64{}
	r.mu.Unlock()
	if len(open)+len(other) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), repeatsTimeout)
	defer cancel()
	var full []int64
	err := r.db.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		full, err = r.write(ctx, tx, open, other)
		return err
	})
	if err != nil {
		r.log.Warn("repeats of callbacks could not be counted", "messages", len(open), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.enough) > repeatsOpen {
		clear(r.enough)
	}
	for _, id := range full {
		r.enough[id] = true
	}
}

// write adds the counts, by id because another node may count the same messages, and stores the
// first repeats raw. It returns the messages for which enough are stored.
func (r *repeats) write(ctx context.Context, tx db.Tx, open map[int64]*repeat, other map[int64]int64) (full []int64, err error) {
	w := tx.Writes()
	x := report.NewDelta(r.db.Now())
	for supplierID, n := range other {
		x.Callback(supplierID, Repeat, n)
	}
	rows := make([]repeatRow, 0, len(open))
	for id, o := range open {
		rows = append(rows, repeatRow{CallbackID: id, Seen: o.seen, LastSeenAt: o.lastAt, LastAddr: o.lastAddr})
		x.Callback(o.supplierID, Repeat, o.seen)
	}
	slices.SortFunc(rows, func(a, b repeatRow) int { return cmp.Compare(a.CallbackID, b.CallbackID) })
	var raw []callbackRow
	for part := range slices.Chunk(rows, 500) { // the number of parameters of a statement is limited
		var known []repeatRow
		if _, err := tx.NewInsert().Model(&part).On("CONFLICT (callback_id) DO UPDATE").
			Set("seen = cr.seen + EXCLUDED.seen").Set("last_seen_at = EXCLUDED.last_seen_at").Set("last_addr = EXCLUDED.last_addr").
			Returning("callback_id, kept").Exec(ctx, &known); err != nil {
			return nil, fmt.Errorf("count repeats: %w", err)
		}
		for _, k := range known {
			more := open[k.CallbackID].raw
			more = more[:max(0, min(int64(len(more)), repeatsKept-k.Kept))]
			if k.Kept+int64(len(more)) == repeatsKept {
				full = append(full, k.CallbackID)
			}
			if len(more) > 0 {
				raw = append(raw, more...)
				w.Add(tx.NewRaw("UPDATE callback_repeats SET kept = kept + ? WHERE callback_id = ?", len(more), k.CallbackID))
			}
		}
	}
	if len(raw) > 0 {
		w.Insert(&raw, "")
	}
	x.Write(w, r.db)
	return full, w.Exec(ctx)
}
