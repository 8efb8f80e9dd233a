package exception

import (
	"testing"

	"backstop/internal/base/moves/movestest"
)

func TestEveryMoveOfAnExceptionIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, `
           open assigned proposed approved executing resolved failed ignored
open       x    x        x        x        .         x        .      x
assigned   x    x        x        x        .         x        .      x
proposed   x    x        .        x        .         x        .      .
approved   .    .        .        .        x         .        .      .
executing  .    .        .        .        .         x        x      x
resolved   x    .        .        .        .         .        .      .
failed     x    x        x        x        .         x        .      .
ignored    x    .        .        .        .         .        .      .
`)
}
