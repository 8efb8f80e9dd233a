package sms

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
	"backstop/internal/notify/fakemerchant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newChannel(t testing.TB) *Channel {
	client := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(client.Close)
	return New(client)
}

func newGateway(t testing.TB) *fakemerchant.Merchant {
	t.Helper()
	m, err := fakemerchant.Open(fakemerchant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func credentials(g Gateway) map[string]string {
	text, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	return map[string]string{"gateway": string(text), "key": "canary-key-of-the-gateway"}
}

func message(g Gateway) notify.Message {
	return notify.Message{
		ID: "ntf_0198c2", Type: "order.paid", URL: "sms:+8613800000000", At: time.Unix(1700000000, 0), Timeout: 5 * time.Second,
		Credentials: credentials(g),
		Body: []byte(
			`{"id":"ntf_0198c2","data":{"order_no":"20260101","amount":1999,"currency":"CNY","subject":"\"tea\"\r\n&x=1","none":null}}`),
	}
}

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return newChannel(t) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			switch c {
			case channeltest.Refusing:
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Close()
				return "http://" + l.Addr().String() + "/"
			case channeltest.Impossible:
				return "tel:1"
			}
			m := newGateway(t)
			switch c {
			case channeltest.Failing:
				m.Behave(fakemerchant.Answer(http.StatusInternalServerError, "try later"))
			case channeltest.Rejecting:
				m.Behave(fakemerchant.Answer(http.StatusForbidden, "canary-key-of-the-gateway is blocked"))
			case channeltest.Stalling:
				m.Behave(fakemerchant.Hang())
			}
			return m.URL()
		},
		Prepare: func(m *notify.Message) {
			if strings.HasPrefix(m.URL, "http") {
				m.Credentials = credentials(Gateway{URL: m.URL + "?key={{.Secret.key}}", Body: "{{.Type}}"})
				m.URL = "sms:+8613800000000"
			}
		},
	})
}

func TestRequestsFollowTheTemplate(t *testing.T) {
	t.Parallel()
	m := newGateway(t)
	channel := newChannel(t)
	msg := message(Gateway{
		URL:     m.URL() + "?to={{query .To}}",
		Headers: map[string]string{"Content-Type": "application/json", "X-Sign": `{{hmac .Secret.key (join .To .Time)}}`},
		Body:    `{"to":{{json .To}},"text":{{json (join "Paid " (money .Data.amount .Data.currency) " for " .Data.subject)}}{{if .Data.none}},"none":1{{end}}}`,
	})
	r := channel.Send(t.Context(), msg)
	if r.Class != notify.OK || r.Status != http.StatusOK || r.RemoteAddr == "" || strings.Contains(fmt.Sprint(r), "canary") {
		t.Fatalf("%+v", r)
	}
	got := m.Requests()[0]
	if want := `{"to":"+8613800000000","text":"Paid 19.99 CNY for \"tea\"\r\n\u0026x=1"}`; string(got.Body) != want ||
		got.Method != http.MethodPost {
		t.Errorf("%s %s, want %s", got.Method, got.Body, want)
	}
	if got.Header.Get("Content-Type") != "application/json" || len(got.Header.Get("X-Sign")) != 64 {
		t.Errorf("header %v", got.Header)
	}
}

func TestSuccessIsTheGatewaysOwnRule(t *testing.T) {
	t.Parallel()
	m := newGateway(t)
	channel := newChannel(t)
	for _, c := range []struct {
		status int
		body   string
		g      Gateway
		want   notify.Class
	}{
		{200, `{"code":0}`, Gateway{OKText: `"code":0`}, notify.OK},
		{200, `{"code":7}`, Gateway{OKText: `"code":0`}, notify.BadText},
		{202, "", Gateway{}, notify.OK},
		{302, "", Gateway{}, notify.BadStatus},
		{200, "", Gateway{OKStatus: []int{201}}, notify.BadStatus},
		{409, "sent before", Gateway{OKStatus: []int{200, 409}}, notify.OK},
		{500, `"code":0`, Gateway{OKText: `"code":0`}, notify.BadStatus},
	} {
		m.Behave(fakemerchant.Answer(c.status, c.body))
		c.g.URL = m.URL()
		if r := channel.Send(t.Context(), message(c.g)); r.Class != c.want {
			t.Errorf("%d %s: %q (%s), want %q", c.status, c.body, r.Class, r.Error, c.want)
		}
	}
}

func TestAnswersThatQuoteTheKeyAreKeptWithoutIt(t *testing.T) {
	t.Parallel()
	m := newGateway(t)
	m.Behave(fakemerchant.Answer(401, "wrong key canary-key-of-the-gateway"))
	r := newChannel(t).Send(t.Context(), message(Gateway{URL: m.URL()}))
	if string(r.ResponseBody) != "wrong key ***" {
		t.Errorf("stored %q", r.ResponseBody)
	}
}

func TestTemplatesThatCouldRunWildAreRefused(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		"plain":                      true,
		"{{.To}} {{.Data.order_no}}": true,
		`{{if eq .Type "order.paid"}}a{{else}}b{{end}}`: true,
		"{{.Data.missing}}":                             true,
		"{{range 1000000000}}{{end}}":                   false,
		"{{with .Data}}{{.}}{{end}}":                    false,
		`{{define "x"}}{{template "x"}}{{end}}`:         false,
		`{{printf "%1000000000d" 1}}`:                   false,
		"{{print .Secret}}":                             false,
		"{{.}}":                                         false,
		"{{$x := 1}}":                                   false,
		`{{call .To}}`:                                  false,
		`{{index .Secret "key"}}`:                       false,
		"{{html .To}}":                                  false,
		"{{.To":                                         false,
		strings.Repeat("a", maxTemplate+1):              false,
	} {
		err := CheckCredentials(credentials(Gateway{URL: "https://sms.example/send", Body: body}))
		if (err == nil) != good {
			t.Errorf("%.40s: %v", body, err)
		}
	}
	m := newGateway(t)
	long := message(Gateway{URL: m.URL(), Body: strings.Repeat("{{.Data.order_no}}", 400)})
	long.Body = fmt.Appendf(nil, `{"data":{"order_no":%q}}`, strings.Repeat("1", 1000))
	if r := newChannel(t).Send(t.Context(), long); r.Class != notify.Internal || m.Count() != 0 {
		t.Errorf("a text of 400 KB: %q (%s)", r.Class, r.Error)
	}
}

func TestGatewaysAndNumbersAreChecked(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		`{"url":"https://sms.example/send"}`:                                  true,
		`{"url":"https://sms.example/send","method":"GET","ok_status":[200]}`: true,
		`{"url":"https://{{.Data.subject}}/send"}`:                            false,
		`{"url":"{{.To}}://sms.example/"}`:                                    false,
		`{"url":"https://sms.example"}`:                                       false,
		`{"url":"https://sms.example/","method":"DELETE"}`:                    false,
		`{"url":"https://sms.example/","ok_status":[1]}`:                      false,
		`{"url":"https://sms.example/","headers":{"Host":"b.example"}}`:       false,
		`{"url":"https://sms.example/","retries":5}`:                          false,
		`{}`: false, ``: false, `[]`: false,
	} {
		if err := CheckCredentials(map[string]string{"gateway": text}); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	for url, good := range map[string]bool{
		"sms:+8613800000000": true, "sms:10086": true, "sms:": false, "sms:+": false, "sms:+86 138": false, "sms:1234567890123456": false,
		"tel:+8613800000000": false, "sms:12345?body=x": false,
	} {
		if err := CheckTarget(url); (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTheExampleForMerchantsWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/merchants.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "### Text messages")
	_, after, _ = strings.Cut(after, "```json\n")
	example, _, _ := strings.Cut(after, "```")
	m := newGateway(t)
	m.Behave(fakemerchant.Answer(200, `{"code":0}`))
	msg := message(Gateway{})
	msg.Credentials["gateway"] = strings.Replace(example, "https://sms.example/send", m.URL(), 1)
	if r := newChannel(t).Send(t.Context(), msg); r.Class != notify.OK {
		t.Fatalf("%q (%s)", r.Class, r.Error)
	}
	if got := string(m.Requests()[0].Body); got != `{"text": "Paid 19.99 CNY"}` {
		t.Errorf("sent %s", got)
	}
}

// The content of a message must not choose whom we call, and the gateway's address is checked
// like every other.
func TestGatewaysAreJudgedAtTheDial(t *testing.T) {
	t.Parallel()
	client := egress.New(egress.Config{})
	t.Cleanup(client.Close)
	for _, url := range []string{"http://127.0.0.1/", "https://169.254.169.254/", "https://10.0.0.1/", "http://93.184.216.34/"} {
		if r := New(client).Send(t.Context(), message(Gateway{URL: url})); r.Class != notify.Blocked {
			t.Errorf("%s: %q (%s)", url, r.Class, r.Error)
		}
	}
	m := newGateway(t)
	msg := message(Gateway{URL: m.URL(), Headers: map[string]string{"X-Subject": "{{.Data.subject}}"}})
	if r := newChannel(t).Send(t.Context(), msg); r.Class != notify.Internal || m.Count() != 0 {
		t.Errorf("a header of two lines: %q (%s)", r.Class, r.Error)
	}
}

// A gateway that was accepted calls its own host and no other, and writes no more than it may.
func FuzzGateway(f *testing.F) {
	for _, url := range []string{
		"https://sms.example/send?to={{query .To}}", "https://sms.example/{{.Data.subject}}", "https://{{.To}}/",
		"https://sms.example{{.To}}/", "https://sms.example/{{if eq .Type \"ping\"}}a{{else}}b{{end}}",
		"https://a@b/{{.ID}}", "https://sms.example\\{{.To}}/", "HTTPS://sms.example:443/#{{.To}}",
		"https://sms.example/{{template \"x\"}}",
	} {
		f.Add(url, `{"text": {{json (join "Paid " (money .Data.amount .Data.currency))}}}`)
		f.Add(url, `{{hmac .Secret.key (sha256 .Data.subject)}}{{upper (base64 .ID)}}`)
	}
	client := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	f.Cleanup(client.Close)
	channel := New(client)
	f.Fuzz(func(t *testing.T, url, body string) {
		m := message(Gateway{URL: url, Body: body})
		g, err := parseGateway(m.Credentials["gateway"])
		if err != nil {
			return
		}
		m.Body = []byte(`{"data":{"subject":"@evil.example/?","amount":1999,"currency":"CNY"}}`)
		req, err := channel.request(t.Context(), g, valuesOf("+8613800000000", m))
		if err != nil {
			return
		}
		_, host, _ := strings.Cut(hostPart(g.URL), "://")
		if req.URL.Host != host && !strings.EqualFold(req.URL.Host, host) || strings.Contains(req.URL.Host, "evil") &&
			!strings.Contains(url, "evil") || req.ContentLength > maxOutput {
			t.Fatalf("%q calls %q with %d bytes", url, req.URL.Host, req.ContentLength)
		}
	})
}
