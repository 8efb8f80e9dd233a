// Package egress is the only way out: an HTTP client for URLs that other people
// chose. It reaches public hosts over https and whatever ranges the operator
// allowed, and nothing else (SSRF).
//
// The address is checked in the dialer, after DNS has answered and on the very
// address that is about to be connected, so a name that changes its answer
// between a check and the dial (rebinding) wins nothing. No proxy is taken from
// the environment, and redirects are not followed: they are answers like others.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrTLS says that the connection stood but the TLS handshake did not succeed.
var ErrTLS = errors.New("tls handshake")

// Limits of the connections. The whole attempt is bounded by the request's
// context; connecting and shaking hands have bounds of their own, as they go on
// for the next request when the one that began them gives up.
const (
	connectTimeout   = 3 * time.Second // DNS included
	handshakeTimeout = 3 * time.Second
	// idleTimeout is below the 75 s of the commonest server, so that we close an
	// idle connection first and do not send into one that is just being closed.
	idleTimeout = 60 * time.Second
	// maxIdlePerHost lets one busy merchant's slots all keep their connection;
	// with the standard two, every burst would pay for handshakes again.
	maxIdlePerHost = 64
	maxIdle        = 1024
	maxHeaderBytes = 16 << 10
	// An HTTP/2 connection that a middlebox has forgotten is found by a ping;
	// otherwise every request to that host would run into its timeout.
	pingAfter, pingTimeout = 15 * time.Second, 5 * time.Second
	sessions               = 512 // TLS sessions kept for quick reconnects
)

// Config is what a Client may differ in. The zero value reaches the public
// Internet only.
type Config struct {
	// Allow lists the non-public ranges that may be reached.
	Allow []netip.Prefix
	// Roots are the certificate authorities to trust; nil means the system's.
	Roots *x509.CertPool
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// Client calls out. It keeps connections alive and is safe for concurrent use.
type Client struct {
	Rules
	transport     *http.Transport
	plain, secure *net.Dialer
	resolver      *net.Resolver
	tls           *tls.Config
	identities    identities
}

// New returns a client of its own connection pool: make one and share it.
func New(config Config) *Client {
	c := &Client{Rules: NewRules(config.Allow), resolver: config.Resolver}
	c.plain = c.dialer("http", config.Resolver)
	c.secure = c.dialer("https", config.Resolver)
	c.tls = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            config.Roots,
		NextProtos:         []string{"h2", "http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
	}
	c.transport = c.newTransport(c.tls)
	return c
}

// newTransport returns a pool of connections that shake hands by a configuration.
func (c *Client) newTransport(config *tls.Config) *http.Transport {
	// Two dial functions, as the transport tells a dial nothing of the scheme,
	// and whether http is allowed depends on the address.
	return &http.Transport{
		Proxy:       nil,
		DialContext: c.plain.DialContext,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, c.secure, config, network, address)
		},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:     true, // a small answer must not unfold into a large one
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// RoundTrip sends one request and returns the answer's head. It is a plain
// http.RoundTripper: no redirect is followed, no cookie kept, and no error
// quotes the URL. An http.Client around it must refuse redirects itself.
//
// Errors wrap ErrBlocked, ErrTLS, *net.DNSError or a *net.OpError of Op "dial"
// where the request did not get as far as a connection.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.transport.RoundTrip(req)
}

// Close drops the idle connections. Requests under way are not touched.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.identities.close()
}

func (c *Client) dialer(scheme string, resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{
		Timeout:  connectTimeout,
		Resolver: resolver,
		// Control runs once for each address tried, between socket and connect.
		Control: func(network, address string, _ syscall.RawConn) error {
			return c.checkDial(scheme, network, address)
		},
	}
}

// checkDial refuses what it cannot read: no address goes through unjudged.
func (c *Client) checkDial(scheme, network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", ErrBlocked, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: no address", ErrBlocked)
	}
	return c.CheckAddr(scheme, to)
}

func dialTLS(ctx context.Context, dialer *net.Dialer, base *tls.Config, network, address string) (net.Conn, error) {
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	config := base.Clone()
	config.ServerName = host
	conn := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return conn, nil
}
