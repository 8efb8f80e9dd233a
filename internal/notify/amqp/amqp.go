// Package amqp sends notifications to a recipient's RabbitMQ (AMQP 0-9-1): persistent messages,
// confirmed by the broker, and mandatory. A message that no queue accepts is returned and
// counts as a failure; otherwise a missing binding would lose every notification while looking
// like success.
//
// Credentials: "username" and "password" (default guest, which RabbitMQ allows only from its
// own host). They appear in no log and no result.
package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
	"backstop/internal/notify/pool"
	"backstop/internal/notify/webhook"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	// maxConnections is far above the number of brokers of one node's recipients, and far below
	// the process's limit of open files.
	maxConnections = 256
	// idleTimeout keeps a connection through a few minutes without events.
	idleTimeout = 5 * time.Minute
	// heartbeat detects a connection that a middlebox has dropped.
	heartbeat = 10 * time.Second
	// maxFrame bounds what a broker may send in one piece; RabbitMQ's own default.
	maxFrame = 128 << 10
)

// Channel publishes notifications. It is safe for concurrent use.
type Channel struct {
	client *egress.Client
	links  *pool.Pool[*link]
}

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client. Close it.
func New(client *egress.Client) *Channel {
	return &Channel{client: client, links: pool.New(pool.Options[*link]{
		Max: maxConnections, Idle: idleTimeout, Close: (*link).close,
	})}
}

// Close ends the connections.
func (c *Channel) Close() error {
	c.links.Close()
	return nil
}

// Send publishes the message once and waits until the broker has confirmed it.
func (c *Channel) Send(ctx context.Context, m notify.Message) notify.Result {
	return outcome.Send(ctx, m, m.Credentials, func(ctx context.Context) notify.Result { return c.attempt(ctx, m) })
}

func (c *Channel) attempt(ctx context.Context, m notify.Message) notify.Result {
	to, err := parse(m.URL)
	if err != nil {
		return outcome.Unusable(err)
	}
	to.key = cmp.Or(to.key, m.Type)
	publishing := publishingOf(m)
	result := notify.Result{RequestHeader: record(to, publishing)}
	lease, err := c.take(ctx, to, m)
	if err != nil {
		result.Class, result.Error = classify(ctx, err)
		result.RemoteAddr = outcome.Dialled(err)
		return result
	}
	defer lease.Release()
	result.RemoteAddr = lease.Conn.remote
	if err := lease.Conn.publish(ctx, to, publishing); err != nil {
		if !errors.Is(err, errRefused) {
			lease.Drop() // unknown whether the broker accepted it: do not reuse the connection
		}
		result.Class, result.Error = classify(ctx, err)
		return result
	}
	result.Class = notify.OK
	return result
}

// take returns an open connection for a target and login.
func (c *Channel) take(ctx context.Context, to target, m notify.Message) (*pool.Lease[*link], error) {
	key := pool.Key(m.ClientCert, to.scheme, to.address, to.vhost, m.Credentials["username"], m.Credentials["password"])
	for {
		lease, err := c.links.Take(ctx, key, func(ctx context.Context) (*link, error) { return open(ctx, c.client, to, m) })
		if err != nil || !lease.Conn.conn.IsClosed() {
			return lease, err
		}
		// The broker has closed it meanwhile.
		lease.Drop()
		lease.Release()
	}
}

func publishingOf(m notify.Message) amqp091.Publishing {
	timestamp := strconv.FormatInt(m.At.Unix(), 10)
	headers := amqp091.Table{"webhook-id": m.ID, "webhook-timestamp": timestamp}
	if len(m.Secrets) > 0 {
		headers["webhook-signature"] = webhook.Sign(m.Secrets, m.ID, timestamp, m.Body)
	}
	return amqp091.Publishing{
		Headers: headers, ContentType: "application/json", DeliveryMode: amqp091.Persistent,
		MessageId: m.ID, Timestamp: m.At, Type: m.Type, AppId: "Backstop/1", Body: m.Body,
	}
}

// record returns what is stored of the message besides its body.
func record(to target, p amqp091.Publishing) string {
	lines := []string{
		"exchange: " + to.exchange, "routing-key: " + to.key, "message-id: " + p.MessageId, "type: " + p.Type,
		fmt.Sprintf("webhook-timestamp: %v", p.Headers["webhook-timestamp"]),
	}
	if signature, ok := p.Headers["webhook-signature"]; ok {
		lines = append(lines, fmt.Sprintf("webhook-signature: %v", signature))
	}
	return strings.Join(lines, "\n")
}

// errRefused means that the broker understood and refused.
var errRefused = errors.New("refused")

func classify(ctx context.Context, err error) (notify.Class, string) {
	var reply *amqp091.Error
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, pool.ErrFull), errors.Is(err, pool.ErrClosed):
		return notify.Internal, err.Error()
	case errors.Is(err, errRefused):
		return notify.Refused, outcome.OneLine(err.Error())
	case errors.As(err, &reply) && (reply.Server || reply.Code == amqp091.AccessRefused):
		return notify.Refused, outcome.OneLine("the broker says: " + reply.Reason)
	case errors.As(err, &reply):
		return notify.Broken, outcome.OneLine(reply.Reason)
	}
	return outcome.Of(ctx, false, err)
}
