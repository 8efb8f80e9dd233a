package kafka

import (
	"context"
	"net"
	"sync"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	// requestRetries within an attempt: one, for a connection that turned out to be closed. All
	// other retries are up to the schedule.
	requestRetries = 1
	// metadataPause is the minimum interval between requests for the metadata of an unknown
	// topic.
	metadataPause = 250 * time.Millisecond
)

// link is a client and the connections that it has opened.
type link struct {
	client *kgo.Client
	dial   func(ctx context.Context, address string) (net.Conn, error)

	mu    sync.Mutex
	conns map[*conn]struct{}
	ended bool
}

// conn is removed from its link when it is closed.
type conn struct {
	net.Conn
	link *link
}

func (c *conn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	return c.Conn.Close()
}

// open creates a client and checks that a broker responds, so that a wrong address or login is
// reported at once; the client itself would keep trying.
func open(ctx context.Context, out *egress.Client, to target, m notify.Message) (*link, error) {
	l := &link{conns: map[*conn]struct{}{}}
	l.dial = func(ctx context.Context, address string) (net.Conn, error) {
		if to.scheme == "kafkas" {
			return out.DialTLS(ctx, to.scheme, address, m.ClientCert)
		}
		return out.Dial(ctx, to.scheme, address)
	}
	options := []kgo.Opt{
		kgo.ClientID("Backstop"), kgo.SeedBrokers(to.brokers...),
		// Every broker is checked when dialled, including those named by another broker.
		kgo.Dialer(l.connect),
		kgo.RequiredAcks(kgo.AllISRAcks()), // with idempotent writes, which are the default
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), // do not delay messages
		kgo.RequestRetries(requestRetries), kgo.UnknownTopicRetries(requestRetries), kgo.MetadataMinAge(metadataPause),
		kgo.ConnIdleTimeout(idleTimeout), kgo.DisableClientMetrics(),
	}
	if mechanism := login(to, m); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	var err error
	if l.client, err = kgo.NewClient(options...); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, l.cut)
	err = l.client.Ping(ctx)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) connect(ctx context.Context, _, address string) (net.Conn, error) {
	raw, err := l.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &conn{raw, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// cut closes the connections under the client, which would otherwise wait for a silent broker
// long after the attempt.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for c := range l.conns {
		_ = c.Conn.Close()
	}
}

func (l *link) close() {
	l.cut()
	l.client.Close()
}

func login(to target, m notify.Message) sasl.Mechanism {
	user, password := m.Credentials["username"], m.Credentials["password"]
	if user == "" {
		return nil
	}
	switch to.sasl {
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}
