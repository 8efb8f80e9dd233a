package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/exception"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// ErrSending means that an attempt is running; another can only follow it.
var ErrSending = errors.New("an attempt is running")

// ErrNoDelivery means that there is no such notification.
var ErrNoDelivery = errors.New("no such notification")

// resendAll makes notifications due at once and returns what to nudge after the commit. An
// ended one starts its schedule again, and its exception is resolved until that schedule is
// used up too; a waiting one is sent now and keeps its place in the schedule. The
// notification's id stays the same, so that the recipient recognises the repeat. as maps the
// deliveries' ids to the status that the caller saw, "" = any: one that has ended since is not
// changed. Refused ones are returned with ErrNoDelivery, ErrSending or act.ErrChanged.
func resendAll(ctx context.Context, tx db.Tx, d *db.DB, as map[int64]Status) (nudges []queue.Nudge, refused map[int64]error, err error) {
	refused = map[int64]error{}
	for id := range as {
		refused[id] = ErrNoDelivery // until it is found
	}
	var rows, over []Delivery
	q := tx.NewSelect().Model(&rows).Where("d.id IN (?)", bun.List(slices.Collect(maps.Keys(as)))).OrderExpr("d.id")
	if err := d.ForUpdate(q).Scan(ctx); err != nil {
		return nil, nil, fmt.Errorf("read notifications: %w", err)
	}
	now, w := d.Now(), tx.Writes()
	for _, r := range rows {
		switch seen := as[r.ID]; {
		case r.EventType == Ping:
			continue // sent while its requester waits, or not at all
		case r.Status == Sending:
			refused[r.ID] = ErrSending
			continue
		case seen != "" && r.Status != seen && (r.Status == Delivered || r.Status == Skipped):
			refused[r.ID] = act.ErrChanged
			continue
		}
		delete(refused, r.ID)
		from := r.ScheduleFrom
		if r.Status == Delivered {
			r.Currency, r.Amount = "", 0 // the merchant was notified of this money: none is at risk
		}
		if r.NextAt == nil {
			from, over = r.Attempts, append(over, r)
		}
		w.Guard(tx.NewRaw("UPDATE deliveries SET status = ?, next_at = ?, schedule_from = ?, finished_at = NULL, currency = ?, amount = ?"+
			" WHERE id = ? AND status = ?", RetryWait, now, from, r.Currency, r.Amount, r.ID, r.Status), 1)
		nudges = append(nudges, queue.Nudge{Delivery: r.ID, Recipient: r.RecipientID})
	}
	if err := reopen(ctx, tx, d, w, over); err != nil {
		return nil, nil, err
	}
	if err := w.Exec(ctx); err != nil {
		return nil, nil, fmt.Errorf("resend notifications: %w", err)
	}
	return nudges, refused, nil
}

// SendExhausted makes notifications that ran out of attempts due at once, with the same body
// and id and a new schedule, and returns what to nudge after the commit. Others are left
// unchanged.
func SendExhausted(ctx context.Context, tx db.Tx, d *db.DB, ids ...int64) ([]queue.Nudge, error) {
	var exhausted []int64
	err := tx.NewRaw("SELECT id FROM deliveries WHERE id IN (?) AND status = ?", bun.List(ids), Exhausted).Scan(ctx, &exhausted)
	if err != nil || len(exhausted) == 0 {
		return nil, err
	}
	as := make(map[int64]Status, len(exhausted))
	for _, id := range exhausted {
		as[id] = Exhausted
	}
	nudges, _, err := resendAll(ctx, tx, d, as)
	return nudges, err
}

// ExhaustedOf finds the deliveries of orders that ran out of attempts, with the notification
// of each as the merchant knows it, which is what its exception is about.
func ExhaustedOf(ctx context.Context, q bun.IDB, orders []int64) (map[int64]string, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID, SubjectID int64
		EventType     string
	}
	err := q.NewRaw("SELECT id, subject_id, event_type FROM deliveries WHERE subject_id IN (?) AND status = ? AND NOT to_subscriber AND event_type <> ?",
		bun.List(orders), Exhausted, Ping).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read exhausted notifications: %w", err)
	}
	of := make(map[int64]string, len(rows))
	for _, r := range rows {
		of[r.ID] = PublicID(r.SubjectID, r.EventType)
	}
	return of, nil
}

// Neediest returns the delivery of an event that should be resent first: exhausted before
// waiting ones, and the merchant's before those of subscribers.
func Neediest(all []*Delivery) *Delivery {
	rank := func(x *Delivery) (n int) {
		switch row := Moves.Of(x.Status); {
		case row.NeedsPerson:
			n = 0
		case row.Open:
			n = 2
		default:
			n = 4
		}
		if x.ToSubscriber {
			n++
		}
		return n
	}
	return slices.MinFunc(all, func(a, b *Delivery) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID)) })
}

// reopen counts the money of ended deliveries as at risk again, unless another delivery of the
// event is already counted, and resolves the exceptions of their events, unless another
// delivery has run out of attempts as well.
func reopen(ctx context.Context, tx db.Tx, d *db.DB, w *db.Writes, over []Delivery) error {
	if len(over) == 0 {
		return nil
	}
	var ids, shared, subjects []int64
	for _, r := range over {
		ids = append(ids, r.ID)
		if r.Shared {
			shared, subjects = append(shared, r.EventID), append(subjects, r.SubjectID)
		}
	}
	counted, exhausted := map[int64]bool{}, []int64{} // by event
	if len(shared) > 0 {
		var err error
		if counted, err = undeliveredShares(ctx, tx, d, shared, subjects); err != nil {
			return err
		}
		err = tx.NewRaw(
			"SELECT event_id FROM deliveries WHERE subject_id IN (?) AND event_id IN (?) AND id NOT IN (?) AND status = ? AND NOT to_subscriber",
			bun.List(subjects), bun.List(shared), bun.List(ids), Exhausted).Scan(ctx, &exhausted)
		if err != nil {
			return fmt.Errorf("read the deliveries of events: %w", err)
		}
	}
	x := report.NewDelta(d.Now())
	for _, r := range over {
		if !r.Shared || !counted[r.EventID] {
			x.Unnotified(r.RecipientID, r.Currency, 1, r.Amount)
		}
		if r.Shared && r.Currency != "" {
			counted[r.EventID] = true
		}
		if !r.Shared || !slices.Contains(exhausted, r.EventID) {
			kind, subject := exceptionKey(r.PublicID(), r.Recipient())
			w.Add(exception.Resolve(tx, d, kind, subject))
		}
	}
	x.Write(w, d)
	return nil
}
