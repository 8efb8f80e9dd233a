// Package rerun runs a flow again from its start: the supplier is asked, and what it answers
// is confirmed.
package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/compensation"
	"backstop/internal/order"
)

// Payload is what to run again, and what for.
type Payload struct {
	Order   int64  `json:"order"` // its id
	Purpose string `json:"purpose,omitempty"`
}

// MadeBy is the part of the program that opens items for orders that are stuck.
const MadeBy = "stuck_paying"

// Stuck is what to open where no step is left of an order that a supplier is asked about.
func Stuck(o *order.Order, supplierID int64) *compensation.Item {
	return &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfOrder, SubjectID: o.ID, OrderNo: o.OrderNo,
		FromVersion: o.Version, MerchantID: o.MerchantID, SupplierID: supplierID, Amount: o.Amount, Currency: o.Currency, MadeBy: MadeBy,
		Payload: json.RawMessage(fmt.Sprintf(`{"order":%d,"purpose":"stuck_paying"}`, o.ID)),
	}
}

// MadeBySweep is the part of the program that has suppliers asked about closed orders.
const MadeBySweep = "sweep"

// ofClosed is the purpose of asking about an order that is closed.
const ofClosed = "closed_unasked"

// Closed is what to open where an order was closed and its supplier was not asked: money may
// have come all the same.
func Closed(o *order.Order) *compensation.Item {
	return &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfOrder, SubjectID: o.ID, OrderNo: o.OrderNo,
		FromVersion: o.Version, MerchantID: o.MerchantID, SupplierID: o.SupplierID, Amount: o.Amount, Currency: o.Currency, MadeBy: MadeBySweep,
		Payload: json.RawMessage(fmt.Sprintf(`{"order":%d,"purpose":%q}`, o.ID, ofClosed)),
	}
}

// Asker asks the supplier about an order and confirms the answer. It says WasOver where the
// order has ended already, Succeeded where the answer has ended it, and Later otherwise, or
// Died(NotAskable) where the supplier cannot be asked.
type Asker interface {
	Ask(ctx context.Context, orderID int64) compensation.Result
	// AskClosed asks once about an order that is over: any answer is Succeeded.
	AskClosed(ctx context.Context, orderID int64) compensation.Result
}

// Kind asks by an Asker.
func Kind(by Asker) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.Rerun,
		Check: func(raw json.RawMessage) error { _, err := read(raw); return err },
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			p, err := read(x.Payload)
			if err != nil {
				return compensation.Died(compensation.Payload, err.Error())
			}
			if p.Purpose == ofClosed {
				return by.AskClosed(ctx, p.Order)
			}
			return by.Ask(ctx, p.Order)
		},
	}
}

func read(raw json.RawMessage) (p Payload, err error) {
	if err = compensation.ReadPayload(raw, &p); err == nil && p.Order <= 0 {
		err = errors.New("the payload names no order")
	}
	return p, err
}
