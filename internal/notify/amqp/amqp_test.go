//go:build unix

package amqp_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/amqp"
	"backstop/internal/notify/channeltest"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		started.stop()
	}
	os.Exit(code)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newChannel(t testing.TB, roots *x509.CertPool) *amqp.Channel {
	client := egress.New(egress.Config{Allow: loopback, Roots: roots})
	channel := amqp.New(client)
	t.Cleanup(func() { _ = channel.Close(); client.Close() })
	return channel
}

// consumer is the merchant's side: a queue and what lies in it.
type consumer struct {
	t     testing.TB
	ch    *amqp091.Channel
	queue string
}

// newConsumer makes a queue with a name of its own and the given arguments.
func newConsumer(t testing.TB, b *broker, args amqp091.Table) *consumer {
	t.Helper()
	conn, err := amqp091.Dial(b.plainURL("guest:guest@"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, args)
	if err != nil {
		t.Fatal(err)
	}
	return &consumer{t, ch, q.Name}
}

func (c *consumer) get() amqp091.Delivery {
	c.t.Helper()
	d, ok, err := c.ch.Get(c.queue, true)
	if err != nil || !ok {
		c.t.Fatalf("the queue is empty (%v)", err)
	}
	return d
}

func (b *broker) to(exchange, key string) string {
	return fmt.Sprintf("%s?exchange=%s&routing_key=%s", b.plainURL(""), exchange, key)
}

func message(url string) notify.Message {
	return notify.Message{
		ID: "ntf_0198c2", Type: "order.paid", URL: url, At: time.Now(), Timeout: 5 * time.Second,
		Secrets: [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
		Body:    []byte(`{"id":"ntf_0198c2","type":"order.paid","data":{"order_no":"20260101"}}`),
	}
}

// silent accepts connections, reads, and says nothing.
func silent(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() })
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	return "amqp://" + l.Addr().String() + "/?routing_key=q"
}

func TestConformance(t *testing.T) {
	b := needBroker(t)
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return newChannel(t, nil) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			switch c {
			case channeltest.Refusing:
				ports, err := freePorts(1)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("amqp://127.0.0.1:%d/?routing_key=q", ports[0])
			case channeltest.Impossible:
				return "http://127.0.0.1/"
			case channeltest.Stalling:
				return silent(t)
			case channeltest.Rejecting:
				return b.to("no-such-exchange", "q")
			case channeltest.Failing: // full, and it says so
				full := newConsumer(t, b, amqp091.Table{"x-max-length": 0, "x-overflow": "reject-publish"})
				return b.to("", full.queue)
			}
			return b.to("", newConsumer(t, b, nil).queue)
		},
		Prepare: func(m *notify.Message) {
			m.Credentials = map[string]string{"username": "guest", "password": "guest"}
		},
		Wants: map[channeltest.Condition]notify.Class{
			channeltest.Failing: notify.Refused, channeltest.Rejecting: notify.Refused,
		},
	})
}

func TestMessagesAreWhatIsPromised(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	c := newConsumer(t, b, nil)
	if err := c.ch.ExchangeDeclare("shop", "topic", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.ch.QueueBind(c.queue, "order.*", "shop", false, nil); err != nil {
		t.Fatal(err)
	}
	msg := message(b.plainURL("") + "?exchange=shop") // the routing key is the event's type
	r := newChannel(t, nil).Send(t.Context(), msg)
	if r.Class != notify.OK || !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
		t.Fatalf("result %+v", r)
	}
	d := c.get()
	if d.MessageId != msg.ID || d.Type != "order.paid" || d.RoutingKey != "order.paid" || d.ContentType != "application/json" ||
		d.DeliveryMode != amqp091.Persistent || string(d.Body) != string(msg.Body) {
		t.Errorf("delivered %+v", d)
	}
	verifier, err := standardwebhooks.NewWebhookRaw(msg.Secrets[0])
	if err != nil {
		t.Fatal(err)
	}
	header := map[string][]string{}
	for name, value := range d.Headers {
		header[strings.ToUpper(name[:1])+name[1:]] = []string{value.(string)}
	}
	signed := map[string][]string{
		"Webhook-Id": header["Webhook-id"], "Webhook-Timestamp": header["Webhook-timestamp"],
		"Webhook-Signature": header["Webhook-signature"],
	}
	if err := verifier.Verify(d.Body, signed); err != nil {
		t.Errorf("signature: %v", err)
	}
}

// Without "mandatory" the broker would confirm what it throws away.
func TestWhatNoQueueTakesIsAFailureWithItsReason(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	channel := newChannel(t, nil)
	for range 3 {
		r := channel.Send(t.Context(), message(b.to("", "no-such-queue")))
		if r.Class != notify.Refused || !strings.Contains(r.Error, "312 NO_ROUTE") {
			t.Errorf("%q (%s)", r.Class, r.Error)
		}
	}
	// What came back belongs to its own message: the next one on the same
	// connection succeeds.
	if r := channel.Send(t.Context(), message(b.to("", newConsumer(t, b, nil).queue))); r.Class != notify.OK {
		t.Errorf("after a return: %q (%s)", r.Class, r.Error)
	}
}

func TestRefusalsSayWhyAndNotTheLogin(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	channel := newChannel(t, nil)
	msg := message(b.to("", "q"))
	msg.Credentials = map[string]string{"username": "guest", "password": "canary-password"}
	if r := channel.Send(t.Context(), msg); r.Class != notify.Refused || strings.Contains(fmt.Sprint(r), "canary") {
		t.Errorf("wrong password: %q (%s)", r.Class, r.Error)
	}
	if r := channel.Send(t.Context(), message(strings.Replace(b.to("", "q"), "/?", "/other?", 1))); r.Class != notify.Refused {
		t.Errorf("unknown virtual host: %q (%s)", r.Class, r.Error)
	}
	// One login's connection is not another's.
	if r := channel.Send(t.Context(), message(b.to("", newConsumer(t, b, nil).queue))); r.Class != notify.OK {
		t.Errorf("with the right password: %q (%s)", r.Class, r.Error)
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	url := b.secureURL() + "?routing_key=" + newConsumer(t, b, nil).queue
	if r := newChannel(t, b.roots).Send(t.Context(), message(url)); r.Class != notify.OK {
		t.Errorf("trusted: %q (%s)", r.Class, r.Error)
	}
	if r := newChannel(t, nil).Send(t.Context(), message(url)); r.Class != notify.TLS {
		t.Errorf("unknown authority: %q (%s)", r.Class, r.Error)
	}
}

func TestConnectionsAreKeptAndReplaced(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	front := newFront(t, fmt.Sprintf("127.0.0.1:%d", b.plain))
	url := "amqp://" + front.addr + "/?routing_key=" + newConsumer(t, b, nil).queue
	channel := newChannel(t, nil)
	send := func(want notify.Class) {
		t.Helper()
		msg := message(url)
		if want == notify.Timeout {
			msg.Timeout = 300 * time.Millisecond
		}
		if r := channel.Send(t.Context(), msg); r.Class != want {
			t.Errorf("%q (%s), want %q", r.Class, r.Error, want)
		}
	}
	for range 5 {
		send(notify.OK)
	}
	if n := front.accepted(); n != 1 {
		t.Errorf("%d connections for five messages, want 1", n)
	}
	front.freeze() // the broker no longer answers on connections that stand
	send(notify.Timeout)
	front.thaw()
	send(notify.OK)
	if n := front.accepted(); n != 2 {
		t.Errorf("%d connections after a silence, want 2", n)
	}
}

func TestPublicBrokersAreReachedByTLSOnly(t *testing.T) {
	t.Parallel()
	client := egress.New(egress.Config{})
	channel := amqp.New(client)
	t.Cleanup(func() { _ = channel.Close(); client.Close() })
	for _, url := range []string{
		"amqp://127.0.0.1:5672/?routing_key=q", "amqp://93.184.216.34/?routing_key=q", "amqps://93.184.216.34:6379/?routing_key=q",
		"amqps://169.254.169.254/?routing_key=q",
	} {
		if r := channel.Send(t.Context(), message(url)); r.Class != notify.Blocked {
			t.Errorf("%s: %q (%s)", url, r.Class, r.Error)
		}
	}
}

func TestCheckTarget(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"amqps://mq.example/?exchange=shop":                        true,
		"amqps://mq.example:5671/v?exchange=shop&routing_key=paid": true,
		"amqp://10.0.0.1/%2fshop?routing_key=queue":                true,
		"amqps://mq.example/":                                      false,
		"amqps://mq.example/a/b?exchange=x":                        false,
		"amqps://user:canary@mq.example/?exchange=x":               false,
		"amqps://mq.example/?exchange=x&exchange=y":                false,
		"amqps://mq.example/?exchange=x&heartbeat=0":               false,
		"amqps://mq.example:0/?exchange=x":                         false,
		"amqps://0x7f.1/?exchange=x":                               false,
		"amqps:///?exchange=x":                                     false,
		"https://mq.example/?exchange=x":                           false,
		"":                                                         false,
		"amqps://mq.example/?exchange=" + strings.Repeat("a", 256): false,
		"amqps://mq.example/?routing_key=a%0ab":                    false,
	} {
		err := amqp.CheckTarget(url)
		if (err == nil) != good || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestASendThatIsCancelledTellsNobody(t *testing.T) {
	t.Parallel()
	b := needBroker(t)
	c := newConsumer(t, b, nil)
	channel := newChannel(t, nil)
	channel.Send(t.Context(), message(b.to("", c.queue))) // the connection stands
	c.get()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := channel.Send(ctx, message(b.to("", c.queue))); r.Class != notify.Cancelled {
		t.Errorf("%q", r.Class)
	}
	if _, ok, _ := c.ch.Get(c.queue, true); ok {
		t.Error("the merchant was notified by an attempt that had ended")
	}
}
