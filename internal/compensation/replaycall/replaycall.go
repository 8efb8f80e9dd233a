// Package replaycall repeats a call whose outcome is unknown, such as a refund. The supplier is
// first queried by the same number; the call is repeated only if the supplier says that it
// never arrived and the object allows a repeat.
package replaycall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/compensation"
)

// Payload is one call.
type Payload struct {
	Supplier  string          `json:"supplier"` // code
	Op        string          `json:"op"`       // a name in Subjects
	Reference string          `json:"reference"`
	Params    json.RawMessage `json:"params,omitempty"`
	Key       string          `json:"key,omitempty"` // idempotency key, for suppliers that detect repeats by it
}

// Subject handles one kind of call.
type Subject interface {
	// Query queries the supplier about the call by its number, and stores the answer. arrived is
	// false only if the answer says that the call never arrived; result is then unused.
	Query(ctx context.Context, x compensation.Item, p Payload) (result compensation.Result, arrived bool)
	// MayRepeat reports whether the object allows the same call again.
	MayRepeat(ctx context.Context, x compensation.Item, p Payload) (bool, error)
	// Call repeats the call, with the same number and key, and stores the result.
	Call(ctx context.Context, x compensation.Item, p Payload) compensation.Result
}

// Subjects are the kinds of calls by name.
type Subjects map[string]Subject

// Kind repeats calls about the subjects.
func Kind(subjects Subjects) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.ReplayCall,
		Check: func(raw json.RawMessage) error { _, err := read(raw, subjects); return err },
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			p, err := read(x.Payload, subjects)
			if err != nil {
				return compensation.DeadLetter(compensation.Payload, err.Error())
			}
			s := subjects[p.Op]
			result, arrived := s.Query(ctx, x, p)
			if arrived {
				return result
			}
			may, err := s.MayRepeat(ctx, x, p)
			switch {
			case err != nil:
				return compensation.Failed(err)
			case !may:
				return compensation.Later(compensation.SupplierUnknown, "the supplier does not have it, and it must not be repeated yet")
			}
			return s.Call(ctx, x, p)
		},
	}
}

func read(raw json.RawMessage, subjects Subjects) (p Payload, err error) {
	switch err = compensation.ReadPayload(raw, &p); {
	case err != nil:
		return p, err
	case subjects[p.Op] == nil:
		return p, fmt.Errorf("%q cannot be called again", p.Op)
	case p.Supplier == "" || p.Reference == "":
		return p, errors.New("the payload names no supplier, or no reference")
	}
	return p, nil
}
