package webhook_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
	"backstop/internal/notify/fakemerchant"
)

const formBody = `{"id":"ntf_0198c2","type":"order.paid","timestamp":"2026-01-01T00:00:00.000Z","data":` +
	`{"order_no":"20260101","amount":1999,"subject":"收据 & more=1","big":12345678901234567890,"empty":"","none":null,` +
	`"items":[ {"sku":"a"} ],"test":true,"sign":"forged","id":"forged","sign_type":"none"}}`

// merchantSign is the merchants' side, as their old code has it.
func merchantSign(values url.Values, signType, key string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != "sign" && values.Get(name) != "" {
			pairs = append(pairs, name+"="+values.Get(name))
		}
	}
	text := strings.Join(pairs, "&") + "&key=" + key
	if signType == "MD5" {
		sum := md5.Sum([]byte(text))
		return strings.ToUpper(hex.EncodeToString(sum[:]))
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return strings.ToUpper(hex.EncodeToString(mac.Sum(nil)))
}

func formMessage(m *fakemerchant.Merchant, format string) notify.Message {
	msg := message(m.URL())
	msg.Format, msg.Body, msg.Ack, msg.AckText = format, []byte(formBody), "text", "success"
	return msg
}

func TestFormsAreSignedParameters(t *testing.T) {
	t.Parallel()
	secretKey := base64.StdEncoding.EncodeToString(secret)
	for _, c := range []struct {
		format, signType, key string
		credentials           map[string]string
	}{
		{"form", "HMAC-SHA256", secretKey, nil},
		{"form-md5", "MD5", secretKey, nil},
		{"form-md5", "MD5", "old-canary-key", map[string]string{"form_key": "old-canary-key"}},
		{"form", "HMAC-SHA256", "old-canary-key", map[string]string{"form_key": "old-canary-key"}},
	} {
		m := newMerchant(t, fakemerchant.Options{})
		msg := formMessage(m, c.format)
		msg.Credentials = c.credentials
		r := newChannel(t, nil).Send(t.Context(), msg)
		if r.Class != notify.OK || channeltest.Leaks(r, [][]byte{secret, []byte("old-canary-key")}) != "" {
			t.Fatalf("%s: %+v", c.format, r)
		}
		request := m.Requests()[0]
		if got := request.Header.Get("Content-Type"); got != "application/x-www-form-urlencoded" {
			t.Errorf("content type %q", got)
		}
		got, err := url.ParseQuery(string(request.Body))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"order_no": "20260101", "amount": "1999", "subject": "收据 & more=1", "big": "12345678901234567890",
			"items": `[{"sku":"a"}]`, "test": "true", "id": msg.ID, "type": "order.paid",
			"timestamp": strconv.FormatInt(msg.At.Unix(), 10), "sign_type": c.signType, "sign": merchantSign(got, c.signType, c.key),
		}
		if len(got) != len(want) {
			t.Errorf("%d parameters, want %d: %v", len(got), len(want), got)
		}
		for name, value := range want {
			if len(got[name]) != 1 || got.Get(name) != value {
				t.Errorf("%s=%q, want %q", name, got[name], value)
			}
		}
		verifier, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(request.Body, request.Header); err != nil {
			t.Errorf("the headers must sign the body that is sent: %v", err)
		}
		// What was frozen is not touched by being written another way.
		if string(msg.Body) != formBody {
			t.Error("the frozen body was changed")
		}
	}
}

// The example that WeChat Pay published for its version 2 holds the merchants'
// side of these tests, and by it ours, to the rule that their code follows.
func TestFormSignatureIsThePublishedOne(t *testing.T) {
	t.Parallel()
	values := url.Values{
		"appid": {"wxd930ea5d5a258f4f"}, "body": {"test"}, "device_info": {"1000"}, "mch_id": {"10000100"},
		"nonce_str": {"ibuaiVcKdpRxkhJA"},
	}
	for signType, want := range map[string]string{
		"MD5":         "9A0A8659F005D6984697E2CA0A9CF3B7",
		"HMAC-SHA256": "6A9AE1657590FD6257D693A078E1C3E4BB6BA4DC30B23E0EE2496E54170DACD6",
	} {
		if got := merchantSign(values, signType, "192006250b4c09247ec02edce69f6a2d"); got != want {
			t.Errorf("%s: %s, want %s", signType, got, want)
		}
	}
}

func TestUnusableFormsAreOurFault(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	for body, format := range map[string]string{"not json": "form", `{"data":[1]}`: "form-md5", formBody: "xml"} {
		msg := formMessage(m, format)
		msg.Body = []byte(body)
		if r := newChannel(t, nil).Send(t.Context(), msg); r.Class != notify.Internal {
			t.Errorf("%.20s as %s: %q", body, format, r.Class)
		}
	}
	if m.Count() != 0 {
		t.Error("something was sent")
	}
}

func TestOwnHeadersNeverReplaceOurs(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	msg := message(m.URL())
	msg.Headers = map[string]string{"authorization": "Bearer canary-token", "X-Route": "canary-b"}
	r := channel.Send(t.Context(), msg)
	if r.Class != notify.OK || strings.Contains(r.RequestHeader, "canary") || !strings.Contains(r.RequestHeader, "X-Route: ***") {
		t.Fatalf("result %+v", r)
	}
	if got := m.Requests()[0].Header; got.Get("Authorization") != "Bearer canary-token" || got.Get("X-Route") != "canary-b" {
		t.Errorf("header %v", got)
	}
	for _, own := range []map[string]string{
		{"webhook-id": "x"},
		{"Webhook-Signature": "v1,x"},
		{"webhook-anything": "x"},
		{"content-type": "text/plain"},
		{"Host": "b.example"},
		{"Transfer-Encoding": "chunked"},
		{"Proxy-Authorization": "x"},
		{"User-Agent": "x"},
		{"X-Lines": "a\r\nb: c"},
		{"bad name": "x"},
		{"": "x"},
		{"X-Long": strings.Repeat("a", 2000)},
		{"X-A": "1", "x-a": "2"},
	} {
		msg.Headers = own
		if r := channel.Send(t.Context(), msg); r.Class != notify.Internal || r.Error == "" {
			t.Errorf("%v: %q (%s)", own, r.Class, r.Error)
		}
	}
	if n := m.Count(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestClientCertificatesAreShown(t *testing.T) {
	t.Parallel()
	certificate, roots, err := fakemerchant.Issue()
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := fakemerchant.Issue()
	if err != nil {
		t.Fatal(err)
	}
	m := newMerchant(t, fakemerchant.Options{TLS: fakemerchant.ValidTLS, ClientCAs: roots})
	channel := newChannel(t, m.Roots())
	send := func(c *tls.Certificate) notify.Result {
		msg := message(m.URL())
		msg.ClientCert = c
		return channel.Send(t.Context(), msg)
	}
	for range 3 {
		if r := send(&certificate); r.Class != notify.OK || r.Status != http.StatusOK {
			t.Fatalf("with the certificate: %q (%s)", r.Class, r.Error)
		}
		// No connection that another identity opened is used: both must be turned away.
		for name, c := range map[string]*tls.Certificate{"none": nil, "a stranger's": &stranger} {
			if r := send(c); r.Class == notify.OK {
				t.Errorf("with %s certificate: accepted", name)
			}
		}
	}
	if n := m.Count(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}
