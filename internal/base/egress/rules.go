package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Reasons for refusing a request. Errors that wrap them are one readable line and never
// contain the URL, whose path or query may have a token.
var (
	// ErrBlocked means that the address may not be reached.
	ErrBlocked = errors.New("blocked")
	// ErrURL means that the URL cannot be used, whatever its address.
	ErrURL = errors.New("bad url")
)

const (
	// maxURL is the length that common proxies and browsers still accept.
	maxURL = 2048
	// maxName and maxLabel are DNS's own limits (RFC 1035).
	maxName, maxLabel = 253, 63
)

// publicPorts are the ports on which public hosts are reached, by scheme. Other services of
// a host (databases, Redis) use other ports and must never get a request of ours. Schemes
// that are not listed are not encrypted: no public host is reached with them.
var publicPorts = map[string][]uint16{
	"https": {443, 8443}, // and its usual second port
	"amqps": {5671},
	// Hosted Kafka uses several: 9092 to 9098 for SASL and client certificates, 9194 to 9198
	// for brokers that accept connections from outside.
	"kafkas": {443, 9092, 9093, 9094, 9096, 9098, 9194, 9196, 9198},
	"smtps":  {465},
	// The submission port, on which callers send nothing before STARTTLS.
	"smtp+starttls": {587},
}

// Rules are what may be reached: public hosts over encrypted schemes on their publicPorts,
// and the allowed ranges over any scheme on any port. The zero value allows no range. Rules
// are immutable and cheap to copy.
type Rules struct{ allow []netip.Prefix }

// NewRules allows the given ranges in addition to the public Internet. An allowed range is
// open without exception: 0.0.0.0/0 opens metadata services too.
func NewRules(allow []netip.Prefix) Rules {
	var r Rules
	for _, p := range allow {
		// Addresses are looked up unmapped, so a mapped range must be unmapped too.
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		r.allow = append(r.allow, p.Masked())
	}
	return r
}

// String lists the allowed ranges in sorted order; "none" if there are none.
func (r Rules) String() string {
	if len(r.allow) == 0 {
		return "none"
	}
	texts := make([]string, len(r.allow))
	for i, p := range r.allow {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// CheckURL checks a URL as far as possible without DNS: the address of a name is checked at
// every dial. Errors are ErrURL or ErrBlocked.
func (r Rules) CheckURL(raw string) error {
	_, err := r.Parse(raw)
	return err
}

// Parse checks a URL as CheckURL does, and returns it.
func (r Rules) Parse(raw string) (*url.URL, error) {
	if raw == "" || len(raw) > maxURL {
		return nil, fmt.Errorf("%w: must have 1 to %d characters", ErrURL, maxURL)
	}
	if strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, fmt.Errorf("%w: only printable ASCII, without spaces (write names as punycode)", ErrURL)
	}
	u, err := url.Parse(raw)
	if err != nil { // its text quotes the URL
		return nil, fmt.Errorf("%w: cannot be read as a URL", ErrURL)
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: must begin with https://", ErrURL)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w: must not contain a user name or password", ErrURL)
	}
	if strings.Contains(raw, "#") {
		return nil, fmt.Errorf("%w: must not have a fragment (#)", ErrURL)
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	if err := r.checkHost(u.Scheme, u.Hostname(), port); err != nil {
		return nil, err
	}
	return u, nil
}

// CheckAddr checks that an address may be dialled for a scheme ("http", "https" or another
// of publicPorts). It is the decisive check: it runs after DNS, on the address that is
// about to be connected.
func (r Rules) CheckAddr(scheme string, to netip.AddrPort) error {
	addr := to.Addr().Unmap().WithZone("")
	if !addr.IsValid() {
		return fmt.Errorf("%w: no address", ErrBlocked)
	}
	if r.allows(addr) {
		return nil
	}
	if name := notPublic(addr); name != "" {
		return fmt.Errorf("%w: %s is not public (%s); BACKSTOP_NOTIFY_ALLOW_CIDRS can allow it", ErrBlocked, addr, name)
	}
	return checkPublic(scheme, to.Port())
}

func (r Rules) allows(addr netip.Addr) bool {
	return slices.ContainsFunc(r.allow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// checkPublic checks scheme and port of hosts outside the allowed ranges.
func checkPublic(scheme string, port uint16) error {
	ports, encrypted := publicPorts[scheme]
	if !encrypted {
		return fmt.Errorf("%w: plain %s is only for ranges in BACKSTOP_NOTIFY_ALLOW_CIDRS; use %ss", ErrBlocked, scheme, scheme)
	}
	if !slices.Contains(ports, port) {
		return fmt.Errorf("%w: port %d of a public host; use %s", ErrBlocked, port, listed(ports))
	}
	return nil
}

// listed formats ports as "443, 8443 or 9000".
func listed(ports []uint16) string {
	var b strings.Builder
	for i, p := range ports {
		switch {
		case i > 0 && i == len(ports)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(int(p)))
	}
	return b.String()
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	switch {
	case text != "":
	case strings.HasSuffix(u.Host, ":"):
		return 0, fmt.Errorf("%w: the port is missing", ErrURL)
	case u.Scheme == "https":
		return 443, nil
	default:
		return 80, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%w: the port must be 1 to 65535", ErrURL)
	}
	return uint16(port), nil
}

// checkHost checks a host as far as possible without DNS.
func (r Rules) checkHost(scheme, host string, port uint16) error {
	if host == "" {
		return fmt.Errorf("%w: the host is missing", ErrURL)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return r.CheckAddr(scheme, netip.AddrPortFrom(addr, port))
	}
	if err := checkName(host); err != nil {
		return err
	}
	if len(r.allow) > 0 {
		return nil // the name may resolve to an allowed range: it is checked at the dial
	}
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return fmt.Errorf("%w: %s is not public (loopback, RFC 6761); BACKSTOP_NOTIFY_ALLOW_CIDRS can allow it", ErrBlocked, name)
	}
	return checkPublic(scheme, port)
}

// checkName accepts DNS names in ASCII. It refuses the number forms (0x7f.1, 2130706433,
// 0177.0.0.1, 127.1) that some resolvers parse as IPv4 addresses: a name whose last label
// is a number is never a host's (WHATWG URL, "ends in a number").
func checkName(host string) error {
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w: the host must have 1 to %d characters", ErrURL, maxName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, notInName) {
			return fmt.Errorf("%w: the host is not a DNS name or an IP address", ErrURL)
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return fmt.Errorf("%w: an IPv4 address is four decimal numbers without leading zeros", ErrURL)
	}
	return nil
}

func notInName(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	return !letter && (c < '0' || c > '9') && c != '-' && c != '_'
}

func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(strings.ToLower(label), "0x")
	return !strings.ContainsFunc(digits, func(c rune) bool {
		return (c < '0' || c > '9') && (!hex || c < 'a' || c > 'f')
	})
}
