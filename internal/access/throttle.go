package access

import (
	"sync"
	"time"
)

// Limits of failed tries. The wait doubles with each failure beyond the free ones. A
// name's wait stays short: a stranger who guesses at a name must not lock its owner out
// for long. An address has more free tries, as an office shares one.
const (
	freeTriesOfName    = 5
	freeTriesOfAddress = 20
	longestWaitOfName  = time.Minute
	longestWaitOfAddr  = 15 * time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = time.Hour
	// throttleKeys bounds the memory; beyond it the older half is forgotten.
	throttleKeys = 20_000
	// knownPairs bounds how many names with an address that they signed in from are
	// remembered.
	knownPairs = 10_000
)

// SignIn is a try to sign in.
type SignIn struct {
	Name, Address string
	// Device is the browser's own proof that the name signed in from it; "" = none.
	Device string
}

// Throttle slows down the guessing of passwords, by name and by address. It counts names
// that exist and names that do not alike, and refuses the correct password like a wrong
// one: its answers reveal nothing. It counts on this node.
//
// A device that the name signed in from before has a count of its own, and so has the
// name at an address that it signed in from: a stranger who guesses at a name from
// elsewhere locks out other strangers, and not its owner.
type Throttle struct {
	now        func() time.Time
	mu         sync.Mutex
	young, old map[throttleKey]*failures
	// known are names at addresses that they signed in from, newer and older ones.
	known, knownOld map[throttleKey]bool
}

type throttleKind int

const (
	byAddress throttleKind = iota
	byName
	byPair // a name at an address that it signed in from
	byDevice
)

type throttleKey struct {
	kind       throttleKind
	text, name string
}

// limits of a kind of key: free tries, and the longest wait after them.
func (k throttleKey) limits() (free int, longest time.Duration) {
	if k.kind == byAddress {
		return freeTriesOfAddress, longestWaitOfAddr
	}
	return freeTriesOfName, longestWaitOfName
}

type failures struct {
	count int
	until time.Time // no try counts before
	last  time.Time
}

// NewThrottle returns one that has seen no failure.
func NewThrottle() *Throttle {
	return &Throttle{now: time.Now, young: map[throttleKey]*failures{}, known: map[throttleKey]bool{}}
}

// keys are what a try counts under. The address comes first: a client that has to wait
// anyway must not add names, or thousands of them would evict those that others guess
// at.
func (t *Throttle) keys(s SignIn) []throttleKey {
	if s.Device != "" {
		return []throttleKey{{kind: byDevice, text: s.Device}}
	}
	name := throttleKey{kind: byName, name: s.Name}
	if pair := (throttleKey{byPair, s.Address, s.Name}); t.known[pair] || t.knownOld[pair] {
		name = pair
	}
	return []throttleKey{{kind: byAddress, text: s.Address}, name}
}

// Try returns how long to wait before the next try; 0 = none. A try that may go on counts
// as failed until Forgive: of many at the same moment only the free ones get through.
func (t *Throttle) Try(s SignIn) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	keys := t.keys(s)
	for _, k := range keys {
		if wait := t.of(k, now).until.Sub(now); wait > 0 {
			return wait
		}
	}
	for _, k := range keys {
		f := t.of(k, now)
		free, longest := k.limits()
		f.count++
		f.last = now
		if beyond := f.count - free; beyond >= 0 {
			f.until = now.Add(min(time.Second<<min(beyond, 20), longest))
		}
	}
	return 0
}

// Forgive resets what led to a successful login, and stores where it came from. Of the
// address it takes back only that one try: an attacker with an account must not reset
// it. Nor does a known device or address reset what others tried.
func (t *Throttle) Forgive(s SignIn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for _, k := range t.keys(s) {
		if k.kind != byAddress {
			delete(t.young, k)
			delete(t.old, k)
		} else if f := t.of(k, now); f.count > 0 {
			f.count--
		}
	}
	if s.Address == "" {
		return
	}
	if len(t.known) >= knownPairs/2 {
		t.known, t.knownOld = map[throttleKey]bool{}, t.known
	}
	t.known[throttleKey{byPair, s.Address, s.Name}] = true
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
