package ui

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
)

func TestEveryStateHasAWordAndAnIcon(t *testing.T) {
	t.Parallel()
	sprite, err := os.ReadFile("../../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	// Every status has an appearance, and every appearance a status.
	for name, c := range map[string]struct {
		looks map[string]State
		words []string
	}{
		"order": {OrderStates, order.Moves.Words()}, "delivery": {DeliveryStates, notify.Moves.Words()},
		"exception": {ExceptionStates, exception.Moves.Words()}, "approval": {ApprovalStates, approval.Moves.Words()},
		"alert": {AlertStates, alert.Moves.Words()}, "incident": {IncidentStates, alert.IncidentMoves.Words()},
		"refund": {RefundStates, refund.Moves.Words()}, "payout": {PayoutStates, payout.Moves.Words()},
		"dispute": {DisputeStates, dispute.Moves.Words()}, "step": {StepStates, payout.StepMoves.Words()},
	} {
		if got, want := slices.Sorted(maps.Keys(c.looks)), slices.Sorted(slices.Values(c.words)); !slices.Equal(got, want) {
			t.Errorf("%s: there are styles for %q, the table has %q", name, got, want)
		}
	}
	for _, states := range []map[string]State{
		OrderStates, NotifyStates, DeliveryStates, ExceptionStates, ApprovalStates, RefundStates,
		PayoutStates, DisputeStates, StepStates, IncidentStates, outcomes,
	} {
		for code, s := range states {
			if !strings.Contains(string(sprite), `id="`+s.Icon+`"`) {
				t.Errorf("%s has the icon %q, which is not in the sprite", code, s.Icon)
			}
			if !slices.Contains([]string{"ok", "warn", "bad", "comp", "info", "idle"}, s.Kind) || s.Label == (text.Text{}) {
				t.Errorf("%s looks like %+v", code, s)
			}
		}
	}
}
