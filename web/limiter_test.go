package web

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
)

func TestALimiterForgetsOnlyWhoIsLongGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // its clock stands still meanwhile
		l := newLimiter(1)
		if !l.allow("in use") || l.allow("in use") {
			t.Fatal("one a second is not one")
		}
		for i := range 10 * limiterKeys {
			l.allow(fmt.Sprint(i))
			if i%100 == 0 && l.allow("in use") {
				t.Fatal("a key in use was forgotten")
			}
			if n := len(l.young) + len(l.old); n > limiterKeys {
				t.Fatalf("%d keys are stored", n)
			}
		}
	})
}

func TestASenderIsAnAddressOrAnIPv6Network(t *testing.T) {
	t.Parallel()
	for pair, same := range map[[2]string]bool{
		{"192.0.2.1", "192.0.2.1"}: true, {"192.0.2.1", "192.0.2.2"}: false,
		{"2001:db8::1", "2001:db8::ffff:1"}: true, {"2001:db8::1", "2001:db8:0:1::1"}: false,
	} {
		a, b := SenderOf(netip.MustParseAddr(pair[0])), SenderOf(netip.MustParseAddr(pair[1]))
		if (a == b) != same {
			t.Errorf("%v are one sender: %v", pair, a == b)
		}
	}
	if SenderOf(netip.Addr{}) != (netip.Prefix{}).String() {
		t.Error("an unknown address is a sender of its own")
	}
}
