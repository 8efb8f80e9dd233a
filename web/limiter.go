package web

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// limiterKeys bounds how many callers a limiter remembers. A caller with more addresses than
// that evicts each in turn: limiters protect against mistakes and single hosts, not against
// botnets.
const limiterKeys = 10_000

// limiter allows a number of events per second for each key, with bursts of one second's worth.
// It drops the older half of the keys when there are too many.
type limiter struct {
	perSecond  int
	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

func newLimiter(perSecond int) *limiter {
	return &limiter{perSecond: perSecond, young: map[string]*rate.Limiter{}}
}

func (l *limiter) allow(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.young[key]
	if b == nil {
		if b = l.old[key]; b == nil {
			b = rate.NewLimiter(rate.Limit(l.perSecond), l.perSecond)
		}
		if len(l.young) >= limiterKeys/2 {
			l.young, l.old = map[string]*rate.Limiter{}, l.young
		}
		l.young[key] = b
	}
	return b.Allow()
}

// SenderOf returns the key of a client: an IPv4 address, or an IPv6 network, because every host
// has 2^64 addresses of its own. All unknown addresses are one sender.
func SenderOf(addr netip.Addr) string {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p.String()
}
