// Package waittest is how tests wait: for what another goroutine or process does, for nothing to
// happen, and for the clock of a synctest bubble.
package waittest

import (
	"testing"
	"testing/synctest"
	"time"
)

const (
	// maxWait is long, since it is reached only where something is wrong or the machine is busy.
	maxWait = time.Minute
	// maxInterval keeps a long wait for a row from keeping the database busy.
	maxInterval = 20 * time.Millisecond
)

// Until calls holds until it returns true, and ends the test if it has not within a minute.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(maxWait, holds) {
		t.Fatalf("not within %s: %s", maxWait, what)
	}
}

// Within calls holds until it returns true or the time is over, and reports which: for code that
// may not end the test.
func Within(limit time.Duration, holds func() bool) bool {
	end, interval := time.Now().Add(limit), time.Millisecond
	for !holds() {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(interval) // what is waited for may be a row or another process, which send no signal
		interval = min(interval*5/4, maxInterval)
	}
	return true
}

// Stays calls holds for a while, and ends the test if it returns false: what must not happen
// sends no signal either.
func Stays(t testing.TB, what string, d time.Duration, holds func() bool) {
	t.Helper()
	if Within(d, func() bool { return !holds() }) {
		t.Fatalf("within %s no longer: %s", d, what)
	}
}

// Pass lets time pass in a synctest bubble, until all its goroutines wait again.
func Pass(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}
