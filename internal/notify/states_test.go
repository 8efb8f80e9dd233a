package notify_test

import (
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/notify"
)

func TestEveryMoveOfADeliveryIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, notify.Moves, `
             queued sending retry_wait delivered exhausted skipped
queued       .      x       x          .         .         .
sending      x      x       x          x         x         x
retry_wait   .      x       x          .         .         .
delivered    .      .       x          .         .         .
exhausted    .      .       x          .         .         .
skipped      .      .       x          .         .         .
`)
	for _, s := range notify.Moves.Statuses() {
		if s.Open() != notify.Moves.Can(s, notify.Sending) {
			t.Errorf("%s: open %t, but may be claimed %t", s, s.Open(), !s.Open())
		}
	}
}
