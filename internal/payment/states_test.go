package payment_test

import (
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/payment"
)

// What failed or was closed may still bring money; what settled its order never
// changes, and surplus money settles an order only where two
// people accept it.
func TestEveryMoveOfAnAttemptIsAsTheRulesSay(t *testing.T) {
	movestest.Check(t, payment.Moves, `
                    submitted succeeded succeeded_surplus failed closed
submitted           .         x         x                 x      x
succeeded           .         .         .                 .      .
succeeded_surplus   .         x         x                 .      .
failed              .         x         x                 x      x
closed              .         x         x                 x      x
`)
}
