package amqp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	// maxIdlePublishers is how many idle AMQP channels of a connection are kept: about the
	// slots of one busy recipient.
	maxIdlePublishers = 16
	// closeTime bounds the closing handshake with a broker.
	closeTime = 2 * time.Second
)

// link is one connection to a broker.
type link struct {
	raw    net.Conn
	remote string
	conn   *amqp091.Connection

	mu   sync.Mutex
	idle []*publisher
}

// publisher is an AMQP channel in confirm mode with one message at a time, so that a returned
// message is always that one.
type publisher struct {
	ch       *amqp091.Channel
	returned chan amqp091.Return
	closed   chan *amqp091.Error
}

// open connects and logs in. The context ends it at any point.
func open(ctx context.Context, client *egress.Client, to target, m notify.Message) (*link, error) {
	var raw net.Conn
	var err error
	if to.scheme == "amqps" {
		raw, err = client.DialTLS(ctx, to.scheme, to.address, m.ClientCert)
	} else {
		raw, err = client.Dial(ctx, to.scheme, to.address)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, err := amqp091.Open(raw, amqp091.Config{
		SASL: []amqp091.Authentication{&amqp091.PlainAuth{
			Username: cmp.Or(m.Credentials["username"], "guest"), Password: cmp.Or(m.Credentials["password"], "guest"),
		}},
		Vhost: to.vhost, FrameSize: maxFrame, Heartbeat: heartbeat,
		Properties: amqp091.Table{"product": "Backstop", "connection_name": "Backstop"},
	})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("log in: %w", err)
	}
	return &link{raw: raw, remote: raw.RemoteAddr().String(), conn: conn}, nil
}

func (l *link) close() {
	_ = l.conn.CloseDeadline(time.Now().Add(closeTime))
	_ = l.raw.Close()
}

// publish sends a message and waits for the broker's confirmation. On errRefused the broker
// refused the message; after any other error it may have accepted it.
func (l *link) publish(ctx context.Context, to target, message amqp091.Publishing) error {
	p, confirmed, err := l.begin(ctx, to, message)
	if err != nil {
		return err
	}
	select {
	case <-confirmed.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if !confirmed.Acked() {
		select {
		// Closing a channel fails its message, with the reason.
		case reason, ok := <-p.closed:
			if ok && reason.Server {
				return fmt.Errorf("%w: the broker says: %s", errRefused, reason.Reason)
			}
			return fmt.Errorf("the channel was closed: %w", cmp.Or(reason, amqp091.ErrClosed))
		default:
			l.keep(p)
			return fmt.Errorf("%w: the broker could not store it (nack)", errRefused)
		}
	}
	defer l.keep(p)
	select {
	// The broker returns a message before it confirms it.
	case r, ok := <-p.returned:
		if ok {
			return fmt.Errorf("%w: no queue accepted it: the broker returned it with %d %s", errRefused, r.ReplyCode, r.ReplyText)
		}
	default:
	}
	return nil
}

// begin writes the message. The library's calls take no context: if one does not return in
// time, its connection is closed.
func (l *link) begin(ctx context.Context, to target, message amqp091.Publishing) (*publisher, *amqp091.DeferredConfirmation, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.raw.Close() })
	defer stop()
	p, err := l.publisher()
	if err != nil {
		return nil, nil, fmt.Errorf("open a channel: %w", err)
	}
	confirmed, err := p.ch.PublishWithDeferredConfirm(to.exchange, to.key, true, false, message)
	if err != nil {
		return nil, nil, fmt.Errorf("publish: %w", err)
	}
	return p, confirmed, nil
}

// publisher returns an idle one, or opens one.
func (l *link) publisher() (*publisher, error) {
	for {
		l.mu.Lock()
		n := len(l.idle)
		if n == 0 {
			l.mu.Unlock()
			break
		}
		p := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		if !p.ch.IsClosed() {
			return p, nil
		}
	}
	ch, err := l.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	// Both have room for everything one message can cause, so that the library never blocks.
	return &publisher{
		ch: ch, returned: ch.NotifyReturn(make(chan amqp091.Return, 1)), closed: ch.NotifyClose(make(chan *amqp091.Error, 1)),
	}, nil
}

// keep returns a publisher for reuse.
func (l *link) keep(p *publisher) {
	l.mu.Lock()
	if len(l.idle) < maxIdlePublishers {
		l.idle = append(l.idle, p)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	_ = p.ch.Close()
}
