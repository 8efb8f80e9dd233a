package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/notify/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	secret   = bytes.Repeat([]byte("s"), 32)
)

func newChannel(t testing.TB, roots *x509.CertPool) *webhook.Channel {
	client := egress.New(egress.Config{Allow: loopback, Roots: roots})
	t.Cleanup(client.Close)
	return webhook.New(client)
}

func newMerchant(t testing.TB, options fakemerchant.Options) *fakemerchant.Merchant {
	t.Helper()
	m, err := fakemerchant.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func message(url string) notify.Message {
	const id = "ntf_0198c2"
	return notify.Message{
		ID: id, Type: "order.paid", URL: url, At: time.Now(), Secrets: [][]byte{secret},
		Body: fmt.Appendf(nil, `{"id":%q,"type":"order.paid","data":{"order_no":"20260101"}}`, id),
		Ack:  "status", Timeout: 5 * time.Second,
	}
}

// deadURL is an address at which nothing listens any more.
func deadURL(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return "http://" + l.Addr().String() + "/"
}

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return newChannel(t, nil) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			switch c {
			case channeltest.Refusing:
				return deadURL(t)
			case channeltest.Impossible:
				return "ftp://127.0.0.1/"
			}
			m := newMerchant(t, fakemerchant.Options{})
			switch c {
			case channeltest.Failing:
				m.Behave(fakemerchant.Answer(http.StatusInternalServerError, "try later"))
			case channeltest.Rejecting:
				m.Behave(fakemerchant.Answer(http.StatusGone, "no such shop"))
			case channeltest.Stalling:
				m.Behave(fakemerchant.Hang())
			}
			return m.URL()
		},
		Wants: map[channeltest.Condition]notify.Class{channeltest.Rejecting: notify.Gone},
	})
}

func TestRequestsAreWhatIsPromised(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	old := bytes.Repeat([]byte("o"), 24)
	msg := message(m.URL())
	msg.Secrets = [][]byte{secret, old}
	r := newChannel(t, nil).Send(t.Context(), msg)
	if r.Class != notify.OK || r.Status != 200 || string(r.ResponseBody) != "success" || !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
		t.Fatalf("result %+v", r)
	}
	got := m.Requests()[0]
	if got.Method != http.MethodPost || got.Path != "/notify" || !bytes.Equal(got.Body, msg.Body) {
		t.Errorf("request %+v", got)
	}
	for name, want := range map[string]string{
		"Webhook-Id": msg.ID, "Webhook-Timestamp": fmt.Sprint(msg.At.Unix()),
		"Content-Type": "application/json", "User-Agent": "Backstop/1", "Accept-Encoding": "",
		"Content-Length": fmt.Sprint(len(msg.Body)), "Transfer-Encoding": "",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, secrets := range [][][]byte{{secret}, {old}} {
		if err := fakemerchant.Verify(got, secrets...); err != nil {
			t.Errorf("a merchant with one of the two secrets: %v", err)
		}
	}
	newest, _, _ := strings.Cut(got.Header.Get("Webhook-Signature"), " ")
	verifier, err := standardwebhooks.NewWebhookRaw(secret)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := verifier.Sign(msg.ID, msg.At, msg.Body); newest != want {
		t.Errorf("first signature %s, want that of the newest secret, %s", newest, want)
	}
	for _, line := range []string{"Webhook-Id: " + msg.ID, "Content-Type: application/json", "Webhook-Signature: " + newest} {
		if !strings.Contains(r.RequestHeader, line) {
			t.Errorf("%q is missing in the record %q", line, r.RequestHeader)
		}
	}
}

// The vector that the libraries of Standard Webhooks share.
func TestPublishedVector(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	key, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	msg := message(m.URL())
	msg.ID, msg.At, msg.Body = "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	msg.Secrets = [][]byte{key}
	newChannel(t, nil).Send(t.Context(), msg)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := m.Requests()[0].Header.Get("Webhook-Signature"); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestUnusableAddresses(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	closed := egress.New(egress.Config{})
	t.Cleanup(closed.Close)
	names := egress.New(egress.Config{Allow: loopback, Resolver: &net.Resolver{
		PreferGo: true,
		Dial:     func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") },
	}})
	t.Cleanup(names.Close)
	for _, c := range []struct {
		client *egress.Client
		url    string
		class  notify.Class
	}{
		{closed, m.URL(), notify.Blocked},
		{closed, "https://169.254.169.254/canary", notify.Blocked},
		{closed, "https://a.example:22/canary", notify.Blocked},
		{closed, "https://user:canary@a.example/", notify.BadAddress},
		{closed, "", notify.BadAddress},
		{closed, "https://0x7f.1/canary", notify.BadAddress},
		{names, "http://nowhere.test/canary", notify.DNS},
	} {
		r := webhook.New(c.client).Send(t.Context(), message(c.url))
		if r.Class != c.class || r.Error == "" || r.RemoteAddr != "" || strings.Contains(r.Error, "canary") {
			t.Errorf("%s: %q (%s) at %q, want %q", c.url, r.Class, r.Error, r.RemoteAddr, c.class)
		}
	}
	if m.Count() != 0 {
		t.Error("the merchant was reached")
	}
	if r := newChannel(t, nil).Send(t.Context(), message(deadURL(t))); r.Class != notify.Connect ||
		!strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
		t.Errorf("refused: %q at %q", r.Class, r.RemoteAddr)
	}
}

func TestUnsendableMessagesAreOurFault(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	for name, spoil := range map[string]func(*notify.Message){
		"no secret":     func(m *notify.Message) { m.Secrets = nil },
		"empty secret":  func(m *notify.Message) { m.Secrets = [][]byte{secret, {}} },
		"no timeout":    func(m *notify.Message) { m.Timeout = 0 },
		"no rule":       func(m *notify.Message) { m.Ack = "" },
		"unknown rule":  func(m *notify.Message) { m.Ack = "any" },
		"no text":       func(m *notify.Message) { m.Ack, m.AckText = "text", " " },
		"no id":         func(m *notify.Message) { m.ID = "" },
		"id with lines": func(m *notify.Message) { m.ID = "a\r\nX-Injected: b" },
		"long id":       func(m *notify.Message) { m.ID = strings.Repeat("a", 300) },
	} {
		msg := message(m.URL())
		spoil(&msg)
		if r := channel.Send(t.Context(), msg); r.Class != notify.Internal || r.Error == "" {
			t.Errorf("%s: %q (%s)", name, r.Class, r.Error)
		}
	}
	if m.Count() != 0 {
		t.Error("something was sent")
	}
	empty := message(m.URL())
	empty.Body = nil
	if r := channel.Send(t.Context(), empty); r.Class != notify.OK {
		t.Errorf("an empty body: %q (%s)", r.Class, r.Error)
	}
}

func TestAnswersAreMadeStorable(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	for body, want := range map[string]string{
		"":                               "",
		"收到":                             "收到",
		"a\x00b\xff\xfec":                "a\uFFFDb\uFFFDc",
		strings.Repeat("收", 2000):        strings.Repeat("收", 1365),
		strings.Repeat("\xff\x00", 3000): strings.Repeat("\uFFFD", 1365),
	} {
		m.Behave(fakemerchant.Answer(200, body))
		if r := channel.Send(t.Context(), message(m.URL())); r.Class != notify.OK || string(r.ResponseBody) != want {
			t.Errorf("%.20q: kept %d bytes, %.20q; want %d", body, len(r.ResponseBody), r.ResponseBody, len(want))
		}
	}
	m.Behave(fakemerchant.AnswerHeader(http.Header{
		"Set-Cookie": {"session=canary; HttpOnly"}, "Etag": {"canary"}, "Server": {"a\xffb"}, "Via": {strings.Repeat("收", 3000)},
	}, fakemerchant.Answer(200, "")))
	r := channel.Send(t.Context(), message(m.URL()))
	if strings.Contains(r.ResponseHeader, "canary") || !strings.Contains(r.ResponseHeader, "Set-Cookie: ***") ||
		!strings.Contains(r.ResponseHeader, "Etag: ***") || !strings.Contains(r.ResponseHeader, "Server: a\uFFFDb") {
		t.Errorf("what nobody declared is kept: %.200q", r.ResponseHeader)
	}
	if len(r.ResponseHeader) > 4<<10 || !utf8.ValidString(r.ResponseHeader) {
		t.Errorf("header of %d bytes", len(r.ResponseHeader))
	}
}

// A gateway that refuses a token may quote it. What is stored of the answer is shown to people
// who must not know it.
func TestOwnSecretsInAnswersAreHidden(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	msg := message(m.URL())
	msg.Headers = map[string]string{"Authorization": "Bearer canary-token", "X-Route": "canary-route"}
	m.Behave(fakemerchant.AnswerHeader(http.Header{"X-Got": {"Bearer canary-token"}},
		fakemerchant.Answer(401, `{"bad":"canary-token","via":"canary-route"}`)))
	r := channel.Send(t.Context(), msg)
	if r.Class != notify.BadStatus || string(r.ResponseBody) != `{"bad":"***","via":"***"}` ||
		!strings.Contains(r.ResponseHeader, "X-Got: ***") {
		t.Errorf("%s, header %q, body %q", r.Class, r.ResponseHeader, r.ResponseBody)
	}
	// A redirect repeats the token of the address; "b" is a word.
	msg.URL += "?token=canary%2Btoken&b=2"
	m.Behave(fakemerchant.AnswerHeader(http.Header{"Location": {"/notify/?token=canary%2Btoken&b=2"}},
		fakemerchant.Answer(301, "no canary+token, b")))
	if r := channel.Send(t.Context(), msg); string(r.ResponseBody) != "no ***, b" ||
		!strings.Contains(r.ResponseHeader, "Location: /notify/?***") {
		t.Errorf("header %q, body %q", r.ResponseHeader, r.ResponseBody)
	}
	// The rule is applied to what was really sent.
	msg.Ack, msg.AckText = "text", "canary-route taken"
	m.Behave(fakemerchant.Answer(200, "canary-route taken"))
	if r := channel.Send(t.Context(), msg); r.Class != notify.OK || string(r.ResponseBody) != "*** taken" {
		t.Errorf("%s, body %q", r.Class, r.ResponseBody)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	for _, size := range []int{0, 7, 4 << 10, 4<<10 + 1, 60 << 10} {
		for _, status := range []int{200, 500} {
			m.Behave(fakemerchant.Answer(status, strings.Repeat("a", size)))
			channel.Send(t.Context(), message(m.URL()))
		}
	}
	if n := m.Connections(); n != 1 {
		t.Errorf("%d connections for answers that can be drained, want 1", n)
	}
}
