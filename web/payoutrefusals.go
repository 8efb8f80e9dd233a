package web

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
)

// Limits of the alerts about refused requests for payouts: a client with a stolen key decides how
// many there are, and from how many addresses.
const (
	// refusedFlush is how long refusals are counted before they are written.
	refusedFlush = time.Second
	// refusedAddresses bounds the addresses that are named for a merchant within
	// refusedForget; others are counted together.
	refusedAddresses = 10
	refusedForget    = 10 * time.Minute
	refusedTimeout   = 5 * time.Second
)

// payoutRefusals counts refused requests for payouts by merchant, cause and address.
type payoutRefusals struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	pending map[string]int64 // by the subject of the alert
	named   map[string]map[string]bool
	since   time.Time // of named
}

func newPayoutRefusals(d *db.DB, log *slog.Logger) *payoutRefusals {
	return &payoutRefusals{db: d, log: log, pending: map[string]int64{}, named: map[string]map[string]bool{}, since: time.Now()}
}

// note counts a refusal; it is written within refusedFlush.
func (r *payoutRefusals) note(merchant, cause string, from netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.since) > refusedForget {
		r.named, r.since = map[string]map[string]bool{}, time.Now()
	}
	of := r.named[merchant]
	if of == nil {
		of = map[string]bool{}
		r.named[merchant] = of
	}
	address := from.String()
	if from.Is6() {
		address = SenderOf(from)
	}
	if !of[address] && len(of) >= refusedAddresses {
		address = alert.OtherAddresses
	}
	of[address] = true
	if len(r.pending) == 0 {
		time.AfterFunc(refusedFlush, r.flush)
	}
	r.pending[alert.RefusedPayout(merchant, cause, address)]++
}

// flush writes what was counted.
func (r *payoutRefusals) flush() {
	r.mu.Lock()
	pending := r.pending
	r.pending = map[string]int64{}
	r.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	var events []alert.Event
	for subject, n := range pending {
		events = append(events, alert.Event{Rule: alert.PayoutRefused, Subject: subject, Count: n})
	}
	ctx, cancel := context.WithTimeout(context.Background(), refusedTimeout)
	defer cancel()
	if err := r.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return alert.Record(ctx, tx, r.db, events) }); err != nil {
		r.log.Warn("refused requests for payouts could not be recorded", "error", err)
	}
}
