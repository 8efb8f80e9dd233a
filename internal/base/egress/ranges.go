package egress

import "net/netip"

// special is one block of addresses that no ordinary public host uses, and its name.
type special struct {
	prefix netip.Prefix
	name   string
}

// specials is every block that is refused unless it is allowed explicitly. The predicates
// of net/netip (IsPrivate, IsLoopback, …) cover less than half of it. Sources: the IANA IPv4
// and IPv6 Special-Purpose Address Registries and the IPv6 address space registry (edition
// of October 2025), and the RFC beside each line. The first match is the reason, so narrow
// blocks come before the wide ones that contain them.
var specials = []special{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network, RFC 791"}, // Linux connects 0.0.0.0 to loopback
	{netip.MustParsePrefix("10.0.0.0/8"), "private, RFC 1918"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT, RFC 6598"}, // includes a cloud's metadata address, 100.100.100.200
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback, RFC 1122"},
	{netip.MustParsePrefix("168.63.129.16/32"), "platform service of a cloud"}, // answers only from inside a virtual machine
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, RFC 3927"},          // cloud metadata, 169.254.169.254
	{netip.MustParsePrefix("172.16.0.0/12"), "private, RFC 1918"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments, RFC 6890"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112, RFC 7535"},
	{netip.MustParsePrefix("192.52.193.0/24"), "multicast tunnels, RFC 7450"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay, RFC 7526"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private, RFC 1918"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112, RFC 7534"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking, RFC 2544"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast, RFC 1112"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast, RFC 919"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved, RFC 1112"},

	{netip.MustParsePrefix("::/128"), "unspecified, RFC 4291"},
	{netip.MustParsePrefix("::1/128"), "loopback, RFC 4291"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible, RFC 4291"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "IPv4-mapped, RFC 4291"}, // unmapped before the look-up; here in case it is not
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated, RFC 2765"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64, RFC 6052"}, // carries any IPv4 address, private ones too
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64, RFC 8215"},
	{netip.MustParsePrefix("100::/64"), "discard-only, RFC 6666"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "dummy prefix, RFC 9780"},
	{netip.MustParsePrefix("2001::/32"), "Teredo, RFC 4380"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments, RFC 2928"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation, RFC 3849"},
	{netip.MustParsePrefix("2002::/16"), "6to4, RFC 3056"}, // carries any IPv4 address
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112, RFC 7534"},
	{netip.MustParsePrefix("3ffe::/16"), "6bone, returned, RFC 3701"},
	{netip.MustParsePrefix("3fff::/20"), "documentation, RFC 9637"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing, RFC 9602"},
	{netip.MustParsePrefix("fc00::/7"), "unique local, RFC 4193"}, // cloud metadata, fd00:ec2::254
	{netip.MustParsePrefix("fe80::/10"), "link-local, RFC 4291"},
	{netip.MustParsePrefix("fec0::/10"), "site-local, RFC 3879"},
	{netip.MustParsePrefix("ff00::/8"), "multicast, RFC 4291"},
}

// globalUnicast is the only part of IPv6 from which host addresses have been assigned;
// all others are refused even if no line above lists them.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// notPublic names the block of a non-public address, or "" for a public one. The address
// must be unmapped and without a zone.
func notPublic(addr netip.Addr) string {
	for _, s := range specials {
		if s.prefix.Contains(addr) {
			return s.name
		}
	}
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return "outside global unicast, RFC 4291"
	}
	return ""
}
