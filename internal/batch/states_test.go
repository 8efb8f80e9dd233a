package batch_test

import (
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/batch"
)

func TestEveryMoveOfABatchIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, batch.Moves, `
          planned waiting running paused stopped done
planned   .       x       x       .      .       .
waiting   .       .       x       .      x       .
running   .       .       .       x      x       x
paused    .       .       x       .      x       .
stopped   .       .       .       .      .       .
done      .       .       .       .      .       .
`)
}

func TestEveryMoveOfARowIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, batch.RowMoves, `
          waiting done skipped failed
waiting   .       x    x       x
done      .       .    .       .
skipped   .       .    .       .
failed    .       .    .       .
`)
}
