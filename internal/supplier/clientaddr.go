package supplier

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// maxForwarded bounds X-Forwarded-For in bytes: some 40 IPv6 hops. Real chains have a handful.
const maxForwarded = 2048

// ErrForwarded means that X-Forwarded-For cannot be trusted, and the request must be denied.
var ErrForwarded = errors.New("X-Forwarded-For is malformed")

// badForwarded is ErrForwarded with the details.
type badForwarded struct{ text.Message }

func (e badForwarded) Is(target error) bool { return target == ErrForwarded }

func (e badForwarded) Unwrap() error { return e.Message }

// ClientAddr returns the address that a request really came from: the nearest one that is not a
// trusted proxy. remote is the peer of the connection, xff the header's lines in order.
//
// The header counts only if a trusted peer sent it, and is read from the right: each proxy
// appends the address of its peer, so everything left of the first untrusted address may be
// forged. A trusted peer without a header is itself the client, and so is the leftmost address
// of a fully trusted chain. A chain that is malformed anywhere is ErrForwarded, because proxies
// that disagree on where a hop ends disagree on the client. Addresses are returned without zone
// and unmapped (::ffff:1.2.3.4 is 1.2.3.4).
func ClientAddr(remote netip.Addr, xff []string, trusted []netip.Prefix) (netip.Addr, error) {
	if !remote.IsValid() {
		return netip.Addr{}, noAddress.Say()
	}
	client := plain(remote)
	if !within(trusted, client) {
		return client, nil
	}
	chain := strings.Join(xff, ",")
	if len(chain) > maxForwarded {
		return netip.Addr{}, badForwarded{forwardedLong.Say(maxForwarded)}
	}
	if strings.Trim(chain, " \t") == "" {
		return client, nil
	}
	for hop := range strings.SplitSeq(chain, ",") {
		if _, err := parseHop(strings.Trim(hop, " \t")); err != nil {
			return netip.Addr{}, err
		}
	}
	return NearestAddr(remote, xff, trusted), nil
}

// NearestAddr is ClientAddr without an error, for callers that always need an address: it reads
// from the right, only as far as the first untrusted address, so what is left of that may be
// malformed; if the chain is malformed before, the result is the last readable hop.
func NearestAddr(remote netip.Addr, xff []string, trusted []netip.Prefix) netip.Addr {
	client := plain(remote)
	chain := strings.Join(xff, ",")
	for more := strings.Trim(chain, " \t") != ""; more && within(trusted, client); {
		var hop string
		if i := strings.LastIndexByte(chain, ','); i >= 0 {
			chain, hop = chain[:i], chain[i+1:]
		} else {
			chain, hop, more = "", chain, false
		}
		addr, err := parseHop(strings.Trim(hop, " \t"))
		if err != nil {
			return client
		}
		client = addr
	}
	return client
}

// parseHop parses an address as proxies write it: bare, IPv4 with a port, IPv6 in brackets with
// or without a port. A zone is meaningful only on a link-local address.
func parseHop(hop string) (netip.Addr, error) {
	var addr netip.Addr
	var err error
	switch {
	case strings.HasPrefix(hop, "[") && strings.HasSuffix(hop, "]"):
		addr, err = netip.ParseAddr(hop[1 : len(hop)-1])
		if addr.Is4() {
			err = ErrForwarded // brackets are IPv6's
		}
	case strings.HasPrefix(hop, "["), strings.Count(hop, ":") == 1:
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(hop)
		addr = withPort.Addr()
	default:
		addr, err = netip.ParseAddr(hop)
	}
	if err != nil || addr.Zone() != "" && !addr.IsLinkLocalUnicast() {
		return netip.Addr{}, badForwarded{forwardedHop.Say(strconv.Quote(textlimit.Clip(hop, maxName)))}
	}
	return plain(addr), nil
}

// within reports whether one of the prefixes contains addr. An IPv4-mapped prefix or
// address counts as IPv4.
func within(prefixes []netip.Prefix, addr netip.Addr) bool {
	addr = plain(addr)
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
