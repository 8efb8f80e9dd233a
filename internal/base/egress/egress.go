// Package egress is the HTTP client for URLs that merchants choose. It reaches public hosts
// over https and the ranges that the operator allows, and nothing else (SSRF).
//
// The address is checked in the dialer, after DNS and immediately before the connection, so
// a name whose address changes between a check and the dial (rebinding) has no effect. Proxy
// variables of the environment are ignored. Redirects are not followed: they are responses
// like any other.
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

// ErrTLS means that the connection was made but the TLS handshake failed.
var ErrTLS = errors.New("tls handshake")

// Limits of the connections. The request's context bounds the whole attempt. Connect and
// handshake have bounds of their own: they continue for the next request when the one that
// started them gives up.
const (
	connectTimeout   = 3 * time.Second // DNS included
	handshakeTimeout = 3 * time.Second
	// idleTimeout is below the 75 s of the most common server, so that we close an idle
	// connection first and never send on one that is being closed.
	idleTimeout = 60 * time.Second
	// maxIdlePerHost lets each slot of a busy merchant keep its connection; with Go's
	// default of two, every burst would repeat the handshakes.
	maxIdlePerHost = 64
	maxIdle        = 1024
	maxHeaderBytes = 16 << 10
	// A ping detects an HTTP/2 connection that a middlebox has dropped; otherwise every
	// request to that host would time out.
	pingAfter, pingTimeout = 15 * time.Second, 5 * time.Second
	sessions               = 512 // TLS sessions kept for quick reconnects
)

// Config configures a Client. The zero value reaches the public Internet only.
type Config struct {
	// Allow lists the non-public ranges that may be reached.
	Allow []netip.Prefix
	// Roots are the certificate authorities to trust; nil means the system's.
	Roots *x509.CertPool
	// Resolver resolves names; nil means the system's.
	Resolver *net.Resolver
	// Local has hosts whose requests are answered in this process: none is resolved, and no
	// connection is made. Their names end in .invalid, which never resolves, so that nobody's
	// host can be shadowed.
	Local map[string]func(*http.Request) (*http.Response, error)
}

// Client keeps connections open and is safe for concurrent use.
type Client struct {
	Rules
	transport     *http.Transport
	plain, secure *net.Dialer
	resolver      *net.Resolver
	tls           *tls.Config
	identities    identities
	local         map[string]func(*http.Request) (*http.Response, error)
}

// New returns a client with a connection pool of its own: make one and share it.
func New(config Config) *Client {
	c := &Client{Rules: NewRules(config.Allow), resolver: config.Resolver, local: config.Local}
	c.plain, c.secure = c.dialer("http"), c.dialer("https")
	c.tls = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            config.Roots,
		NextProtos:         []string{"h2", "http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
	}
	c.transport = c.newTransport(c.tls)
	return c
}

// newTransport returns a connection pool with a TLS configuration.
func (c *Client) newTransport(config *tls.Config) *http.Transport {
	// Two dial functions: a dial is not given the scheme, and whether http is allowed
	// depends on the address.
	return &http.Transport{
		Proxy:       nil,
		DialContext: c.plain.DialContext,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, c.secure, config, network, address)
		},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:     true, // a small response must not expand into a large one
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// RoundTrip sends one request and returns the head of the response. It is a plain
// http.RoundTripper: it follows no redirect, keeps no cookie, and no error quotes the URL.
// An http.Client around it must refuse redirects itself.
//
// If no connection was made, the error wraps ErrBlocked, ErrTLS, *net.DNSError or a
// *net.OpError with Op "dial".
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if answer := c.local[req.URL.Host]; answer != nil {
		return answer(req)
	}
	return c.transport.RoundTrip(req)
}

// Close closes the idle connections. Running requests go on.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.identities.close()
}

func (c *Client) dialer(scheme string) *net.Dialer {
	return &net.Dialer{
		Timeout:  connectTimeout,
		Resolver: c.resolver,
		// Control runs once for each address tried, between socket and connect.
		Control: func(network, address string, _ syscall.RawConn) error {
			return c.checkDial(scheme, network, address)
		},
	}
}

// checkDial also refuses an address that it cannot parse, so none is dialled unchecked.
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
