package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Audit names of viewing what is masked.
const (
	UnmaskOrder        = "order.unmask"
	UnmaskCallback     = "callback.unmask"
	UnmaskNotification = "notification.unmask"
	UnmaskException    = "exception.unmask"
)

// UnmaskActs record that an operator viewed an object unmasked. They change nothing. Ref.ID is the
// number of an order or the public id of a notification, Ref.Row the id of the others.
var UnmaskActs = []act.Kind{
	{Name: UnmaskOrder, Object: "order", Permission: access.ViewPersonal, Load: order.Load},
	{Name: UnmaskCallback, Object: "callback", Permission: access.ViewPersonal, Load: loadCallbacks},
	{Name: UnmaskNotification, Object: "notification", Permission: access.ViewPersonal, Load: loadNotifications},
	{Name: UnmaskException, Object: ExceptionObject, Permission: access.ViewPersonal, Load: exception.Load},
}

// loadCallbacks finds callbacks, also refused ones, by id.
func loadCallbacks(ctx context.Context, q bun.IDB, refs []act.Ref) (subjects []act.Subject, err error) {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = r.Row
	}
	var rows []struct {
		ID         int64
		OrderNo    string
		MerchantID int64
	}
	err = q.NewRaw("SELECT c.id, c.order_no, COALESCE(o.merchant_id, 0) AS merchant_id FROM callbacks AS c"+
		" LEFT JOIN orders AS o ON o.id = c.order_id WHERE c.id IN (?0)"+
		" UNION ALL SELECT id, '', 0 FROM refused_callbacks WHERE id IN (?0)", bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("find callbacks: %w", err)
	}
	for _, r := range rows {
		subjects = append(subjects, act.Subject{
			Row: r.ID, ID: strconv.FormatInt(r.ID, 10), MerchantID: r.MerchantID, OrderNo: r.OrderNo,
		})
	}
	return subjects, nil
}

// loadNotifications finds notifications by public id.
func loadNotifications(ctx context.Context, q bun.IDB, refs []act.Ref) (subjects []act.Subject, err error) {
	for _, r := range refs {
		event, err := notify.FindEvent(ctx, q, r.ID)
		if errors.Is(err, notify.ErrNoDelivery) {
			continue
		}
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, act.Subject{Row: event.ID, ID: r.ID, MerchantID: event.MerchantID})
	}
	return subjects, nil
}
