package notify

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// An address that answers 429 or 503 with Retry-After gets nothing before that time, from any
// node: a recipient's origin, whichever endpoint or order it belongs to. Other addresses are
// used as in failover. What only that address could get waits in its row, its status and
// attempts unchanged.

// Resent is the last class of a delivery that an operator has resent while an address of its
// recipient asks us to wait: its next attempt does not wait. It is never the class of an attempt.
const Resent Class = "resent"

// waitRow says until when a recipient's origin gets nothing.
type waitRow struct {
	bun.BaseModel `bun:"table:endpoint_waits,alias:ew"`

	RecipientID int64  `bun:"recipient_id,pk"`
	Origin      string `bun:"origin,pk"`
	Until       int64  `bun:"until"`
}

type waitKey struct {
	recipientID int64
	origin      string
}

// readWaits reads what all nodes wrote. A wait only grows until it ends, so what this node has
// noted and not yet committed stays.
func (h *health) readWaits(ctx context.Context) {
	var rows []waitRow
	now := h.db.Now()
	err := h.db.Read.NewSelect().Model(&rows).Where("ew.until > ?", now).OrderExpr("ew.until DESC").Limit(healthRows).Scan(ctx)
	if err != nil {
		h.log.Error("read until when addresses get nothing", "error", db.ErrorText(err))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.waits, func(_ waitKey, until int64) bool { return until <= now })
	for _, r := range rows {
		h.wait(r)
	}
}

func (h *health) wait(r waitRow) {
	k := waitKey{r.RecipientID, r.Origin}
	h.waits[k] = max(h.waits[k], r.Until)
}

func (h *health) noWaits() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waits) == 0
}

// waitUntil returns until when an address of a recipient gets nothing; 0 = it may be used now.
func (h *health) waitUntil(recipientID int64, address string, now int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := h.waits[waitKey{recipientID, originOf(address)}]; until > now {
		return until
	}
	return 0
}

// noteWaits returns the waits that results ask for, in the same order on all nodes, which
// prevents deadlocks.
func (h *health) noteWaits(won []*outcome) []waitRow {
	asked := map[waitKey]int64{}
	for _, o := range won {
		if o.waitUntil > 0 {
			k := waitKey{o.claimed.RecipientID, o.origin}
			asked[k] = max(asked[k], o.waitUntil)
		}
	}
	rows := make([]waitRow, 0, len(asked))
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, until := range asked {
		r := waitRow{RecipientID: k.recipientID, Origin: k.origin, Until: until}
		h.wait(r)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b waitRow) int {
		return cmp.Or(cmp.Compare(a.RecipientID, b.RecipientID), cmp.Compare(a.Origin, b.Origin))
	})
	return rows
}

// open returns the endpoints that may be used now, or, if all of them ask us to wait, all and
// until when the first of them does.
func (h *health) open(m *merchant.Merchant, usable []*merchant.Endpoint, now int64) (open []*merchant.Endpoint, until int64) {
	if h.noWaits() {
		return usable, 0
	}
	for _, e := range usable {
		switch wait := h.waitUntil(m.ID, e.URL, now); {
		case wait == 0:
			open = append(open, e)
		case until == 0 || wait < until:
			until = wait
		}
	}
	if len(open) == 0 {
		return usable, until
	}
	return open, 0
}

// waitOf returns until when every address of a delivery gets nothing; 0 = one may be used now.
func (h *health) waitOf(m *merchant.Merchant, d *Delivery, now int64) (until int64) {
	switch {
	case h.noWaits():
	case d.URL != "":
		return h.waitUntil(d.RecipientID, d.URL, now)
	case m != nil:
		_, usable := endpointsFor(m, d.Channel, d.Endpoint, d.EventType)
		_, until = h.open(m, usable, now)
	}
	return until
}
