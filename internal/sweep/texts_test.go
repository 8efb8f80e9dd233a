package sweep

import (
	"testing"

	"backstop/internal/base/text/texttest"
)

func TestEveryCodeHasBothLanguagesAndIsUsed(t *testing.T) {
	t.Parallel()
	texttest.Check(t, &Texts)
}
