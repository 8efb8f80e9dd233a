package order

import (
	"context"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"

	"github.com/uptrace/bun"
)

// NoteAct is the audit name of a note on an order.
const NoteAct = "order.note"

// Acts record a note on the order Ref.ID. They change no order.
var Acts = []act.Kind{{Name: NoteAct, Object: "order", Permission: access.Comment, Load: Load}}

// Load finds orders by number.
func Load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	numbers := make([]string, len(refs))
	for i, r := range refs {
		numbers[i] = r.ID
	}
	var rows []Order
	err := q.NewSelect().Model(&rows).Column("id", "order_no", "merchant_id", "version", "amount", "currency").
		Where("o.order_no IN (?)", bun.List(numbers)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("find orders: %w", err)
	}
	subjects := make([]act.Subject, len(rows))
	for i, o := range rows {
		subjects[i] = act.Subject{
			Row: o.ID, ID: o.OrderNo, MerchantID: o.MerchantID, Version: o.Version, Amount: o.Amount,
			Currency: o.Currency,
		}
	}
	return subjects, nil
}
