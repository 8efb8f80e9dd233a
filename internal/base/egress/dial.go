package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// Dial opens a connection for a protocol that is not HTTP. The scheme ("amqp", "kafka", …)
// selects the rules for the address, which is "host:port". Errors are those of RoundTrip.
func (c *Client) Dial(ctx context.Context, scheme, address string) (net.Conn, error) {
	return c.dialer(scheme).DialContext(ctx, "tcp", address)
}

// DialTLS is Dial with a handshake; certificate is the client certificate, or nil.
func (c *Client) DialTLS(ctx context.Context, scheme, address string, certificate *tls.Certificate) (net.Conn, error) {
	config := c.TLSConfig("", certificate)
	config.NextProtos = nil
	return dialTLS(ctx, c.dialer(scheme), config, "tcp", address)
}

// TLSConfig is for protocols that begin in plain text and change to TLS (STARTTLS): roots
// and versions as everywhere else, for the named server.
func (c *Client) TLSConfig(server string, certificate *tls.Certificate) *tls.Config {
	config := &tls.Config{MinVersion: c.tls.MinVersion, RootCAs: c.tls.RootCAs, ServerName: server}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return config
}

// CheckHost checks the form of a host: an IP address or a DNS name in ASCII, without a port.
// Its address is checked when it is dialled. Errors are ErrURL.
func CheckHost(host string) error {
	if host == "" {
		return fmt.Errorf("%w: the host is missing", ErrURL)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	return checkName(host)
}
