// Package rerun runs a flow again from its start: the supplier is queried and its answer
// confirmed.
package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/order"
)

// Payload says what to run again, and for what purpose.
type Payload struct {
	Order   int64  `json:"order"` // its id
	Purpose string `json:"purpose,omitempty"`
}

// MadeBy is the part of the program that opens items for stuck orders.
const MadeBy = "stuck_paying"

// Stuck returns the item to open for an order that has no steps left.
func Stuck(o *order.Order, supplierID int64) *compensation.Item {
	return &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfOrder, SubjectID: o.ID,
		OrderNo:     o.OrderNo,
		FromVersion: o.Version, MerchantID: o.MerchantID, SupplierID: supplierID, Amount: o.Amount, Currency: o.Currency, MadeBy: MadeBy,
		Payload: json.RawMessage(fmt.Sprintf(`{"order":%d,"purpose":"stuck_paying"}`, o.ID)),
	}
}

// MadeBySweep is the part of the program that opens items for closed orders.
const MadeBySweep = "sweep"

// ofClosed is the purpose of querying a closed order.
const ofClosed = "closed_unasked"

// Closed returns the item to open for an order that was closed without querying its supplier:
// it may have been paid nevertheless.
func Closed(o *order.Order) *compensation.Item {
	return &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfOrder, SubjectID: o.ID,
		OrderNo:     o.OrderNo,
		FromVersion: o.Version, MerchantID: o.MerchantID, SupplierID: o.SupplierID, Amount: o.Amount, Currency: o.Currency,
		MadeBy:  MadeBySweep,
		Payload: json.RawMessage(fmt.Sprintf(`{"order":%d,"purpose":%q}`, o.ID, ofClosed)),
	}
}

// MadeByDoubt is the part of the program that opens items for orders of messages that cannot be
// read.
const MadeByDoubt = "malformed"

// Doubtful has the supplier queried at once about an order that may have been paid: a message about
// it is authentic and cannot be read.
func Doubtful(w *db.Writes, d *db.DB, s compensation.Schedule, o *order.Order, supplierID int64) {
	x := Stuck(o, supplierID)
	x.MadeBy, x.Payload = MadeByDoubt, json.RawMessage(fmt.Sprintf(`{"order":%d,"purpose":%q}`, o.ID, MadeByDoubt))
	s.OpenDue(w, d, x)
	w.Add(compensation.DueNow(w.Tx(), d, x.Kind, x.SubjectKind, x.SubjectID)) // the item may be there, and wait
}

// Querier queries the supplier about an order and confirms the answer. It returns AlreadyDone if the
// order had ended already, Succeeded if the answer ended it, Died(NotAskable) if the supplier
// cannot be queried, and Later otherwise.
type Querier interface {
	Query(ctx context.Context, orderID int64) compensation.Result
	// QueryClosed queries once about an order that is over; any answer is Succeeded.
	QueryClosed(ctx context.Context, orderID int64) compensation.Result
}

// Kind queries through an Asker.
func Kind(by Querier) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.Rerun,
		Check: func(raw json.RawMessage) error { _, err := read(raw); return err },
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			p, err := read(x.Payload)
			if err != nil {
				return compensation.DeadLetter(compensation.Payload, err.Error())
			}
			if p.Purpose == ofClosed {
				return by.QueryClosed(ctx, p.Order)
			}
			return by.Query(ctx, p.Order)
		},
	}
}

func read(raw json.RawMessage) (p Payload, err error) {
	if err = compensation.ReadPayload(raw, &p); err == nil && p.Order <= 0 {
		err = errors.New("the payload names no order")
	}
	return p, err
}
