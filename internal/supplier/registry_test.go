package supplier

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestAllowlistHoldsWhatItSays(t *testing.T) {
	t.Parallel()
	list := prefixes("101.226.103.0/25", "2001:db8::/32", "192.0.2.7/32", "::ffff:198.51.100.0/120")
	for text, want := range map[string]bool{
		"101.226.103.1": true, "101.226.103.127": true, "101.226.103.128": false, "101.226.102.255": false,
		"::ffff:101.226.103.1": true, "::ffff:101.226.103.200": false,
		"2001:db8::1": true, "2001:db9::1": false, "2001:db8::1%eth0": true,
		"192.0.2.7": true, "192.0.2.8": false, "198.51.100.9": true, "198.51.101.9": false,
		"0.0.0.0": false, "::": false, "::101.226.103.1": false,
	} {
		if got := (Entry{AllowIPs: list}).Allowed(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: allowed = %v", text, got)
		}
	}
	if (Entry{AllowIPs: list}).Allowed(netip.Addr{}) {
		t.Error("an unknown address is allowed by a list")
	}
	if (Entry{AllowIPs: prefixes("0.0.0.0/0", "::/0")}).Allowed(netip.Addr{}) {
		t.Error("an unknown address is allowed by a list of everything")
	}
	if !(Entry{}).Allowed(netip.Addr{}) || !(Entry{}).Allowed(netip.MustParseAddr("203.0.113.9")) {
		t.Error("an empty list does not allow everyone")
	}
}

func TestRegistryFindsByCodeAndID(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry([]Entry{{ID: 1, Code: "wx-main"}, {ID: 2, Code: "ali", Enabled: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := r.Lookup("ali"); !ok || e.ID != 2 || !e.Enabled {
		t.Errorf("ali = %+v, %v", e, ok)
	}
	if e, ok := r.ByID(1); !ok || e.Code != "wx-main" {
		t.Errorf("1 = %+v, %v", e, ok)
	}
	for _, code := range []string{"", "ALI", "ali ", "ali/"} {
		if e, ok := r.Lookup(code); ok {
			t.Errorf("%q found %+v", code, e)
		}
	}
	if _, ok := r.ByID(3); ok {
		t.Error("3 was found")
	}
	if _, err := NewRegistry([]Entry{{ID: 1, Code: "a"}, {ID: 2, Code: "a"}}, nil); err == nil {
		t.Error("two suppliers share a code")
	}
	if _, err := NewRegistry([]Entry{{ID: 1, Code: "a"}, {ID: 1, Code: "b"}}, nil); err == nil {
		t.Error("two suppliers share an id")
	}
	var none *Registry
	if _, ok := none.Lookup("ali"); ok {
		t.Error("a nil registry has suppliers")
	}
	if _, ok := none.ByID(1); ok || none.AllUncallable() != nil {
		t.Error("a nil registry has suppliers")
	}
}

func TestUnknownKindNamesTheKnownOnes(t *testing.T) {
	t.Parallel()
	blame := &FieldError{Field: "key", Problem: "missing"}
	kinds := Kinds{{Name: "alpha"}, {Name: "beta", New: func(code string, config json.RawMessage, _ Client) (Adapter, error) {
		if code != "b1" || string(config) != "{}" {
			t.Errorf("New(%q, %s)", code, config)
		}
		return nil, blame
	}}}
	if _, err := kinds.New("gamma", "g1", nil, nil); !errors.Is(err, ErrKind) || !strings.Contains(err.Error(), "alpha, beta") {
		t.Error(err)
	}
	if _, err := kinds.New("beta", "b1", json.RawMessage("{}"), nil); AsField(err) != blame {
		t.Error(err)
	}
}

func FuzzAllowed(f *testing.F) {
	for _, s := range []string{"101.226.103.1", "::ffff:101.226.103.1", "2001:db8::1%a", "::", ""} {
		f.Add(s)
	}
	list := Entry{AllowIPs: prefixes("101.226.103.0/25", "2001:db8::/32")}
	f.Fuzz(func(t *testing.T, text string) {
		addr, _ := netip.ParseAddr(text)
		if !list.Allowed(addr) {
			return
		}
		raw := addr.As16()
		mapped4 := string(raw[:12]) == "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff" && string(raw[12:15]) == "\x65\xe2\x67" &&
			raw[15] < 128
		v6 := string(raw[:4]) == "\x20\x01\x0d\xb8"
		if !mapped4 && !v6 {
			t.Fatalf("%q is allowed", text)
		}
	})
}
