package access

import (
	"sync"
	"time"
)

// Limits of guessing. The wait doubles with each failure beyond the free ones. A
// name's wait stays short: a stranger who guesses at a name must not keep its
// owner out for long. An address has more free tries, as an office shares one.
const (
	freeTriesOfName    = 5
	freeTriesOfAddress = 20
	longestWaitOfName  = time.Minute
	longestWaitOfAddr  = 15 * time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = time.Hour
	// throttleKeys bounds the memory; beyond it the older half is forgotten.
	throttleKeys = 20_000
)

// Throttle slows down the guessing of passwords, by name and by address. It
// counts names that exist and names that do not alike, and refuses the right
// password like a wrong one: its answers tell nothing. It counts on this node.
type Throttle struct {
	now        func() time.Time
	mu         sync.Mutex
	young, old map[throttleKey]*failures
}

type throttleKey struct {
	byName bool
	text   string
}

type failures struct {
	count int
	until time.Time // no try counts before
	last  time.Time
}

// NewThrottle returns one that has seen no failure.
func NewThrottle() *Throttle {
	return &Throttle{now: time.Now, young: map[throttleKey]*failures{}}
}

// Try says how long this name or this address has to wait; 0 = it may try now. A
// try that may go on counts as failed until Forgive: of many that come at the same
// moment only the free ones get through.
func (t *Throttle) Try(name, address string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	// The address comes first: who has to wait anyway must not have names kept, or
	// by thousands of them he had those forgotten that others guess at.
	addr := t.of(throttleKey{false, address}, now)
	if wait := addr.until.Sub(now); wait > 0 {
		return wait
	}
	byName := t.of(throttleKey{true, name}, now)
	if wait := byName.until.Sub(now); wait > 0 {
		return wait
	}
	of := []struct {
		f       *failures
		free    int
		longest time.Duration
	}{
		{byName, freeTriesOfName, longestWaitOfName},
		{addr, freeTriesOfAddress, longestWaitOfAddr},
	}
	for _, k := range of {
		k.f.count++
		k.f.last = now
		if beyond := k.f.count - k.free; beyond >= 0 {
			k.f.until = now.Add(min(time.Second<<min(beyond, 20), k.longest))
		}
	}
	return 0
}

// Forgive takes back what led to a login that was right. Of the address only that
// one try: an attacker with an account of his own must not reset it.
func (t *Throttle) Forgive(name, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	delete(t.young, throttleKey{true, name})
	delete(t.old, throttleKey{true, name})
	if f := t.of(throttleKey{false, address}, now); f.count > 0 {
		f.count--
	}
}

func (t *Throttle) of(k throttleKey, now time.Time) *failures {
	f := t.young[k]
	if f == nil {
		f = t.old[k]
	}
	if f != nil && now.Sub(f.last) > forgetAfter {
		f = nil
	}
	if f == nil {
		f = &failures{last: now}
	}
	if len(t.young) >= throttleKeys/2 {
		t.young, t.old = map[throttleKey]*failures{}, t.young
	}
	t.young[k] = f
	return f
}
