package alert

import (
	"testing"

	"backstop/internal/base/moves/movestest"
)

func TestEveryMoveOfAnAlertIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, `
           firing resolved event
firing     .      x        .
resolved   .      .        .
event      .      .        .
`)
	movestest.Check(t, MessageMoves, `
          waiting sent failed
waiting   x       x    x
sent      .       .    .
failed    x       .    .
`)
	movestest.Check(t, IncidentMoves, `
             open acknowledged snoozed over
open         .    x            x       x
acknowledged x    x            x       x
snoozed      x    x            x       x
over         .    .            .       .
`)
}
