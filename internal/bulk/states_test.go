package bulk_test

import (
	"testing"

	"backstop/internal/base/moves/movestest"
	"backstop/internal/bulk"
)

func TestEveryMoveOfAPlanIsAsTheRulesSay(t *testing.T) {
	movestest.Check(t, bulk.Moves, `
          planned running done stopped
planned   .       x       .    .
running   .       .       x    x
done      .       .       .    .
stopped   .       .       .    .
`)
}
