package notify

import (
	"context"

	"backstop/internal/base/db"
	"backstop/internal/merchant"
	"backstop/internal/report"
)

// Unrouted is the channel of a delivery that was created while its recipient's row could not be
// read: it stands for all deliveries that the recipient would have had.
const Unrouted = "unrouted"

// route gives an unrouted delivery the routes of its event. It becomes the first of them, the
// others are created beside it, and all are due; no attempt is counted.
func (s *sender) route(c claimed, m *merchant.Merchant) error {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	routes := []Route{{To: m.Recipient(), Channel: Webhook, URL: c.URL, Skip: SwitchedOff}}
	return s.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if !c.ToSubscriber {
			routes = merchantRoutes(m, c.EventType, c.URL)
		} else if follows, err := s.follows(ctx, tx, m, c); err != nil {
			return err
		} else if follows {
			routes = subscriberRoutes(m, c.EventType)
		}
		return s.writeRoutes(ctx, tx, c, routes)
	})
}

// follows reports whether a subscriber follows the merchant whose event it is.
func (s *sender) follows(ctx context.Context, tx db.Tx, m *merchant.Merchant, c claimed) (bool, error) {
	var of int64
	if err := tx.NewRaw("SELECT merchant_id FROM "+AllEvents+" AS e WHERE id = ?", c.EventID).Scan(ctx, &of); err != nil {
		return false, err
	}
	owner := s.o.Directory().ByID(of)
	return owner != nil && m.Subscribes(owner.Code, c.EventType), nil
}

func (s *sender) writeRoutes(ctx context.Context, tx db.Tx, c claimed, routes []Route) error {
	now := s.o.DB.Now()
	fact := Fact{SubjectID: c.SubjectID, Type: c.EventType, Currency: c.Currency, Amount: c.Amount, Trace: c.Trace}
	all := make([]Delivery, len(routes))
	for i, r := range routes {
		all[i] = r.delivery(&fact, now)
		all[i].ID, all[i].EventID, all[i].Shared = s.o.DB.NewID(), c.EventID, len(routes) > 1 && !c.ToSubscriber
		all[i].CreatedAt, all[i].Counted = c.CreatedAt, c.Counted && r.Skip == "" // the event keeps its age
	}
	first := all[0]
	res, err := tx.NewRaw(
		"UPDATE deliveries SET channel = ?, endpoint = ?, url = ?, status = ?, last_class = ?, next_at = ?, finished_at = ?,"+
			" shared = ?, counted = ?, attempts = attempts - 1, lease_owner = 0 WHERE id = ? AND attempts = ? AND lease_owner = ? AND status = ?",
		first.Channel, first.Endpoint, first.URL, first.Status, first.LastClass, first.NextAt, first.FinishedAt,
		first.Shared, first.Counted, c.ID, c.Attempts, s.o.DB.Boot(), Sending).Exec(ctx)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return nil // its lease ended, and another node has claimed it
	}
	if len(all) > 1 {
		if err := ownRow(ctx, tx, c); err != nil {
			return err
		}
		rest := all[1:]
		if _, err := tx.NewInsert().Model(&rest).Exec(ctx); err != nil {
			return err
		}
	}
	if first.Status != Skipped || c.ToSubscriber {
		return nil
	}
	w, unnotified := tx.Writes(), report.NewDelta(now)
	unnotified.Unnotified(c.RecipientID, c.Currency, -1, -c.Amount)
	if c.Counted {
		unnotified.Unraised(c.CreatedAt, c.Currency, c.Amount)
	}
	unnotified.Write(w, s.o.DB)
	return w.Exec(ctx)
}

// ownRow gives an event that is stored in its only delivery a row of its own, which the
// deliveries that share its money lock.
func ownRow(ctx context.Context, tx db.Tx, c claimed) error {
	for _, query := range []string{
		"INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at)" +
			" SELECT id, merchant_id, subject_id, type, version, body, created_at FROM delivery_events WHERE id = ?",
		"UPDATE deliveries SET version = NULL, body = NULL WHERE id = ?",
	} {
		if _, err := tx.NewRaw(query, c.ID).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
