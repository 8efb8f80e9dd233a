// Package exception stores what an operator must see: payments that match no order,
// notifications that were not delivered, messages that cannot be parsed.
package exception

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Item is one exception. One fact is one row, however often it is reported: unique by kind,
// supplier, subject and order. A dispute is unique without its order, which a later message may
// supply.
type Item struct {
	bun.BaseModel `bun:"table:exceptions,alias:x"`

	ID         int64           `bun:"id,pk"`
	Kind       string          `bun:"kind"`
	State      State           `bun:"state"`
	SupplierID int64           `bun:"supplier_id"`
	MerchantID int64           `bun:"merchant_id"`
	OrderID    int64           `bun:"order_id"`
	OrderNo    string          `bun:"order_no"`
	Subject    string          `bun:"subject"` // supplier trade number, refund, or the notification's id
	Amount     int64           `bun:"amount"`  // in minor units
	Currency   string          `bun:"currency"`
	Detail     json.RawMessage `bun:"detail,type:jsonb"`
	Seen       int64           `bun:"seen"` // how often the fact was reported
	OpenedAt   int64           `bun:"opened_at"`
	UpdatedAt  int64           `bun:"updated_at"`
	ResolvedAt *int64          `bun:"resolved_at"`
	Assignee   string          `bun:"assignee"` // an operator; empty = unassigned
	// OccurredAt is when the fact happened, by the supplier's clock (Unix µs): an older report
	// that arrives late does not replace a newer one. 0 = the last report counts.
	OccurredAt int64 `bun:"occurred_at"`
	// Outcome is how an exception about money ended; Reference is the proof.
	Outcome   Outcome `bun:"outcome"`
	Reference string  `bun:"reference"`
	// Version counts the changes relevant to decisions: of state and money.
	Version int64 `bun:"version"`
	// CallbackID is the callback that first reported the fact; 0 = a call to the supplier, or
	// an older row.
	CallbackID int64 `bun:"callback_id"`
	// Payload is the verified message (JSON); "" = no longer available.
	Payload string `bun:"payload"`
	// DecidedBy is the approval that ended it; 0 = none.
	DecidedBy int64 `bun:"decided_by"`
	// HeldRef is the ledger entry that holds its money in suspense; "" = none.
	HeldRef string `bun:"held_ref"`
}

// key is the same for two reports of one fact.
func (i *Item) key() string {
	key := fmt.Sprintf("%s\x00%d\x00%s", i.Kind, i.SupplierID, i.Subject)
	if i.Kind == DisputeOpened {
		return key
	}
	return key + "\x00" + i.OrderNo
}

// merge adds another report of the same fact.
func (i *Item) merge(other *Item) {
	i.Seen++
	if other.OccurredAt >= i.OccurredAt {
		i.Detail, i.Amount, i.Currency, i.OccurredAt = other.Detail, other.Amount, other.Currency, other.OccurredAt
		i.Payload = cmp.Or(other.Payload, i.Payload)
	}
	i.CallbackID, i.HeldRef = cmp.Or(i.CallbackID, other.CallbackID), cmp.Or(other.HeldRef, i.HeldRef)
	if other.OrderID != 0 {
		i.OrderID, i.OrderNo, i.MerchantID = other.OrderID, other.OrderNo, other.MerchantID
	}
}

// Open adds the exceptions to the caller's writes. For a fact that is already stored, the count
// is increased and the state kept, unless it was resolved: then it is reopened, unassigned, and
// alerts again. A different amount increases the version, so that earlier proposals no longer
// apply.
func Open(tx db.Tx, w *db.Writes, d *db.DB, items []*Item) {
	now := d.Now()
	seen := map[string]*Item{}
	for _, i := range items {
		if len(i.Detail) == 0 {
			i.Detail = json.RawMessage("{}")
		}
		// One statement must not affect the same row twice.
		if first := seen[i.key()]; first != nil {
			first.merge(i)
			continue
		}
		seen[i.key()] = i
		i.ID, i.State, i.Seen, i.Version, i.OpenedAt, i.UpdatedAt = d.NewID(), Opened, 1, 1, now, now
	}
	var disputes, others []*Item
	// Several transactions may report the same rows; they lock them in the same order.
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if seen[key].Kind == DisputeOpened {
			disputes = append(disputes, seen[key])
		} else {
			others = append(others, seen[key])
		}
	}
	report(tx, w, disputes, "(supplier_id, subject) WHERE kind = '"+DisputeOpened+"'")
	report(tx, w, others, "(kind, supplier_id, subject, order_no)")
}

// report inserts rows, or counts a report if the unique columns are already stored.
func report(tx db.Tx, w *db.Writes, rows []*Item, unique string) {
	if len(rows) == 0 {
		return
	}
	const (
		newer = "EXCLUDED.occurred_at >= x.occurred_at"
		money = "(" + newer +
			" AND (EXCLUDED.amount <> x.amount OR EXCLUDED.currency <> x.currency) OR EXCLUDED.held_ref <> '' AND EXCLUDED.held_ref <> x.held_ref)"
	)
	q := tx.NewInsert().Model(&rows).On("CONFLICT "+unique+" DO UPDATE").
		Set("seen = x.seen + EXCLUDED.seen").Set("updated_at = EXCLUDED.updated_at").
		Set("version = x.version + CASE WHEN x.state = ? AND "+newer+" OR "+money+" THEN 1 ELSE 0 END", Resolved).
		Set("callback_id = CASE WHEN x.callback_id = 0 THEN EXCLUDED.callback_id ELSE x.callback_id END").
		Set("payload = CASE WHEN EXCLUDED.payload <> '' AND " + newer + " THEN EXCLUDED.payload ELSE x.payload END").
		Set("held_ref = CASE WHEN EXCLUDED.held_ref <> '' THEN EXCLUDED.held_ref ELSE x.held_ref END")
	for _, column := range []string{"detail", "amount", "currency", "occurred_at"} {
		q = q.Set(column + " = CASE WHEN " + newer + " THEN EXCLUDED." + column + " ELSE x." + column + " END")
	}
	for _, column := range []string{"order_id", "order_no", "merchant_id"} {
		q = q.Set(column + " = CASE WHEN EXCLUDED.order_id <> 0 THEN EXCLUDED." + column + " ELSE x." + column + " END")
	}
	for _, again := range [][2]string{
		{"state", "'" + string(Opened) + "'"},
		{"assignee", "''"},
		{"outcome", "''"},
		{"reference", "''"},
		{"resolved_at", "NULL"},
		{"alerted_at", "NULL"},
		{"decided_by", "0"},
	} {
		q = q.Set(again[0]+" = CASE WHEN x.state = ? AND "+newer+" THEN "+again[1]+" ELSE x."+again[0]+" END", Resolved)
	}
	w.Add(q)
}

// Annotate adds fields to the exception's detail. Operators see it: no secrets.
func (i *Item) Annotate(more map[string]any) {
	fields := map[string]any{}
	if len(i.Detail) > 0 && json.Unmarshal(i.Detail, &fields) != nil {
		return // not an object; Detail makes only objects
	}
	maps.Copy(fields, more)
	i.Detail = Detail(fields)
}

// Detail returns an exception's detail as JSON. Operators see it: no secrets.
func Detail(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}
