// Package kafka sends notifications to a recipient's Kafka with an idempotent producer and
// acknowledgement by all in-sync replicas, so that no retry inside an attempt writes a message
// twice. Messages of one order have the order number as their key and therefore keep their
// order in the topic.
//
// Credentials: "username" and "password". They appear in no log and no result.
package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/base/mask"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
	"backstop/internal/notify/pool"
	"backstop/internal/notify/webhook"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// maxClients is far above the number of Kafka clusters of one node's recipients; each
	// client holds a connection to every broker that it writes to.
	maxClients = 128
	// idleTimeout keeps a connection through a few minutes without events.
	idleTimeout = 5 * time.Minute
)

// Channel writes notifications. It is safe for concurrent use.
type Channel struct {
	client *egress.Client
	links  *pool.Pool[*link]
}

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client. Close it.
func New(client *egress.Client) *Channel {
	return &Channel{client: client, links: pool.New(pool.Options[*link]{
		Max: maxClients, Idle: idleTimeout, Close: (*link).close,
	})}
}

// Close ends the connections.
func (c *Channel) Close() error {
	c.links.Close()
	return nil
}

// Send writes the message once and waits until all in-sync replicas have it.
func (c *Channel) Send(ctx context.Context, m notify.Message) notify.Result {
	return outcome.Send(ctx, m, m.Credentials, func(ctx context.Context) notify.Result { return c.attempt(ctx, m) })
}

// Where a broker stored the record.
var _ = mask.Declare("partition offset")

func (c *Channel) attempt(ctx context.Context, m notify.Message) notify.Result {
	to, err := parse(m.URL)
	if err != nil {
		return outcome.Unusable(err)
	}
	record := recordOf(to, m)
	result := notify.Result{RequestHeader: shown(record)}
	key := pool.Key(m.ClientCert, append([]string{to.scheme, to.sasl, m.Credentials["username"], m.Credentials["password"]},
		to.brokers...)...)
	lease, err := c.links.Take(ctx, key, func(ctx context.Context) (*link, error) { return open(ctx, c.client, to, m) })
	if err != nil {
		result.Class, result.Error = classify(ctx, err)
		result.RemoteAddr = outcome.Dialled(err)
		return result
	}
	defer lease.Release()
	if err := write(ctx, lease.Conn.client, record); err != nil {
		if !isRefusal(err) {
			lease.Drop() // the client may still hold the record, and is closed with it
		}
		result.Class, result.Error = classify(ctx, err)
		return result
	}
	result.Class = notify.OK
	result.ResponseHeader = fmt.Sprintf("partition: %d\noffset: %d", record.Partition, record.Offset)
	return result
}

// write produces one record. The client's callback may come after ctx has ended: it may not
// abandon a record that a broker could already have.
func write(ctx context.Context, client *kgo.Client, record *kgo.Record) error {
	written := make(chan error, 1)
	client.Produce(ctx, record, func(_ *kgo.Record, err error) { written <- err })
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recordOf copies the body: a record that a broker may already have stays in the client after
// the attempt.
func recordOf(to target, m notify.Message) *kgo.Record {
	timestamp := strconv.FormatInt(m.At.Unix(), 10)
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	r := &kgo.Record{
		Topic: to.topic, Key: []byte(orderOf(m)), Value: bytes.Clone(m.Body), Timestamp: m.At,
		Headers: []kgo.RecordHeader{
			header("content-type", "application/json"), header("type", m.Type), header("webhook-id", m.ID),
			header("webhook-timestamp", timestamp),
		},
	}
	if len(m.Secrets) > 0 {
		r.Headers = append(r.Headers, header("webhook-signature", webhook.Sign(m.Secrets, m.ID, timestamp, m.Body)))
	}
	return r
}

// orderOf returns the number of the order that a message is about, or the message's own id.
func orderOf(m notify.Message) string {
	fields, _ := notify.Fields(m.Body) // without fields it is the id
	return cmp.Or(fields["order_no"], m.ID)
}

// shown returns what is stored of a record besides its value.
func shown(r *kgo.Record) string {
	lines := []string{"topic: " + r.Topic, "key: " + outcome.OneLine(string(r.Key))}
	for _, h := range r.Headers {
		lines = append(lines, h.Key+": "+string(h.Value))
	}
	return strings.Join(lines, "\n")
}

// isRefusal reports whether a broker has answered with a refusal.
func isRefusal(err error) bool {
	var reply *kerr.Error
	return errors.As(err, &reply)
}

func classify(ctx context.Context, err error) (notify.Class, string) {
	var reply *kerr.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case errors.Is(err, pool.ErrFull), errors.Is(err, pool.ErrClosed):
		return notify.Internal, err.Error()
	case errors.As(err, &reply):
		return notify.Refused, outcome.OneLine("the broker says: " + reply.Message + ": " + reply.Description)
	}
	return outcome.Of(ctx, false, err)
}
