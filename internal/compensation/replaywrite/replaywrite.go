// Package replaywrite repeats a write of ours whose transaction failed, from a stored answer.
// It never overwrites anything newer.
package replaywrite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
)

// Payload is one write.
type Payload struct {
	Object string          `json:"object"` // a name in Objects
	ID     int64           `json:"id"`
	From   int64           `json:"from"` // the version that it changes
	To     int64           `json:"to"`   // the version that it creates
	Fields json.RawMessage `json:"fields"`
	Call   int64           `json:"call"` // the answer's id in supplier_calls
}

// Write is one compare-and-set on p.From; false = another version is stored.
type Write func(ctx context.Context, tx db.Tx, p Payload) (bool, error)

// Objects are what can be written, by name.
type Objects map[string]Write

// Kind repeats writes of the objects.
func Kind(d *db.DB, objects Objects) compensation.Kind {
	return compensation.Kind{
		Name:  compensation.ReplayWrite,
		Check: func(raw json.RawMessage) error { _, err := read(raw, objects); return err },
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			p, err := read(x.Payload, objects)
			if err != nil {
				return compensation.Died(compensation.Payload, err.Error())
			}
			wrote := false
			err = d.SharedTx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
				wrote, err = objects[p.Object](ctx, tx, p)
				return err
			})
			switch {
			case err != nil:
				return compensation.Failed(err).WithCall(p.Call)
			case !wrote:
				return compensation.WasOvertaken(fmt.Sprintf("version %d is no longer stored", p.From)).WithCall(p.Call)
			}
			return compensation.Succeeded(fmt.Sprintf("version %d is written", p.To)).WithCall(p.Call)
		},
	}
}

func read(raw json.RawMessage, objects Objects) (p Payload, err error) {
	switch err = compensation.ReadPayload(raw, &p); {
	case err != nil:
		return p, err
	case objects[p.Object] == nil:
		return p, fmt.Errorf("%q cannot be written", p.Object)
	case p.ID <= 0 || p.To <= p.From:
		return p, errors.New("the payload names no row, or no newer version")
	}
	return p, nil
}
