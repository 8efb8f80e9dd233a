// Package fakemerchant is a merchant's server on a free port of 127.0.0.1 with configurable
// misbehaviour. It does not depend on testing: demo and bench use it too.
package fakemerchant

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// defaultKeep is how many requests a merchant keeps.
	defaultKeep = 4096
	// maxBody bounds how much of a request's body is read.
	maxBody = 1 << 20
	// clockSkew is the tolerated difference between a request's timestamp and its arrival, as
	// in the libraries of Standard Webhooks.
	clockSkew = 5 * time.Minute
)

// Options of a Merchant. The zero value serves plain HTTP.
type Options struct {
	// TLS makes the merchant serve https (and HTTP/2) with this certificate.
	TLS Certificate
	// ClientCAs, with TLS, makes the merchant require a client certificate from one of these
	// authorities.
	ClientCAs *x509.CertPool
	// Keep is how many of the newest requests are kept: 0 = 4096; negative = none (they are
	// only counted, and Request.Attempt is 0).
	Keep int
}

// Request is one request that a merchant received.
type Request struct {
	N       int // 1 for the merchant's first
	Attempt int // 1 for the first with this ID
	ID      string
	At      time.Time // when the body had been read
	Method  string
	Path    string
	Header  http.Header
	Body    []byte
}

// Merchant is a merchant's server. It is safe for concurrent use.
type Merchant struct {
	listener net.Listener
	server   *http.Server
	scheme   string
	roots    *x509.CertPool
	closed   chan struct{} // releases requests that hang
	once     sync.Once

	behaviour   atomic.Pointer[Behaviour]
	connections atomic.Int64
	count       atomic.Int64

	mu       sync.Mutex
	keep     int
	requests []Request // a ring buffer
	next     int
	attempts map[string]int // by id, of the kept requests
}

// Open starts a merchant that responds 200 with "success" to everything until Behave changes
// that.
func Open(options Options) (*Merchant, error) {
	m := &Merchant{
		scheme: "http", closed: make(chan struct{}), keep: options.Keep, attempts: map[string]int{},
	}
	if m.keep == 0 {
		m.keep = defaultKeep
	}
	m.Behave(Answer(http.StatusOK, "success"))
	m.server = &http.Server{
		Handler:           http.HandlerFunc(m.serve),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // bad handshakes are expected
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				m.connections.Add(1)
			}
		},
	}
	var err error
	if m.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("open merchant: %w", err)
	}
	serve := m.server.Serve
	if options.TLS != NoTLS {
		certificate, roots, err := issue(options.TLS)
		if err != nil {
			_ = m.listener.Close()
			return nil, fmt.Errorf("open merchant: %w", err)
		}
		m.scheme, m.roots = "https", roots
		m.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		if options.ClientCAs != nil {
			m.server.TLSConfig.ClientCAs, m.server.TLSConfig.ClientAuth = options.ClientCAs, tls.RequireAndVerifyClientCert
		}
		serve = func(l net.Listener) error { return m.server.ServeTLS(l, "", "") }
	}
	go func() { _ = serve(m.listener) }()
	return m, nil
}

// URL returns the URL for notifications.
func (m *Merchant) URL() string { return m.scheme + "://" + m.listener.Addr().String() + "/notify" }

// Roots returns the pool that trusts the merchant's certificate; nil without TLS.
func (m *Merchant) Roots() *x509.CertPool { return m.roots }

// Behave changes the behaviour from the next request on.
func (m *Merchant) Behave(b Behaviour) { m.behaviour.Store(&b) }

// Count returns the number of requests so far.
func (m *Merchant) Count() int { return int(m.count.Load()) }

// Connections returns the number of accepted connections so far.
func (m *Merchant) Connections() int { return int(m.connections.Load()) }

// Requests returns the kept requests, oldest first.
func (m *Merchant) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Request, 0, len(m.requests))
	list = append(list, m.requests[m.next:]...)
	return append(list, m.requests[:m.next]...)
}

// Close stops the merchant and aborts running requests.
func (m *Merchant) Close() error {
	m.once.Do(func() { close(m.closed) })
	if err := m.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close merchant: %w", err)
	}
	return nil
}

func (m *Merchant) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the sender disconnected
	}
	request := m.record(Request{
		N: int(m.count.Add(1)), ID: r.Header.Get(standardwebhooks.HeaderWebhookID), At: time.Now(),
		Method: r.Method, Path: r.URL.Path, Header: r.Header, Body: body,
	})
	(*m.behaviour.Load())(&Exchange{Request: request, w: w, r: r, closed: m.closed})
}

// record stores a request in place of the oldest and numbers its attempt.
func (m *Merchant) record(r Request) Request {
	if m.keep < 0 {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts[r.ID]++
	r.Attempt = m.attempts[r.ID]
	if len(m.requests) < m.keep {
		m.requests = append(m.requests, r)
		return r
	}
	oldest := &m.requests[m.next]
	if m.attempts[oldest.ID] == oldest.Attempt {
		delete(m.attempts, oldest.ID) // no request with this id is left
	}
	*oldest = r
	m.next = (m.next + 1) % m.keep
	return r
}

// Verify checks a request as a merchant's own code would, with the Standard Webhooks library:
// signed with one of the secrets, a current timestamp, and the same id in body and header.
func Verify(r Request, secrets ...[]byte) error {
	seconds, err := strconv.ParseInt(r.Header.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
	if err != nil {
		return fmt.Errorf("read timestamp: %w", err)
	}
	if skew := r.At.Sub(time.Unix(seconds, 0)).Abs(); skew > clockSkew {
		return fmt.Errorf("timestamp is %s away", skew)
	}
	if !bytes.Contains(r.Body, []byte(strconv.Quote(r.ID))) {
		return errors.New("the body does not name the id of the header")
	}
	err = errors.New("no secret to verify with")
	for _, secret := range secrets {
		var verifier *standardwebhooks.Webhook
		if verifier, err = standardwebhooks.NewWebhookRaw(secret); err != nil {
			return fmt.Errorf("make verifier: %w", err)
		}
		if err = verifier.VerifyIgnoringTimestamp(r.Body, r.Header); err == nil {
			return nil
		}
	}
	return fmt.Errorf("verify signature: %w", err)
}
