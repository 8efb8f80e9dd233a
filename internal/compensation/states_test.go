package compensation

import (
	"testing"

	"backstop/internal/base/moves/movestest"
)

func TestEveryMoveOfACompensationIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, `
           waiting running done dead cancelled
waiting    x       x       .    .    x
running    x       x       x    x    .
done       .       .       .    .    .
dead       x       .       .    .    x
cancelled  .       .       .    .    .
`)
}
