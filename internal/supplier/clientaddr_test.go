package supplier

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

var proxies = prefixes("10.0.0.0/8", "fd00::/8")

func TestClientIsTheNearestUntrustedHop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, remote string
		xff          []string
		want         string // empty = ErrForwarded
	}{
		{"direct", "203.0.113.7", nil, "203.0.113.7"},
		{"a stranger's header is ignored", "203.0.113.7", []string{"10.9.9.9"}, "203.0.113.7"},
		{"even a malformed one", "203.0.113.7", []string{"garbage,,"}, "203.0.113.7"},
		{"one proxy", "10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"two proxies", "10.0.0.1", []string{"203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"a forged trusted address on the left", "10.0.0.1", []string{"10.9.9.9, 203.0.113.7"}, "203.0.113.7"},
		{"a forged supplier address on the left", "10.0.0.1", []string{"101.226.103.1, 203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"two lines are one list", "10.0.0.1", []string{"101.226.103.1", "203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"the last line ends the list", "10.0.0.1", []string{"203.0.113.7", "10.0.0.2"}, "203.0.113.7"},
		{"no header: the proxy itself", "10.0.0.1", nil, "10.0.0.1"},
		{"an empty header", "10.0.0.1", []string{" "}, "10.0.0.1"},
		{"trusted throughout", "10.0.0.1", []string{"10.3.3.3,10.2.2.2"}, "10.3.3.3"},
		{"tabs and spaces", "10.0.0.1", []string{"\t203.0.113.7 \t"}, "203.0.113.7"},
		{"mapped peer", "::ffff:10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"mapped hop", "10.0.0.1", []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"mapped client", "10.0.0.1", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"mapped stranger", "::ffff:203.0.113.7", []string{"10.9.9.9"}, "203.0.113.7"},
		{"IPv4 with a port", "10.0.0.1", []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"IPv6", "fd00::1", []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 in brackets", "fd00::1", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with a port", "fd00::1", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"a link-local zone", "fd00::1", []string{"fe80::7%eth0"}, "fe80::7"},
		{"a peer's zone", "fe80::7%eth0", nil, "fe80::7"},

		{"a word", "10.0.0.1", []string{"unknown"}, ""},
		{"garbage left of the client", "10.0.0.1", []string{"garbage, 203.0.113.7"}, ""},
		{"garbage right of the client", "10.0.0.1", []string{"203.0.113.7, garbage"}, ""},
		{"an empty hop", "10.0.0.1", []string{"203.0.113.7,,10.0.0.2"}, ""},
		{"a comma at the end", "10.0.0.1", []string{"203.0.113.7,"}, ""},
		{"an empty line among others", "10.0.0.1", []string{"203.0.113.7", ""}, ""},
		{"leading zeros", "10.0.0.1", []string{"203.0.113.007"}, ""},
		{"a short IPv4", "10.0.0.1", []string{"203.7"}, ""},
		{"a network", "10.0.0.1", []string{"203.0.113.0/24"}, ""},
		{"a port out of range", "10.0.0.1", []string{"203.0.113.7:65536"}, ""},
		{"an empty port", "10.0.0.1", []string{"203.0.113.7:"}, ""},
		{"brackets round IPv4", "10.0.0.1", []string{"[203.0.113.7]"}, ""},
		{"half a bracket", "10.0.0.1", []string{"[2001:db8::7"}, ""},
		{"text behind the bracket", "10.0.0.1", []string{"[2001:db8::7]x"}, ""},
		{"a zone on a global address", "10.0.0.1", []string{"2001:db8::7%eth0"}, ""},
		{"a host name", "10.0.0.1", []string{"localhost"}, ""},
		{"quotes", "10.0.0.1", []string{`"203.0.113.7"`}, ""},
		{"a line break", "10.0.0.1", []string{"203.0.113.7\r\n10.0.0.2"}, ""},
		{"too long", "10.0.0.1", []string{strings.Repeat("203.0.113.7,", 200) + "203.0.113.7"}, ""},
	} {
		got, err := ClientAddr(netip.MustParseAddr(c.remote), c.xff, proxies)
		switch {
		case c.want == "" && !errors.Is(err, ErrForwarded):
			t.Errorf("%s: %v, %v; want ErrForwarded", c.name, got, err)
		case c.want != "" && (err != nil || got != netip.MustParseAddr(c.want)):
			t.Errorf("%s: %v, %v; want %s", c.name, got, err, c.want)
		}
	}
	if got, err := ClientAddr(netip.Addr{}, []string{"203.0.113.7"}, proxies); err == nil {
		t.Errorf("no peer: %v", got)
	}
	if got, _ := ClientAddr(netip.MustParseAddr("10.0.0.1"), []string{"203.0.113.7"}, nil); got.String() != "10.0.0.1" {
		t.Errorf("without trusted proxies the header counts: %v", got)
	}
}

// A caller that needs an address in any case gets the nearest one that the chain can be trusted
// for: what a stranger wrote to the left of its own address neither hides nor changes it.
func TestTheNearestAddressIsNamedWhateverStandsLeftOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, remote string
		xff          []string
		want         string
	}{
		{"a stranger's peer", "198.51.100.9", []string{"203.0.113.7"}, "198.51.100.9"},
		{"no header", "10.0.0.1", nil, "10.0.0.1"},
		{"blanks", "10.0.0.1", []string{"  "}, "10.0.0.1"},
		{"the client", "10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a proxy before ours", "10.0.0.1", []string{"1.2.3.4, 203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"garbage left of the client", "10.0.0.1", []string{"garbage, 203.0.113.7"}, "203.0.113.7"},
		{"an empty hop left of the client", "10.0.0.1", []string{",, 203.0.113.7"}, "203.0.113.7"},
		{"a line of garbage before", "10.0.0.1", []string{"\"x\"", "203.0.113.7"}, "203.0.113.7"},
		{"too much left of the client", "10.0.0.1", []string{strings.Repeat("9.9.9.9,", 500) + "203.0.113.7"}, "203.0.113.7"},
		{"garbage right of the client", "10.0.0.1", []string{"203.0.113.7, garbage"}, "10.0.0.1"},
		{"garbage behind a proxy", "10.0.0.1", []string{"203.0.113.7, garbage, 10.0.0.2"}, "10.0.0.2"},
		{"proxies throughout", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
	} {
		if got := NearestAddr(netip.MustParseAddr(c.remote), c.xff, proxies); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The negative control: what web frameworks commonly do, validated and behind a trusted proxy,
// still lets the caller choose the address.
func TestLeftmostEntryIsSpoofable(t *testing.T) {
	t.Parallel()
	leftmost := func(remote netip.Addr, xff string) netip.Addr {
		if !within(proxies, remote) {
			return remote
		}
		first, _, _ := strings.Cut(xff, ",")
		return netip.MustParseAddr(first)
	}
	remote, xff := netip.MustParseAddr("10.0.0.1"), "101.226.103.1, 203.0.113.7"
	list := Entry{AllowIPs: prefixes("101.226.103.0/25")}
	if !list.Allowed(leftmost(remote, xff)) {
		t.Fatal("the control no longer shows the attack")
	}
	got, err := ClientAddr(remote, []string{xff}, proxies)
	if err != nil || list.Allowed(got) {
		t.Errorf("the forged address passed: %v, %v", got, err)
	}
}

func FuzzClientAddr(f *testing.F) {
	for _, s := range []string{
		"203.0.113.7", "10.9.9.9, 203.0.113.7", "[2001:db8::7]:443, 10.0.0.2", "::ffff:10.0.0.1", "garbage", ",", "fe80::1%a",
		"1.2.3.4:80\n5.6.7.8",
	} {
		f.Add(s, "203.0.113.99")
	}
	f.Fuzz(func(t *testing.T, forged, seen string) {
		client, err := netip.ParseAddr(seen)
		if err != nil || client.Zone() != "" {
			t.Skip()
		}
		client = client.Unmap()
		if within(proxies, client) {
			t.Skip()
		}
		// Whatever a client sends, the proxy appends the address that it saw.
		got, err := ClientAddr(netip.MustParseAddr("10.0.0.1"), []string{forged, client.String()}, proxies)
		if err == nil && got != client {
			t.Fatalf("a header %q turned %s into %s", forged, client, got)
		}
		if got := NearestAddr(netip.MustParseAddr("10.0.0.1"), []string{forged, client.String()}, proxies); got != client {
			t.Fatalf("a header %q hides %s behind %s", forged, client, got)
		}
		// And without a trusted proxy nothing that it sends counts.
		got, err = ClientAddr(client, []string{forged}, proxies)
		if err != nil || got != client {
			t.Fatalf("a stranger's header %q turned %s into %s (%v)", forged, client, got, err)
		}
	})
}
