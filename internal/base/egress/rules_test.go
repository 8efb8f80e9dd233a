package egress

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestPublicAddressesAreReachedOverHTTPSOnly(t *testing.T) {
	t.Parallel()
	var r Rules
	for _, text := range []string{
		"8.8.8.8:443", "1.1.1.1:8443", "93.184.216.34:443", "172.15.255.255:443", "172.32.0.0:443",
		"100.63.255.255:443", "100.128.0.0:443", "223.255.255.255:443", "[2606:4700::1111]:443",
		"[2001:4860:4860::8888]:443", "[2400:3200::1]:8443", "[::ffff:8.8.8.8]:443",
	} {
		to := netip.MustParseAddrPort(text)
		if err := r.CheckAddr("https", to); err != nil {
			t.Errorf("https to %s: %v", text, err)
		}
		if err := r.CheckAddr("http", to); !errors.Is(err, ErrBlocked) {
			t.Errorf("http to %s: %v, want ErrBlocked", text, err)
		}
	}
	for _, port := range []uint16{0, 22, 25, 80, 444, 3306, 6379, 8080, 65535} {
		if err := r.CheckAddr("https", netip.AddrPortFrom(netip.MustParseAddr("8.8.8.8"), port)); !errors.Is(err, ErrBlocked) {
			t.Errorf("port %d of a public host: %v, want ErrBlocked", port, err)
		}
	}
}

// hostileAddrs has at least one address of every block in specials (both ends if they differ),
// and the usual targets of SSRF.
var hostileAddrs = []string{
	"0.0.0.0", "0.255.255.255", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
	"127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2",
	"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1",
	"192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255",
	"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255",
	"::", "::1", "::2", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
	"::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::1", "100::1",
	"100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
	"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2620:4f:8000::1", "3ffe::1", "3fff::1", "4000::1",
	"5f00::1", "8000::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1",
	"feff::1", "ff00::1", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
}

func TestNoSpecialAddressIsPublic(t *testing.T) {
	t.Parallel()
	var r Rules
	for _, text := range hostileAddrs {
		for _, scheme := range []string{"http", "https"} {
			if err := r.CheckAddr(scheme, netip.AddrPortFrom(netip.MustParseAddr(text), 443)); !errors.Is(err, ErrBlocked) {
				t.Errorf("%s to %s: %v, want ErrBlocked", scheme, text, err)
			}
		}
	}
	if err := r.CheckAddr("https", netip.AddrPort{}); !errors.Is(err, ErrBlocked) {
		t.Errorf("no address: %v, want ErrBlocked", err)
	}
	for _, s := range specials {
		if !s.prefix.IsValid() || s.prefix != s.prefix.Masked() {
			t.Errorf("%s has bits outside its mask", s.prefix)
		}
		covered := false
		for _, text := range hostileAddrs {
			covered = covered || s.prefix.Contains(netip.MustParseAddr(text).WithZone(""))
		}
		if !covered {
			t.Errorf("no test address is in %s", s.prefix)
		}
	}
}

func TestAllowedRangesAreOpenAndNothingBeside(t *testing.T) {
	t.Parallel()
	r := NewRules(prefixes("127.0.0.0/8", "::ffff:10.1.0.0/112", "fd00::/64", "fe80::/10"))
	for _, text := range []string{
		"127.0.0.1:1", "[::ffff:127.0.0.1]:8080", "10.1.2.3:80", "[::ffff:10.1.2.3]:80", "[fd00::9]:9",
		"[fe80::1%lo]:80",
	} {
		for _, scheme := range []string{"http", "https"} {
			if err := r.CheckAddr(scheme, netip.MustParseAddrPort(text)); err != nil {
				t.Errorf("%s to %s: %v", scheme, text, err)
			}
		}
	}
	for _, text := range []string{
		"10.2.0.1:443", "126.255.255.255:80", "[fd00:0:0:1::9]:443", "[::1]:443", "[64:ff9b::127.0.0.1]:443",
		"[::127.0.0.1]:443",
	} {
		if err := r.CheckAddr("http", netip.MustParseAddrPort(text)); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v, want ErrBlocked", text, err)
		}
	}
}

func TestCheckURLRefusesHostileForms(t *testing.T) {
	t.Parallel()
	var r Rules
	for raw, want := range map[string]error{
		"":                              ErrURL,
		"https://":                      ErrURL,
		"https:///path":                 ErrURL,
		"https:a.example":               ErrURL,
		"//a.example/":                  ErrURL,
		"a.example/notify":              ErrURL,
		"ftp://a.example/":              ErrURL,
		"file:///etc/passwd":            ErrURL,
		"gopher://127.0.0.1:6379/_SET":  ErrURL,
		"unix:///run/docker.sock":       ErrURL,
		"javascript:alert(1)":           ErrURL,
		"https://user@a.example/":       ErrURL,
		"https://user:pw@a.example/":    ErrURL,
		"https://a.example@127.0.0.1/":  ErrURL,
		"https://:@a.example/":          ErrURL,
		"https://a.example/#x":          ErrURL,
		"https://a.example/#":           ErrURL,
		"https://a.example:/":           ErrURL,
		"https://a.example:0/":          ErrURL,
		"https://a.example:65536/":      ErrURL,
		"https://a.example:-1/":         ErrURL,
		"https://a.example:443:80/":     ErrURL,
		"https://a.example:http/":       ErrURL,
		"https://a..example/":           ErrURL,
		"https://.a.example/":           ErrURL,
		"https://./":                    ErrURL,
		"https://a b.example/":          ErrURL,
		"https://a.example/a b":         ErrURL,
		"https://a.example/\r\nX: y":    ErrURL,
		"https://a.example\x00.b/":      ErrURL,
		"https://a.example%00.b/":       ErrURL,
		"https://a.example%2f.b/":       ErrURL,
		`https://a.example\@127.0.0.1/`: ErrURL,
		"https://[a.example]/":          ErrURL,
		"https://[::1/":                 ErrURL,
		"https://１２７.0.0.1/":            ErrURL,
		"https://ⓛocalhost/":            ErrURL,
		"https://münchen.example/":      ErrURL,

		// Number forms that a resolver may read as 127.0.0.1 or 169.254.169.254.
		"https://2130706433/":        ErrURL,
		"https://0x7f000001/":        ErrURL,
		"https://0x7F.1/":            ErrURL,
		"https://0177.0.0.1/":        ErrURL,
		"https://017700000001/":      ErrURL,
		"https://127.1/":             ErrURL,
		"https://127.0.1/":           ErrURL,
		"https://127.0.0.1./":        ErrURL,
		"https://127.0.0.01/":        ErrURL,
		"https://127.0.0.256/":       ErrURL,
		"https://127.0.0.0x1/":       ErrURL,
		"https://0/":                 ErrURL,
		"https://0x/":                ErrURL,
		"https://a9.0xa9fe/":         ErrURL,
		"https://%32130706433/":      ErrURL,
		"https://%31%32%37.0.0.1/":   ErrURL,
		"https://169.254.43518/":     ErrURL,
		"https://0xa9.0xfe.0251.16/": ErrURL,

		"https://127.0.0.1/":                        ErrBlocked,
		"https://[::1]/":                            ErrBlocked,
		"https://[::ffff:7f00:1]/":                  ErrBlocked,
		"https://[::ffff:127.0.0.1]:8443/":          ErrBlocked,
		"https://[0:0:0:0:0:ffff:a9fe:a9fe]/":       ErrBlocked,
		"https://[fe80::1%25eth0]/":                 ErrBlocked,
		"https://[64:ff9b::a9fe:a9fe]/":             ErrBlocked,
		"https://169.254.169.254/latest/meta-data/": ErrBlocked,
		"https://localhost/":                        ErrBlocked,
		"https://LOCALHOST./":                       ErrBlocked,
		"https://a.localhost/":                      ErrBlocked,
		"http://a.example/":                         ErrBlocked,
		"http://8.8.8.8/":                           ErrBlocked,
		"HTTP://a.example:443/":                     ErrBlocked,
		"https://a.example:80/":                     ErrBlocked,
		"https://a.example:6379/":                   ErrBlocked,
		"https://8.8.8.8:22/":                       ErrBlocked,

		"https://a.example/" + strings.Repeat("a", maxURL):  ErrURL,
		"https://" + strings.Repeat("a", 64) + ".example/":  ErrURL,
		"https://" + strings.Repeat("a.", 130) + "example/": ErrURL,
	} {
		if err := r.CheckURL(raw); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", raw, err, want)
		}
	}
}

func TestCheckURLTakesOrdinaryURLs(t *testing.T) {
	t.Parallel()
	var r Rules
	for _, raw := range []string{
		"https://a.example/notify", "https://a.example", "https://a.example:443/x?y=1&z=%23", "HTTPS://A.Example:8443/",
		"https://xn--mnchen-3ya.example/", "https://8.8.8.8/", "https://[2606:4700::1111]/", "https://a_b.example./n",
		"https://1a.example/", "https://127.0.0.1.a.example/", "https://a.0x7g/", "https://localhost.example/",
	} {
		if err := r.CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	loopback := NewRules(prefixes("127.0.0.0/8"))
	for _, raw := range []string{"http://127.0.0.1:9999/", "http://localhost:80/", "https://127.0.0.1:1/", "http://merchant:8080/"} {
		if err := loopback.CheckURL(raw); err != nil {
			t.Errorf("with loopback allowed, %s: %v", raw, err)
		}
	}
	for raw, want := range map[string]error{"http://10.0.0.1/": ErrBlocked, "http://0x7f.1/": ErrURL, "http://8.8.8.8/": ErrBlocked} {
		if err := loopback.CheckURL(raw); !errors.Is(err, want) {
			t.Errorf("with loopback allowed, %s: %v, want %v", raw, err, want)
		}
	}
}

func TestErrorsNeverQuoteTheURL(t *testing.T) {
	t.Parallel()
	var r Rules
	for _, raw := range []string{
		"https://user:canary@a.example/", "https://a.example/canary\x7f", "https://a.example/?t=canary#", "http://a.example/canary",
		"https://a.example:canary/", "https://127.0.0.1/canary", "canary://a.example", "https://[canary", "https://a.example/canary%zz",
	} {
		err := r.CheckURL(raw)
		if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// FuzzAddr compares the table with predicates of the standard library, and checks every address
// in the forms that can disguise it.
func FuzzAddr(f *testing.F) {
	for _, text := range append([]string{"8.8.8.8", "2606:4700::1111"}, hostileAddrs...) {
		b := netip.MustParseAddr(text).As16()
		f.Add(binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]))
	}
	var r Rules
	verdict := func(a netip.Addr) bool { return r.CheckAddr("https", netip.AddrPortFrom(a, 443)) == nil }
	f.Fuzz(func(t *testing.T, high, low uint64) {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], high)
		binary.BigEndian.PutUint64(b[8:], low)
		v6 := netip.AddrFrom16(b)
		v4 := netip.AddrFrom4([4]byte(b[12:]))
		for _, a := range []netip.Addr{v6, v4} {
			odd := a.Unmap()
			if (!odd.IsGlobalUnicast() || odd.IsPrivate()) && verdict(a) {
				t.Fatalf("%s is special for net/netip and passes here", a)
			}
			if verdict(a) && a.Is6() && !a.Is4In6() && verdict(a.WithZone("eth0")) != verdict(a) {
				t.Fatalf("a zone changes the verdict on %s", a)
			}
		}
		if mapped := netip.AddrFrom16(v4.As16()); verdict(mapped) != verdict(v4) {
			t.Fatalf("mapped form of %s is judged otherwise", v4)
		}
		four := v4.As4()
		for _, prefix := range []string{"::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0"} {
			e := netip.MustParseAddr(prefix).As16()
			copy(e[12:], four[:])
			if verdict(netip.AddrFrom16(e)) {
				t.Fatalf("%s carries %s through", netip.AddrFrom16(e), v4)
			}
		}
		sixToFour := [16]byte{0x20, 0x02, four[0], four[1], four[2], four[3]}
		if verdict(netip.AddrFrom16(sixToFour)) {
			t.Fatalf("6to4 carries %s through", v4)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		"https://a.example/n?x=1", "http://127.0.0.1:80/", "https://[::1%25lo]/", "https://0x7f.1",
		"https://u:p@h/#f",
	} {
		f.Add(raw)
	}
	var r Rules
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := r.Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrURL) && !errors.Is(err, ErrBlocked) {
				t.Fatalf("%q: untyped error %v", raw, err)
			}
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || len(raw) > maxURL {
			t.Fatalf("%q passed as %#v", raw, u)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && notPublic(addr.Unmap().WithZone("")) != "" {
			t.Fatalf("%q passed with the address %s", raw, addr)
		}
	})
}
