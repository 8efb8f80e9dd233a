package email

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newChannel(t testing.TB, roots *x509.CertPool) *Channel {
	client := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots})
	t.Cleanup(client.Close)
	return New(client)
}

func message(server string) notify.Message {
	return notify.Message{
		ID: "ntf_0198c2", Type: "order.paid", URL: "mailto:desk@shop.example,boss@shop.example", At: time.Now(), Timeout: 5 * time.Second,
		Credentials: map[string]string{"server": server, "from": "pay@gate.example", "username": "pay", "password": "canary-password"},
		Body: []byte(
			`{"id":"ntf_0198c2","type":"order.paid","data":{"order_no":"20260101","amount":1999,"subject":"收据\r\nBcc: x@y.example"}}`),
	}
}

func TestConformance(t *testing.T) {
	// One pool for all servers: each of them has its own certificate.
	roots := x509.NewCertPool()
	peer := func(t *testing.T, says map[string]string) string {
		s := newMailServer(t, false)
		for verb, text := range says {
			s.tell(verb, text)
		}
		roots.AddCert(s.leaf(t))
		return "smtp://" + s.addr
	}
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return newChannel(t, roots) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			switch c {
			case channeltest.Refusing:
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Close()
				return "smtp://" + l.Addr().String()
			case channeltest.Failing:
				return peer(t, map[string]string{"DATA.": "451 try later"})
			case channeltest.Rejecting:
				return peer(t, map[string]string{"RCPT": "550 no such mailbox"})
			case channeltest.Stalling:
				return peer(t, map[string]string{"hello": ""})
			case channeltest.Impossible:
				return "https://a.example/"
			}
			return peer(t, nil)
		},
		Prepare: func(m *notify.Message) {
			m.Credentials = map[string]string{"server": m.URL, "from": "pay@gate.example"}
			if strings.HasPrefix(m.URL, "smtp:") {
				m.URL = "mailto:desk@shop.example"
			}
		},
		Wants: map[channeltest.Condition]notify.Class{
			channeltest.Failing: notify.Refused, channeltest.Rejecting: notify.Refused,
		},
	})
}

func TestMailsAreWhatIsPromised(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"smtp", "smtps"} {
		s := newMailServer(t, scheme == "smtps")
		r := newChannel(t, s.roots).Send(t.Context(), message(scheme+"://"+s.addr))
		if r.Class != notify.OK || r.RemoteAddr != s.addr || strings.Contains(fmt.Sprint(r), "canary") {
			t.Fatalf("%s: %+v", scheme, r)
		}
		if got := s.got(&s.logins); !slices.Equal(got, []string{"\x00pay\x00canary-password"}) {
			t.Errorf("%s: logins %q", scheme, got)
		}
		for _, verb := range s.got(&s.plain) {
			if verb != "EHLO" && verb != "STARTTLS" {
				t.Errorf("%s was sent in plain text", verb)
			}
		}
		mails := s.got(&s.mails)
		if len(mails) != 1 {
			t.Fatalf("%d mails", len(mails))
		}
		checkMail(t, mails[0])
	}
}

func TestADigestIsOneMailWithEveryEvent(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, false)
	m := message("smtp://" + s.addr)
	m.More = []notify.Part{
		{ID: "ntf_2", Type: "order.closed", Body: []byte(`{"data":{"order_no":"20260102","amount":5}}`)},
		{ID: "ntf_3", Type: "order.paid", Body: []byte(`{"data":{"order_no":"20260103","amount":7}}`)},
	}
	if r := newChannel(t, s.roots).Send(t.Context(), m); r.Class != notify.OK || !strings.Contains(r.RequestHeader, "3 notifications") {
		t.Fatalf("%+v", r)
	}
	mails := s.got(&s.mails)
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	for _, want := range []string{"ntf_0198c2.json", "ntf_2.json", "ntf_3.json", "20260102", "20260103"} {
		if !strings.Contains(mails[0], want) {
			t.Errorf("the mail does not contain %s", want)
		}
	}
}

func checkMail(t *testing.T, raw string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Subject": "order.paid 20260101", "Message-Id": "<ntf_0198c2@gate.example>", "Auto-Submitted": "auto-generated", "Bcc": "",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	text, err := parts.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(text); !strings.Contains(string(body), "amount: 1999") ||
		!strings.Contains(string(body), "subject: 收据  Bcc: x@y.example") {
		t.Errorf("text %s", body)
	}
	file, err := parts.NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(base64.NewDecoder(base64.StdEncoding, file))
	if file.FileName() != "ntf_0198c2.json" || string(body) != string(message("").Body) {
		t.Errorf("attached %s: %s", file.FileName(), body)
	}
}

func TestNothingIsSaidInPlainText(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, false)
	s.tell("EHLO", "250-mail.test\r\n250 AUTH PLAIN") // no STARTTLS: somebody sits in between
	r := newChannel(t, s.roots).Send(t.Context(), message("smtp://"+s.addr))
	if r.Class == notify.OK || len(s.got(&s.logins)) > 0 || len(s.got(&s.mails)) > 0 {
		t.Errorf("%q (%s), logins %v", r.Class, r.Error, s.got(&s.logins))
	}
	stranger := newMailServer(t, true)
	if r := newChannel(t, s.roots).Send(t.Context(), message("smtps://"+stranger.addr)); r.Class != notify.TLS {
		t.Errorf("unknown authority: %q (%s)", r.Class, r.Error)
	}
}

func TestRefusalsSayWhyAndNotTheLogin(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, true)
	s.tell("AUTH", "535 canary-password is wrong")
	r := newChannel(t, s.roots).Send(t.Context(), message("smtps://"+s.addr))
	if r.Class != notify.Refused || !strings.Contains(r.Error, "535") || strings.Contains(r.Error, "canary") {
		t.Errorf("%q (%s)", r.Class, r.Error)
	}
}

// A mail that the server has accepted counts as delivered, whatever the server does afterwards.
func TestTheGoodbyeDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, true)
	s.tell("QUIT", "500 what?")
	if r := newChannel(t, s.roots).Send(t.Context(), message("smtps://"+s.addr)); r.Class != notify.OK {
		t.Errorf("%q (%s)", r.Class, r.Error)
	}
}

func TestMailServersAreJudgedAtTheDial(t *testing.T) {
	t.Parallel()
	client := egress.New(egress.Config{})
	t.Cleanup(client.Close)
	for _, server := range []string{"smtp://127.0.0.1", "smtps://10.0.0.1", "smtp://93.184.216.34:25", "smtps://169.254.169.254"} {
		if r := New(client).Send(t.Context(), message(server)); r.Class != notify.Blocked {
			t.Errorf("%s: %q (%s)", server, r.Class, r.Error)
		}
	}
}

func TestAddressesAndServersAreChecked(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"mailto:a@b.example": true, "mailto:a@b.example,c@d.example": true, "mailto:": false, "a@b.example": false, "mailto:a": false,
		"mailto:A <a@b.example>": false, "mailto:a@b.example?bcc=c@d.example": false, "mailto:a@b.example,": false,
		"mailto:a@b.example\r\nBcc: c@d":                               false,
		"mailto:" + strings.Repeat("a@b.example,", 10) + "c@d.example": false,
	} {
		if err := CheckTarget(url); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
	for server, good := range map[string]bool{
		"smtp://mail.example": true, "smtps://mail.example:465/": true, "": false, "mail.example": false, "http://mail.example": false,
		"smtp://user:pw@mail.example": false, "smtp://mail.example:0": false, "smtp://mail.example/x": false, "smtp://0x7f.1": false,
	} {
		if err := CheckServer(map[string]string{"server": server, "from": "a@b.example"}); (err == nil) != good {
			t.Errorf("%q: %v", server, err)
		}
	}
	if CheckServer(map[string]string{"server": "smtp://mail.example", "from": "A <a@b.example>"}) == nil {
		t.Error("a sender with a name is accepted")
	}
}
