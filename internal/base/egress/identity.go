package egress

import (
	"crypto/sha256"
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// maxIdentities bounds the client certificates whose connections are kept open. Beyond it,
// the idle connections of the least recently used one are closed.
const maxIdentities = 256

// identities are connection pools by client certificate: a connection is authenticated by
// its certificate and must never carry a request that uses another one.
type identities struct {
	mu   sync.Mutex
	pool map[[sha256.Size]byte]*identity
}

type identity struct {
	transport *http.Transport
	used      time.Time
}

// RoundTripAs is RoundTrip with a client certificate (mTLS), on connections of its
// own.
func (c *Client) RoundTripAs(certificate *tls.Certificate, req *http.Request) (*http.Response, error) {
	if certificate == nil || len(certificate.Certificate) == 0 || c.local[req.URL.Host] != nil {
		return c.RoundTrip(req)
	}
	return c.as(certificate).RoundTrip(req)
}

func (c *Client) as(certificate *tls.Certificate) *http.Transport {
	key := sha256.Sum256(certificate.Certificate[0])
	c.identities.mu.Lock()
	defer c.identities.mu.Unlock()
	id := c.identities.pool[key]
	if id == nil {
		c.identities.makeRoom()
		config := c.tls.Clone()
		// Sessions of another certificate must not be resumed.
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		config.Certificates = []tls.Certificate{*certificate}
		id = &identity{transport: c.newTransport(config)}
		c.identities.pool[key] = id
	}
	id.used = time.Now()
	return id.transport
}

// makeRoom removes the least recently used identity if there are too many. Its running
// requests continue.
func (i *identities) makeRoom() {
	if i.pool == nil {
		i.pool = map[[sha256.Size]byte]*identity{}
	}
	if len(i.pool) < maxIdentities {
		return
	}
	var oldest [sha256.Size]byte
	for key, id := range i.pool {
		if at, ok := i.pool[oldest]; !ok || id.used.Before(at.used) {
			oldest = key
		}
	}
	i.pool[oldest].transport.CloseIdleConnections()
	delete(i.pool, oldest)
}

func (i *identities) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, id := range i.pool {
		id.transport.CloseIdleConnections()
	}
}
