package web

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// limiterKeys bounds how many callers a limiter remembers. Whoever has more
// addresses than that can have each forgotten in turn; a limiter is against
// mistakes and single hosts, not against a botnet.
const limiterKeys = 10_000

// limiter allows so many events a second to each key, and one second's worth at
// once. Keys that were not seen for long are forgotten half by half.
type limiter[K comparable] struct {
	perSecond  int
	mu         sync.Mutex
	young, old map[K]*rate.Limiter
}

func newLimiter[K comparable](perSecond int) *limiter[K] {
	return &limiter[K]{perSecond: perSecond, young: map[K]*rate.Limiter{}}
}

func (l *limiter[K]) allow(key K) bool { return l.of(key).Allow() }

func (l *limiter[K]) of(key K) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.young[key]; b != nil {
		return b
	}
	b := l.old[key]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(l.perSecond), l.perSecond)
	}
	if len(l.young) >= limiterKeys/2 {
		l.young, l.old = map[K]*rate.Limiter{}, l.young
	}
	l.young[key] = b
	return b
}

// senderKey is an address as far as it is one sender: of IPv6 the network, since
// every host has 2^64 addresses of its own.
type senderKey netip.Prefix

// String is the address or network in its usual form.
func (k senderKey) String() string { return netip.Prefix(k).String() }

// SenderOf is what a limiter counts by: an IPv4 address, or an IPv6 network.
func SenderOf(addr netip.Addr) senderKey {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return senderKey{} // an address that is not known: all of them together
	}
	return senderKey(p)
}
