package ui

import (
	"os"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/compensation"
	"backstop/internal/order"
)

func TestEveryStateHasAWordAndAnIcon(t *testing.T) {
	sprite, err := os.ReadFile("../../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range order.Statuses {
		if _, ok := OrderStates[string(s)]; !ok {
			t.Errorf("an order that is %s looks like nothing", s)
		}
	}
	for _, kind := range []string{
		compensation.UnknownOrder, compensation.AmountMismatch, compensation.CurrencyMismatch, compensation.AccountMismatch, compensation.LatePayment,
		compensation.DuplicatePayment, compensation.UnknownRefund, compensation.DecryptFailed, compensation.Malformed, compensation.NotifyExhausted, compensation.StuckPaying, compensation.SubscriptionExhausted,
	} {
		if _, ok := ExceptionKinds[kind]; !ok {
			t.Errorf("an exception %s has no word", kind)
		}
	}
	for _, s := range DeliveryStatuses {
		if _, ok := DeliveryStates[s]; !ok {
			t.Errorf("a delivery that is %s looks like nothing", s)
		}
	}
	for _, states := range []map[string]State{OrderStates, ToldStates, DeliveryStates, ExceptionStates, outcomes} {
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
