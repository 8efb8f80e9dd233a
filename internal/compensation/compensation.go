// Package compensation (补单) keeps what people must see or what must be pushed
// to an end: the exception table.
package compensation

import (
	"encoding/json"
	"fmt"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// States are all states of an exception.
var States = []string{Opened, Assigned, "proposed", "approved", "executing", "failed", Resolved, Ignored}

// Unsettled are the states of an exception that has not ended.
var Unsettled = []string{Opened, Assigned, "proposed", "approved", "executing", "failed"}

// Opened is the state in which every exception starts. What is Resolved is open
// again when it is reported again; what is Ignored stays so.
const (
	Opened   = "open"
	Resolved = "resolved"
	Ignored  = "ignored"
)

// Item is one exception. One fact is one row, however often it is reported:
// unique by kind, supplier, subject and order.
type Item struct {
	bun.BaseModel `bun:"table:exceptions,alias:x"`

	ID         int64           `bun:"id,pk"`
	Kind       string          `bun:"kind"`
	State      string          `bun:"state"`
	SupplierID int64           `bun:"supplier_id"`
	MerchantID int64           `bun:"merchant_id"`
	OrderID    int64           `bun:"order_id"`
	OrderNo    string          `bun:"order_no"`
	Subject    string          `bun:"subject"` // supplier trade number, refund, or the notification's id
	Amount     int64           `bun:"amount"`  // minor units that the exception is about
	Currency   string          `bun:"currency"`
	Detail     json.RawMessage `bun:"detail,type:jsonb"`
	Seen       int64           `bun:"seen"` // how often the fact was reported
	OpenedAt   int64           `bun:"opened_at"`
	UpdatedAt  int64           `bun:"updated_at"`
	ResolvedAt *int64          `bun:"resolved_at"`
	Assignee   string          `bun:"assignee"` // an operator; empty = unassigned
	// Outcome is how an exception about money ended, Reference what proves it.
	Outcome   Outcome `bun:"outcome"`
	Reference string  `bun:"reference"`
}

// key is what makes two reports one fact.
func (i *Item) key() string {
	return fmt.Sprintf("%s\x00%d\x00%s\x00%s", i.Kind, i.SupplierID, i.Subject, i.OrderNo)
}

// Open gathers the exceptions among the caller's writes. A fact that is known
// already is counted again; it keeps its state, unless it was resolved.
func Open(tx bun.Tx, w *db.Writes, d *db.DB, items []*Item) {
	if len(items) == 0 {
		return
	}
	now := d.Now()
	seen := map[string]*Item{}
	rows := make([]*Item, 0, len(items))
	for _, i := range items {
		// One statement must not meet one row twice.
		if first := seen[i.key()]; first != nil {
			first.Seen++
			continue
		}
		seen[i.key()] = i
		i.ID, i.State, i.Seen, i.OpenedAt, i.UpdatedAt = d.NewID(), Opened, 1, now, now
		if len(i.Detail) == 0 {
			i.Detail = json.RawMessage("{}")
		}
		rows = append(rows, i)
	}
	w.Add(tx.NewInsert().Model(&rows).On("CONFLICT (kind, supplier_id, subject, order_no) DO UPDATE").
		Set("seen = x.seen + EXCLUDED.seen").Set("updated_at = EXCLUDED.updated_at").Set("detail = EXCLUDED.detail").
		// What was resolved and happens again wants people again.
		Set("state = CASE WHEN x.state = ? THEN ? ELSE x.state END", Resolved, Opened).
		Set("assignee = CASE WHEN x.state = ? THEN '' ELSE x.assignee END", Resolved).
		Set("resolved_at = CASE WHEN x.state = ? THEN NULL ELSE x.resolved_at END", Resolved).
		Set("outcome = CASE WHEN x.state = ? THEN '' ELSE x.outcome END", Resolved).
		Set("reference = CASE WHEN x.state = ? THEN '' ELSE x.reference END", Resolved).
		Set("alerted_at = CASE WHEN x.state = ? THEN NULL ELSE x.alerted_at END", Resolved))
}

// Detail makes an exception's detail. It is shown to people: no secrets.
func Detail(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// Resolve ends the open exceptions of a kind about one subject: somebody took
// what they were about in hand. Reported again, they are open again.
func Resolve(tx bun.Tx, d *db.DB, kind, subject string) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ? WHERE kind = ? AND supplier_id = 0 AND subject = ?"+
		" AND state IN ('open', 'assigned')", Resolved, now, now, kind, subject)
}
