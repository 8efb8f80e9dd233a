package batch_test

import (
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/compensation/batch"
)

func TestEveryMoveOfAPlanIsAsTheRulesSay(t *testing.T) {
	movestest.Check(t, batch.Moves, `
          planned running done stopped
planned   .       x       .    .
running   .       .       x    x
done      .       .       .    .
stopped   .       .       .    .
`)
}
