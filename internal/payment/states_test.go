package payment_test

import (
	"slices"
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/order"
	"backstop/internal/payment"
)

// A failed or closed attempt may still bring money; one that settled its order never changes,
// and surplus money settles an order only where two people accept it.
func TestEveryMoveOfAnAttemptIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, payment.Moves, `
                    created submitted unknown succeeded succeeded_surplus failed closed
created             .       x         x       x         x                 x      x
submitted           .       .         .       x         x                 x      x
unknown             .       x         .       x         x                 x      x
succeeded           .       .         .       .         .                 .      .
succeeded_surplus   .       .         .       x         x                 .      .
failed              .       .         .       x         x                 x      x
closed              .       .         .       x         x                 x      x
`)
}

// Queries of packages below this one name the open statuses of attempts.
func TestOpenAttemptsAreAll(t *testing.T) {
	t.Parallel()
	open := payment.Moves.Open()
	if len(open) != len(order.OpenAttempts) {
		t.Errorf("open are %v, order.OpenAttempts has %v", open, order.OpenAttempts)
	}
	for _, s := range open {
		if !slices.Contains(order.OpenAttempts, string(s)) {
			t.Errorf("order.OpenAttempts lacks %s", s)
		}
	}
}
