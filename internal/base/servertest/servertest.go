// Package servertest says whether a test may start servers: PostgreSQL, Redis, a broker, a
// proxy, the whole program.
package servertest

import (
	"os"
	"testing"
)

// Env is "none" where tests that need a server are to be skipped, as in `make test-short`.
const Env = "TEST_SERVERS"

// None reports whether no test may start a server.
func None() bool { return os.Getenv(Env) == "none" }

// Need skips the test if it may start no server.
func Need(t testing.TB) {
	t.Helper()
	if None() {
		t.Skip("it needs a server, and " + Env + " is none")
	}
}
