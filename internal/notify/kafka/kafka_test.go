package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/notify/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newChannel(t testing.TB, roots *x509.CertPool) *kafka.Channel {
	client := egress.New(egress.Config{Allow: loopback, Roots: roots})
	channel := kafka.New(client)
	t.Cleanup(func() { _ = channel.Close(); client.Close() })
	return channel
}

// newCluster is a cluster in memory that speaks Kafka on loopback.
func newCluster(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(4, "orders")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func url(c *kfake.Cluster, rest string) string {
	return "kafka://" + strings.Join(c.ListenAddrs(), ",") + "/" + rest
}

func message(url string) notify.Message {
	return notify.Message{
		ID: "ntf_0198c2", Type: "order.paid", URL: url, At: time.Now(), Timeout: 5 * time.Second,
		Secrets: [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
		Body:    []byte(`{"id":"ntf_0198c2","type":"order.paid","data":{"order_no":"20260101"}}`),
	}
}

// silent accepts connections, reads, and never answers.
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
	return "kafka://" + l.Addr().String() + "/orders"
}

// refusing answers every write with an error of Kafka's.
func refusing(c *kfake.Cluster, code int16) {
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		response := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			answered := kmsg.NewProduceResponseTopic()
			answered.Topic, answered.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, code
				answered.Partitions = append(answered.Partitions, p)
			}
			response.Topics = append(response.Topics, answered)
		}
		return response, nil, true
	})
}

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return newChannel(t, nil) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			switch c {
			case channeltest.Refusing:
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Close()
				return "kafka://" + l.Addr().String() + "/orders"
			case channeltest.Impossible:
				return "kafka://127.0.0.1/"
			case channeltest.Stalling:
				return silent(t)
			case channeltest.Rejecting:
				return url(newCluster(t), "no-such-topic")
			case channeltest.Failing:
				cluster := newCluster(t)
				refusing(cluster, kerr.MessageTooLarge.Code)
				return url(cluster, "orders")
			}
			return url(newCluster(t), "orders")
		},
		Wants: map[channeltest.Condition]notify.Class{
			channeltest.Failing: notify.Refused, channeltest.Rejecting: notify.Refused,
		},
	})
}

func TestRecordsAreWhatIsPromised(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	var acks []int16
	var producers []int64
	var seen sync.Mutex
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		seen.Lock()
		defer seen.Unlock()
		acks = append(acks, r.(*kmsg.ProduceRequest).Acks)
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records); err == nil {
			producers = append(producers, batch.ProducerID)
		}
		return nil, nil, false
	})
	channel := newChannel(t, nil)
	msg := message(url(cluster, "orders"))
	for range 3 {
		if r := channel.Send(t.Context(), msg); r.Class != notify.OK || !strings.Contains(r.RequestHeader, "webhook-id: ntf_0198c2") {
			t.Fatalf("result %+v", r)
		}
	}
	for i, record := range consume(t, cluster, 3) {
		header := map[string][]string{}
		for _, h := range record.Headers {
			header[h.Key] = []string{string(h.Value)}
		}
		if string(record.Key) != "20260101" || string(record.Value) != string(msg.Body) || record.Offset != int64(i) ||
			header["type"][0] != "order.paid" {
			t.Errorf("record %d: key %s, offset %d, %v, %s", i, record.Key, record.Offset, header, record.Value)
		}
		verifier, err := standardwebhooks.NewWebhookRaw(msg.Secrets[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(record.Value, map[string][]string{
			"Webhook-Id": header["webhook-id"], "Webhook-Timestamp": header["webhook-timestamp"],
			"Webhook-Signature": header["webhook-signature"],
		}); err != nil {
			t.Errorf("signature: %v", err)
		}
	}
	seen.Lock()
	defer seen.Unlock()
	for i := range acks {
		if acks[i] != -1 || producers[i] < 0 {
			t.Errorf("write %d: acks %d (want all), producer %d (want an idempotent one)", i, acks[i], producers[i])
		}
	}
	if len(acks) != 3 || len(producers) != 3 {
		t.Errorf("%d writes, %d producers, want 3", len(acks), len(producers))
	}
}

// consume reads n records as a merchant's own consumer does.
func consume(t *testing.T, cluster *kfake.Cluster, n int) []*kgo.Record {
	t.Helper()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n && ctx.Err() == nil {
		records = append(records, consumer.PollFetches(ctx).Records()...)
	}
	if len(records) != n {
		t.Fatalf("%d records, want %d", len(records), n)
	}
	return records
}

func TestLoginsAreCheckedAndNotShown(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "shop", "right-password"),
		kfake.Superuser("PLAIN", "shop", "right-password"))
	channel := newChannel(t, nil)
	send := func(rest, password string) notify.Result {
		msg := message(url(cluster, rest))
		msg.Credentials = map[string]string{"username": "shop", "password": password}
		return channel.Send(t.Context(), msg)
	}
	for _, rest := range []string{"orders?sasl=scram-sha-512", "orders?sasl=plain", "orders"} {
		if r := send(rest, "right-password"); r.Class != notify.OK {
			t.Errorf("%s: %q (%s)", rest, r.Class, r.Error)
		}
		if r := send(rest, "canary-password"); r.Class == notify.OK || strings.Contains(fmt.Sprint(r), "canary") {
			t.Errorf("%s with a wrong password: %q (%s)", rest, r.Class, r.Error)
		}
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	certificate, roots, err := fakemerchant.Issue()
	if err != nil {
		t.Fatal(err)
	}
	cluster := newCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	secure := strings.Replace(url(cluster, "orders"), "kafka://", "kafkas://", 1)
	if r := newChannel(t, roots).Send(t.Context(), message(secure)); r.Class != notify.OK {
		t.Errorf("trusted: %q (%s)", r.Class, r.Error)
	}
	if r := newChannel(t, nil).Send(t.Context(), message(secure)); r.Class != notify.TLS {
		t.Errorf("unknown authority: %q (%s)", r.Class, r.Error)
	}
}

// A broker that takes connections and requests but never confirms that it has written: the
// attempt ends in time, and the next one starts afresh.
func TestASilentWriteEndsInTime(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	channel := newChannel(t, nil)
	if r := channel.Send(t.Context(), message(url(cluster, "orders"))); r.Class != notify.OK {
		t.Fatalf("%q (%s)", r.Class, r.Error)
	}
	release := make(chan struct{})
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	msg := message(url(cluster, "orders"))
	msg.Timeout = 300 * time.Millisecond
	r := channel.Send(t.Context(), msg)
	close(release)
	if r.Class != notify.Timeout || r.Took > 20*time.Second {
		t.Errorf("%q after %s", r.Class, r.Took)
	}
	if r := channel.Send(t.Context(), message(url(cluster, "orders"))); r.Class != notify.OK {
		t.Errorf("after it: %q (%s)", r.Class, r.Error)
	}
}

func TestBrokersThatOthersNameAreJudgedToo(t *testing.T) {
	t.Parallel()
	client := egress.New(egress.Config{})
	channel := kafka.New(client)
	t.Cleanup(func() { _ = channel.Close(); client.Close() })
	for _, to := range []string{
		"kafka://127.0.0.1:9092/t", "kafka://93.184.216.34/t", "kafkas://93.184.216.34:22/t",
		"kafkas://169.254.169.254/t",
	} {
		if r := channel.Send(t.Context(), message(to)); r.Class != notify.Blocked {
			t.Errorf("%s: %q (%s)", to, r.Class, r.Error)
		}
	}
}

func TestCheckTarget(t *testing.T) {
	t.Parallel()
	for to, good := range map[string]bool{
		"kafkas://a.example/orders":                                   true,
		"kafkas://a.example:9093,b.example:9093/o?sasl=scram-sha-256": true,
		"kafka://[fd00::1]:9092,10.0.0.1/orders.v1":                   true,
		"kafkas://a.example":                                          false,
		"kafkas://a.example/":                                         false,
		"kafkas://a.example/a/b":                                      false,
		"kafkas://a.example/a%2fb":                                    false,
		"kafkas://a.example/..":                                       false,
		"kafkas://user:canary@a.example/o":                            false,
		"kafkas://a.example,/o":                                       false,
		"kafkas://a.example:0/o":                                      false,
		"kafkas://0x7f.1/o":                                           false,
		"kafkas://a.example/o?sasl=gssapi":                            false,
		"kafkas://a.example/o?acks=0":                                 false,
		"https://a.example/o":                                         false,
		"":                                                            false,
		"kafkas://" + strings.Repeat("a.example,", 10) + "b.example/o": false,
	} {
		err := kafka.CheckTarget(to)
		if (err == nil) != good || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
