package exception

import (
	"testing"

	"backstop/internal/base/moves/movestest"
)

func TestEveryMoveOfAnExceptionIsAsTheRulesSay(t *testing.T) {
	movestest.Check(t, Moves, `
           open assigned resolved ignored
open       x    x        x        x
assigned   x    x        x        x
resolved   x    .        .        .
ignored    x    .        .        .
`)
}
