// Package exception keeps what an operator must see: payments that fit no order,
// notifications that were not delivered, messages that cannot be read.
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

// Item is one exception. One fact is one row, however often it is reported:
// unique by kind, supplier, subject and order. A dispute is unique without its
// order, which may be found only by a later message.
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
	Amount     int64           `bun:"amount"`  // minor units that the exception is about
	Currency   string          `bun:"currency"`
	Detail     json.RawMessage `bun:"detail,type:jsonb"`
	Seen       int64           `bun:"seen"` // how often the fact was reported
	OpenedAt   int64           `bun:"opened_at"`
	UpdatedAt  int64           `bun:"updated_at"`
	ResolvedAt *int64          `bun:"resolved_at"`
	Assignee   string          `bun:"assignee"` // an operator; empty = unassigned
	// OccurredAt is when the fact in the detail happened, by the supplier's clock (Unix
	// µs): an older report that comes late does not replace it. 0 = the last report
	// counts.
	OccurredAt int64 `bun:"occurred_at"`
	// Outcome is how an exception about money ended, Reference what proves it.
	Outcome   Outcome `bun:"outcome"`
	Reference string  `bun:"reference"`
	// Version counts the changes that a decision must know of: the state, and the money.
	Version int64 `bun:"version"`
	// CallbackID is the callback that reported the fact first; 0 = a call, or an older row.
	CallbackID int64 `bun:"callback_id"`
	// Payload is the message as it was verified (JSON); "" = it is not known any more.
	Payload string `bun:"payload"`
	// DecidedBy is the approval that ended it; 0 = none.
	DecidedBy int64 `bun:"decided_by"`
	// HeldRef is the ledger entry that holds its money in suspense; "" = none.
	HeldRef string `bun:"held_ref"`
}

// key is equal for two reports of one fact.
func (i *Item) key() string {
	key := fmt.Sprintf("%s\x00%d\x00%s", i.Kind, i.SupplierID, i.Subject)
	if i.Kind == DisputeOpened {
		return key
	}
	return key + "\x00" + i.OrderNo
}

// merge counts another report of the same fact.
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

// Open adds the exceptions to the caller's writes. A fact that is stored already is
// counted again and keeps its state, unless it was resolved: then it is open again,
// unassigned, and alerts again. Another amount is another version: no proposal of before
// is about it.
func Open(tx db.Tx, w *db.Writes, d *db.DB, items []*Item) {
	now := d.Now()
	seen := map[string]*Item{}
	for _, i := range items {
		if len(i.Detail) == 0 {
			i.Detail = json.RawMessage("{}")
		}
		// One statement must not meet one row twice.
		if first := seen[i.key()]; first != nil {
			first.merge(i)
			continue
		}
		seen[i.key()] = i
		i.ID, i.State, i.Seen, i.Version, i.OpenedAt, i.UpdatedAt = d.NewID(), Opened, 1, 1, now, now
	}
	var disputes, others []*Item
	// Several transactions report the same rows: they are locked in one order.
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

// report inserts rows, or counts them where the unique columns are stored already.
func report(tx db.Tx, w *db.Writes, rows []*Item, unique string) {
	if len(rows) == 0 {
		return
	}
	const (
		newer = "EXCLUDED.occurred_at >= x.occurred_at"
		money = "(" + newer + " AND (EXCLUDED.amount <> x.amount OR EXCLUDED.currency <> x.currency) OR EXCLUDED.held_ref <> '' AND EXCLUDED.held_ref <> x.held_ref)"
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

// Detail makes an exception's detail. Operators see it: no secrets.
func Detail(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}
