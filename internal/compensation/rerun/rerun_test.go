package rerun_test

import (
	"context"
	"encoding/json"
	"testing"

	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
)

type asker map[int64]compensation.Result

func (a asker) Ask(_ context.Context, orderID int64) compensation.Result { return a[orderID] }

func (a asker) AskClosed(_ context.Context, orderID int64) compensation.Result {
	return a[-orderID]
}

func TestTheSupplierIsAskedAboutTheOrder(t *testing.T) {
	t.Parallel()
	kind := rerun.Kind(asker{
		1: compensation.Succeeded("paid").WithCall(4), 2: compensation.AlreadyDone("it is paid"),
		3: compensation.Later(compensation.SupplierTimeout, ""),
		4: compensation.DeadLetter(compensation.NotAskable, ""), -3: compensation.Succeeded("not found"),
	})
	for payload, want := range map[string]compensation.Class{
		`{"order":1}`: compensation.OK, `{"order":2,"purpose":"stuck_paying"}`: compensation.Over,
		`{"order":3}`: compensation.Class(compensation.SupplierTimeout), `{"order":4}`: compensation.Class(compensation.NotAskable),
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
