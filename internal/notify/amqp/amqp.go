// Package amqp tells merchants through their RabbitMQ (AMQP 0-9-1): persistent
// messages, confirmed by the broker, and mandatory. A message that no queue takes
// comes back and is a failure: without it, a missing binding would lose every
// notification and look like success.
//
// Credentials: "username" and "password" (guest by default, as RabbitMQ has it for
// its own host). The password of an address stands in no log and no result.
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
	// maxConnections is far above the merchants of one node who use a broker of
	// their own, and far below the files that a process may open.
	maxConnections = 256
	// idleTimeout lets a merchant's quiet minutes pass without a new handshake.
	idleTimeout = 5 * time.Minute
	// heartbeat finds a connection that a middlebox has forgotten.
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

// Send publishes the message once and waits until the broker has it safe.
func (c *Channel) Send(parent context.Context, m notify.Message) notify.Result {
	start := time.Now()
	result := c.attempt(parent, m)
	result.Error = outcome.Hide(result.Error, m.Credentials)
	result.Took = time.Since(start)
	return result
}

func (c *Channel) attempt(parent context.Context, m notify.Message) notify.Result {
	if problem := outcome.Unsendable(m); problem != "" {
		return notify.Result{Class: notify.Internal, Error: problem}
	}
	to, err := parse(m.URL)
	if err != nil {
		class, text := outcome.Unusable(err)
		return notify.Result{Class: class, Error: text}
	}
	to.key = cmp.Or(to.key, m.Type)
	ctx, cancel := context.WithTimeout(parent, m.Timeout)
	defer cancel()
	publishing := publishingOf(m)
	result := notify.Result{RequestHeader: record(to, publishing)}
	if parent.Err() != nil { // an open connection would still take it
		result.Class, result.Error = outcome.Of(parent, ctx, false, parent.Err())
		return result
	}
	lease, err := c.take(ctx, to, m)
	if err != nil {
		result.Class, result.Error = classify(parent, ctx, err)
		result.RemoteAddr = outcome.Dialled(err)
		return result
	}
	defer lease.GiveBack()
	result.RemoteAddr = lease.Conn.remote
	if err := lease.Conn.publish(ctx, to, publishing); err != nil {
		if !errors.Is(err, errRefused) {
			lease.Drop() // what became of the message is unknown: nothing else rides on that connection
		}
		result.Class, result.Error = classify(parent, ctx, err)
		return result
	}
	result.Class = notify.OK
	return result
}

// take returns the connection for a target and login, a living one.
func (c *Channel) take(ctx context.Context, to target, m notify.Message) (*pool.Lease[*link], error) {
	key := pool.Key(m.ClientCert, to.scheme, to.address, to.vhost, m.Credentials["username"], m.Credentials["password"])
	for {
		lease, err := c.links.Take(ctx, key, func(ctx context.Context) (*link, error) { return open(ctx, c.client, to, m) })
		if err != nil || !lease.Conn.conn.IsClosed() {
			return lease, err
		}
		// The broker has closed it since; a new one may last longer.
		lease.Drop()
		lease.GiveBack()
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

// record is what people see of the message beside its body.
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

// errRefused says that the broker has understood and said no.
var errRefused = errors.New("refused")

func classify(parent, ctx context.Context, err error) (notify.Class, string) {
	var said *amqp091.Error
	switch {
	case parent.Err() != nil, ctx.Err() != nil:
	case errors.Is(err, pool.ErrFull), errors.Is(err, pool.ErrClosed):
		return notify.Internal, err.Error()
	case errors.Is(err, errRefused):
		return notify.Refused, outcome.OneLine(err.Error())
	case errors.As(err, &said) && (said.Server || said.Code == amqp091.AccessRefused):
		return notify.Refused, outcome.OneLine("the broker says: " + said.Reason)
	case errors.As(err, &said):
		return notify.Broken, outcome.OneLine(said.Reason)
	}
	return outcome.Of(parent, ctx, false, err)
}
