// Package booking writes what one transaction does to money on its way out: entries, changes of
// status, notifications and compensations, all or none, and wakes the workers after the commit.
package booking

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/notify"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Deps are what every Write needs.
type Deps struct {
	DB       *db.DB
	Settings *settings.Store
	Ledger   *ledger.Ledger
	Nudger   *notify.Nudger
	Local    *notify.Dispatcher // of this process; nil = none
	Schedule compensation.Schedule
	// Nudge makes compensations run soon; best effort. nil = the tick finds them.
	Nudge func([]queue.Nudge)
}

// Write collects what one transaction does, until Send.
type Write struct {
	b       *Deps
	Tx      db.Tx
	W       *db.Writes
	Entries fact.Entries
	Items   []*compensation.Item
	changes []Change
	facts   []notify.Fact
}

// Begin returns an empty Write.
func (b *Deps) Begin(tx db.Tx) *Write { return &Write{b: b, Tx: tx, W: tx.Writes()} }

// Notify adds a notification to a merchant about a version of a subject, with its view. url is
// where the subject is notified; "" = the merchant's own.
func (x *Write) Notify(kind string, merchantID, subjectID, version int64, url string, view any) {
	x.facts = append(x.facts, notify.Fact{
		MerchantID: merchantID, SubjectID: subjectID, Type: kind, Version: version, At: x.b.DB.Now(),
		Routes: notify.Routes(x.b.Settings.Merchants(), merchantID, kind, url), Data: view,
	})
}

// Send writes everything, and nudges after the commit.
func (x *Write) Send(ctx context.Context) error {
	if err := x.Fill(ctx); err != nil {
		return err
	}
	if err := x.W.Exec(ctx); err != nil {
		return fmt.Errorf("book money on its way out: %w", err)
	}
	return nil
}

// Fill posts the entries and adds everything to W, for what else its transaction writes.
func (x *Write) Fill(ctx context.Context) error {
	b, items := x.b, x.Items
	if err := b.Ledger.Post(ctx, x.Tx, x.W, x.Entries); err != nil {
		return err
	}
	if len(x.changes) > 0 {
		x.W.Insert(&x.changes, "")
	}
	nudges, err := notify.Create(ctx, x.W, b.DB, b.Local, x.facts)
	if err != nil {
		return err
	}
	b.Schedule.OpenDue(x.W, b.DB, items...)
	x.Tx.OnEnd(func(err error) {
		if err == nil {
			b.Nudger.Now(slices.Concat(nudges...))
			b.Wake(items...)
		}
	})
	return nil
}

// Wake makes compensations run soon.
func (b *Deps) Wake(items ...*compensation.Item) {
	if b.Nudge == nil || len(items) == 0 {
		return
	}
	all := make([]queue.Nudge, len(items))
	for i, x := range items {
		all[i] = queue.Nudge{Delivery: x.ID, Recipient: x.Lane, At: b.DB.Now()}
	}
	b.Nudge(all)
}

// SupplierCode returns a supplier's code, nearly always from memory.
func (b *Deps) SupplierCode(q bun.IDB, id int64) (code string, err error) {
	if e, ok := b.Settings.Current().Suppliers.ByID(id); ok {
		return e.Code, nil
	}
	if err = q.NewRaw("SELECT code FROM suppliers WHERE id = ?", id).Scan(context.Background(), &code); err != nil {
		return "", fmt.Errorf("read the supplier's code: %w", err)
	}
	return code, nil
}

// SupplierName is SupplierCode from memory alone; "?" if this node does not have the supplier.
func (b *Deps) SupplierName(id int64) string {
	if e, ok := b.Settings.Current().Suppliers.ByID(id); ok {
		return e.Code
	}
	return "?"
}

// MerchantCode returns a merchant's code, nearly always from memory.
func (b *Deps) MerchantCode(q bun.IDB, id int64) (code string, err error) {
	if x := b.Settings.Merchants().ByID(id); x != nil {
		return x.Code, nil
	}
	if err = q.NewRaw("SELECT code FROM merchants WHERE id = ?", id).Scan(context.Background(), &code); err != nil {
		return "", fmt.Errorf("read the merchant's code: %w", err)
	}
	return code, nil
}
