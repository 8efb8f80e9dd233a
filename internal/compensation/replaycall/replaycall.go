// Package replaycall repeats a call whose end is unknown, such as a refund's. The supplier is
// asked first, by the same number; the call is repeated only where it says that it never
// arrived and the object allows it.
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
	Key       string          `json:"key,omitempty"` // of the call, for suppliers that know repeats by one
}

// Subject is what one kind of call is about.
type Subject interface {
	// Ask asks the supplier about the call by its number, and stores what it answers. arrived
	// is false only where the answer says that the call never arrived; the result is then not
	// used.
	Ask(ctx context.Context, x compensation.Item, p Payload) (result compensation.Result, arrived bool)
	// MayRepeat reports whether the object allows the same call again.
	MayRepeat(ctx context.Context, x compensation.Item, p Payload) (bool, error)
	// Call makes the same call, with the same number and key, and stores what came of it.
	Call(ctx context.Context, x compensation.Item, p Payload) compensation.Result
}

// Subjects are the kinds of calls, by their names.
type Subjects map[string]Subject

// Kind repeats calls about the subjects.
func Kind(subjects Subjects) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.ReplayCall,
		Check: func(raw json.RawMessage) error { _, err := read(raw, subjects); return err },
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			p, err := read(x.Payload, subjects)
			if err != nil {
				return compensation.Died(compensation.Payload, err.Error())
			}
			s := subjects[p.Op]
			result, arrived := s.Ask(ctx, x, p)
			if arrived {
				return result
			}
			may, err := s.MayRepeat(ctx, x, p)
			switch {
			case err != nil:
				return compensation.Failed(err)
			case !may:
				return compensation.Later(compensation.SupplierUnknown, "the supplier does not have it, and it may not be repeated yet")
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
