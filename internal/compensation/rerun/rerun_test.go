package rerun_test

import (
	"context"
	"encoding/json"
	"testing"

	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
)

type querier map[int64]compensation.Result

func (a querier) Query(_ context.Context, orderID int64) compensation.Result { return a[orderID] }

func (a querier) QueryClosed(_ context.Context, orderID int64) compensation.Result {
	return a[-orderID]
}

func TestTheSupplierIsAskedAboutTheOrder(t *testing.T) {
	t.Parallel()
	kind := rerun.Kind(querier{
		1: compensation.Succeeded("paid").WithCall(4), 2: compensation.AlreadyDone("it is paid"),
		3: compensation.Later(compensation.SupplierTimeout, ""),
		4: compensation.DeadLetter(compensation.NotQueryable, ""), -3: compensation.Succeeded("not found"),
	})
	for payload, want := range map[string]compensation.Class{
		`{"order":1}`: compensation.OK, `{"order":2,"purpose":"stuck_paying"}`: compensation.Over,
		`{"order":3}`: compensation.Class(compensation.SupplierTimeout), `{"order":4}`: compensation.Class(compensation.NotQueryable),
		`{"order":3,"purpose":"closed_unasked"}`: compensation.OK,
		`{}`:                                     compensation.Class(compensation.Payload),
	} {
		if got := kind.Run(t.Context(), compensation.Item{Payload: json.RawMessage(payload)}); got.Class != want {
			t.Errorf("%s: %+v, want %s", payload, got, want)
		}
		if err := kind.Check(json.RawMessage(payload)); (err == nil) != (payload != `{}`) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}
