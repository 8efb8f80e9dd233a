package callback

import (
	"testing"

	"backstop/internal/base/text/texttest"
)

func TestEveryCodeHasBothLanguagesAndIsUsed(t *testing.T) { texttest.Check(t, &Texts) }
