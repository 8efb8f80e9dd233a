package access

import (
	"sync"
	"time"
)

// Limits on failed attempts. The wait doubles with each failure beyond the free ones. The wait
// for a name stays short, so that a stranger who guesses cannot lock its owner out for long. An
// address has more free attempts because an office shares one.
const (
	freeTriesOfName    = 5
	freeTriesOfAddress = 20
	longestWaitOfName  = time.Minute
	longestWaitOfAddr  = 15 * time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = time.Hour
	// throttleKeys bounds the memory; above it the older half is dropped.
	throttleKeys = 20_000
	// knownPairs bounds how many pairs of name and address are remembered.
	knownPairs = 10_000
)

// SignIn is one attempt to sign in.
type SignIn struct {
	Name    string // "" = it is not known, and the address alone counts
	Address string
	// Device proves that the name has signed in from this browser before; "" = no proof.
	Device string
}

// Throttle slows down password guessing, by name and by address. It counts existing and unknown
// names alike and refuses a correct password like a wrong one, so its answers reveal nothing.
// It counts on this node only.
//
// A device from which the name has signed in has its own count, and so does the name at an
// address from which it has signed in: a stranger who guesses from elsewhere locks out other
// strangers, not the owner.
type Throttle struct {
	now        func() time.Time
	mu         sync.Mutex
	young, old map[throttleKey]*failures
	// known holds names with addresses that they signed in from; knownOld the older half.
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

// limits returns the free attempts of a kind of key and the longest wait after them.
func (k throttleKey) limits() (free int, longest time.Duration) {
	if k.kind == byAddress {
		return freeTriesOfAddress, longestWaitOfAddr
	}
	return freeTriesOfName, longestWaitOfName
}

type failures struct {
	count int
	until time.Time // no attempt is allowed before
	last  time.Time
}

// NewThrottle returns a Throttle without failures.
func NewThrottle() *Throttle {
	return &Throttle{now: time.Now, young: map[throttleKey]*failures{}, known: map[throttleKey]bool{}}
}

// keys returns what an attempt is counted under. The address comes first: a client that has to
// wait anyway must not add names, or thousands of them would evict the names under attack.
func (t *Throttle) keys(s SignIn) []throttleKey {
	if s.Device != "" {
		return []throttleKey{{kind: byDevice, text: s.Device}}
	}
	if s.Name == "" { // not known yet, or no name that can be
		return []throttleKey{{kind: byAddress, text: s.Address}}
	}
	name := throttleKey{kind: byName, name: s.Name}
	if pair := (throttleKey{byPair, s.Address, s.Name}); t.known[pair] || t.knownOld[pair] {
		name = pair
	}
	return []throttleKey{{kind: byAddress, text: s.Address}, name}
}

// Try returns how long to wait before the next attempt; 0 = go ahead. An attempt that goes
// ahead counts as failed until Forgive, so of many simultaneous ones only the free ones get
// through.
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

// Forgive resets the counts after a successful login and remembers where it came from. For the
// address it takes back only this one attempt: an attacker who has an account must not be able
// to reset it. A known device or address does not reset what others tried, either.
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
