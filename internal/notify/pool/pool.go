// Package pool keeps connections to recipients' brokers open between notifications: one per
// address and login, bounded in number, closed when idle.
package pool

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"strings"
	"sync"
	"time"
)

// Errors of Take.
var (
	// ErrFull means that every connection is in use and no more may be opened.
	ErrFull = errors.New("this node has too many connections to merchants' systems in use")
	// ErrClosed means that the node is shutting down.
	ErrClosed = errors.New("the channel is closed")
)

// Options of a Pool.
type Options[T any] struct {
	Max  int           // connections, in use or idle
	Idle time.Duration // how long an unused one stays open
	// Close ends a connection. It may take a while; only Pool.Close waits for it.
	Close func(T)
}

// Pool lends shared connections. The zero value is not usable; use New.
type Pool[T any] struct {
	o       Options[T]
	mu      sync.Mutex
	entries map[string]*entry[T]
	sweep   *time.Timer
	closed  bool
	closing sync.WaitGroup
}

// entry is one connection. opening is held while it is being opened, so that a burst of
// messages opens only one, and each message waits at most for its own timeout.
type entry[T any] struct {
	opening chan struct{}
	conn    T
	open    bool
	dropped bool // no longer in the pool; closed when its last lease is released
	users   int
	used    time.Time
}

// New returns an empty Pool.
func New[T any](o Options[T]) *Pool[T] { return &Pool[T]{o: o, entries: map[string]*entry[T]{}} }

// Key identifies a connection by its address, its login, and the client's certificate, if
// there is one. It is a digest, so that no list of keys holds a password.
func Key(certificate *tls.Certificate, parts ...string) string {
	if certificate != nil && len(certificate.Certificate) > 0 {
		parts = append(parts, string(certificate.Certificate[0]))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return string(sum[:])
}

// Lease is the use of a connection. Every lease must be released once.
type Lease[T any] struct {
	Conn T
	pool *Pool[T]
	key  string
	e    *entry[T]
}

// Take returns the key's connection, opened with open if there is none. The error is from open
// or ctx, or ErrFull or ErrClosed.
func (p *Pool[T]) Take(ctx context.Context, key string, open func(context.Context) (T, error)) (*Lease[T], error) {
	e, err := p.enter(key)
	if err != nil {
		return nil, err
	}
	lease := &Lease[T]{pool: p, key: key, e: e}
	select {
	case e.opening <- struct{}{}:
	case <-ctx.Done():
		lease.Release()
		return nil, ctx.Err()
	}
	defer func() { <-e.opening }()
	if !e.open {
		conn, err := open(ctx)
		if err != nil {
			lease.Release()
			return nil, err
		}
		p.mu.Lock()
		e.conn, e.open = conn, true
		p.mu.Unlock()
	}
	lease.Conn = e.conn
	return lease, nil
}

func (p *Pool[T]) enter(key string) (*entry[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	e := p.entries[key]
	if e == nil {
		if len(p.entries) >= p.o.Max && !p.evict() {
			return nil, ErrFull
		}
		e = &entry[T]{opening: make(chan struct{}, 1)}
		p.entries[key] = e
		if p.sweep == nil {
			p.sweep = time.AfterFunc(p.o.Idle, p.expire)
		}
	}
	e.users++
	return e, nil
}

// Release ends the use.
func (l *Lease[T]) Release() {
	p, e := l.pool, l.e
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	e.used = time.Now()
	switch {
	case e.users > 0:
	case e.dropped:
		p.end(e)
	case !e.open: // it could not be opened
		delete(p.entries, l.key)
	}
}

// Drop removes a connection that is no longer usable from the pool: the next Take opens
// another. It is closed when its last lease is released.
func (l *Lease[T]) Drop() {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[l.key] == l.e {
		delete(p.entries, l.key)
	}
	l.e.dropped = true
}

// end closes an entry's connection in the background. Called with p.mu held.
func (p *Pool[T]) end(e *entry[T]) {
	if e.open {
		e.open = false
		p.closing.Go(func() { p.o.Close(e.conn) })
	}
}

// evict closes the least recently used idle connection. Called with p.mu held.
func (p *Pool[T]) evict() bool {
	var key string
	var oldest *entry[T]
	for k, e := range p.entries {
		if e.users == 0 && (oldest == nil || e.used.Before(oldest.used)) {
			key, oldest = k, e
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.entries, key)
	p.end(oldest)
	return true
}

// expire closes idle connections, and reschedules itself while connections are left.
func (p *Pool[T]) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := time.Now().Add(-p.o.Idle)
	for key, e := range p.entries {
		if e.users == 0 && !e.used.After(before) {
			delete(p.entries, key)
			p.end(e)
		}
	}
	p.sweep = nil
	if len(p.entries) > 0 && !p.closed {
		p.sweep = time.AfterFunc(p.o.Idle/2, p.expire)
	}
}

// Close closes all connections and waits for that. Connections in use are closed when they
// are released.
func (p *Pool[T]) Close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	for key, e := range p.entries {
		delete(p.entries, key)
		e.dropped = true
		if e.users == 0 {
			p.end(e)
		}
	}
	p.mu.Unlock()
	p.closing.Wait()
}
