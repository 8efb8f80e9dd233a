package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// Dial opens a connection for a protocol that is not HTTP. The scheme ("amqp",
// "kafka", …) says by which rules the address is judged; address is "host:port".
// Errors are those of RoundTrip.
func (c *Client) Dial(ctx context.Context, scheme, address string) (net.Conn, error) {
	return c.dialer(scheme, c.resolver).DialContext(ctx, "tcp", address)
}

// DialTLS is Dial with a handshake; certificate is what we show of ourselves, or
// nil.
func (c *Client) DialTLS(ctx context.Context, scheme, address string, certificate *tls.Certificate) (net.Conn, error) {
	config := c.TLSConfig("", certificate)
	config.NextProtos = nil
	return dialTLS(ctx, c.dialer(scheme, c.resolver), config, "tcp", address)
}

// TLSConfig is for protocols that turn to TLS after they began in plain text
// (STARTTLS): trust and versions as everywhere else, for the named server.
func (c *Client) TLSConfig(server string, certificate *tls.Certificate) *tls.Config {
	config := &tls.Config{MinVersion: c.tls.MinVersion, RootCAs: c.tls.RootCAs, ServerName: server}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return config
}

// CheckHost says whether a text can be a host at all: an IP address or a DNS name
// in ASCII, without a port. Where it points is judged at the dial. Errors are
// ErrURL.
func CheckHost(host string) error {
	if host == "" {
		return fmt.Errorf("%w: the host is missing", ErrURL)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	return checkName(host)
}
