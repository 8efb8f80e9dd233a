package failpoint

import "testing"

// A program that was not linked for tests ignores its environment: otherwise this process ends.
func TestOnlyAProgramLinkedForTestsIsKilled(t *testing.T) {
	t.Setenv(Env, "point")
	Hit("point")
}
