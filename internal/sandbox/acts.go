package sandbox

import (
	"context"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// dismissed is the setting that ends the guide: the time at which an operator closed it.
const dismissed = "guide_dismissed"

// Acts returns the acts of the guide, except MakeAct, which changes the settings. Those that
// create an order and send a callback only record who did it: what follows is made as for every
// merchant and supplier.
func Acts(d *db.DB) []act.Kind {
	load := func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
		return []act.Subject{{ID: refs[0].ID}}, nil
	}
	recorded := act.Kind{Object: ActObject, Permission: access.ProposeSettings, NoReason: true, Load: load}
	created, called, closed := recorded, recorded, recorded
	created.Name, called.Name, closed.Name = OrderAct, CallbackAct, DismissAct
	closed.Do = func(ctx context.Context, tx db.Tx, _ act.Input, all []act.Subject) ([]act.Outcome, error) {
		_, err := tx.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", dismissed, d.Now()).Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("close the guide: %w", err)
		}
		return make([]act.Outcome, len(all)), nil
	}
	return []act.Kind{created, called, closed}
}

// State is how far an installation is with its first steps, as it is stored.
type State struct {
	Made      bool // the sandbox, or a supplier and a merchant of one's own
	Sandbox   bool // the sandbox exists
	Created   bool // an order
	Paid      bool // an order of the sandbox; without a sandbox, any callback
	Delivered bool // a notification
	Dismissed bool

	// OrderNo is the newest order: of the sandbox, if there is one.
	OrderNo string
	Amount  int64
	Waits   bool // it is not paid yet
}

// Over reports whether the guide is not shown.
func (s State) Over() bool { return s.Dismissed || s.Delivered && !s.Sandbox }

// recent bounds how many orders and deliveries are looked at, newest first.
const recent = 1000

// Read reads the state of the first steps, by a few rows.
func Read(ctx context.Context, q bun.IDB) (s State, err error) {
	has := func(query string, args ...any) (is bool) {
		var found []int64
		if err == nil {
			if err = q.NewRaw(query, args...).Scan(ctx, &found); err != nil {
				err = fmt.Errorf("read the first steps: %w", err)
			}
		}
		return len(found) > 0
	}
	if s.Dismissed = has("SELECT value FROM settings WHERE name = ?", dismissed); s.Dismissed || err != nil {
		return s, err
	}
	s.Sandbox = has("SELECT m.id FROM merchants AS m, suppliers AS s WHERE m.code = ? AND s.code = ?", Code, Code)
	s.Made = s.Sandbox || has("SELECT id FROM suppliers LIMIT 1") && has("SELECT id FROM merchants LIMIT 1")
	of := ""
	if s.Sandbox {
		of = " WHERE merchant_id = (SELECT id FROM merchants WHERE code = ?)"
	}
	var rows []struct {
		OrderNo string
		Amount  int64
		Status  order.Status
		PaidAt  *int64
	}
	if err == nil {
		err = q.NewRaw("SELECT order_no, amount, status, paid_at FROM (SELECT * FROM orders ORDER BY id DESC LIMIT ?) AS o"+of+
			" ORDER BY id DESC LIMIT 1", recent, Code).Scan(ctx, &rows)
	}
	if err != nil {
		return s, fmt.Errorf("read the first steps: %w", err)
	}
	for _, r := range rows {
		s.Created, s.Paid, s.OrderNo, s.Amount = true, r.PaidAt != nil, r.OrderNo, r.Amount
		s.Waits = order.Moves.Can(r.Status, order.Paid)
	}
	s.Delivered = has("SELECT id FROM (SELECT id, status FROM deliveries ORDER BY id DESC LIMIT ?) AS d WHERE status = ? LIMIT 1", recent,
		notify.Delivered)
	return s, err
}
