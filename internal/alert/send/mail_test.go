package send

import (
	"bufio"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"

	"backstop/internal/alert"
)

// mailbox is a mail server on loopback that takes every mail, or answers each with an error.
type mailbox struct {
	addr  string
	mu    sync.Mutex
	mails []string
	fails bool
}

func (b *mailbox) fail(fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = fails
}

func (b *mailbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.mails
	b.mails = nil
	return all
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &mailbox{addr: l.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return b
}

func (b *mailbox) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	say := func(text string) { fmt.Fprint(conn, text+"\r\n") }
	say("220 mail.test ESMTP")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); verb {
		case "DATA":
			say("354 go on")
			var text strings.Builder
			for line, err = r.ReadString('\n'); err == nil && line != ".\r\n"; line, err = r.ReadString('\n') {
				text.WriteString(line)
			}
			b.mu.Lock()
			if b.fails {
				say("451 no room for canary-address@x.example")
			} else {
				b.mails = append(b.mails, text.String())
				say("250 taken")
			}
			b.mu.Unlock()
		case "QUIT":
			say("221 bye")
			return
		case "EHLO":
			say("250-mail.test\r\n250 8BITMIME")
		default:
			say("250 ok")
		}
	}
}

// parts returns the texts of a mail by media type.
func parts(t *testing.T, m *mail.Message) map[string]string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the mail is %q, %v", kind, err)
	}
	all := map[string]string{}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		var body io.Reader = p
		if p.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(p)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		all[kind] = string(text)
	}
}

func TestAMailHasHTMLAndText(t *testing.T) {
	t.Parallel()
	b := newMailbox(t)
	targets, err := Targets([]string{"smtp://" + b.addr +
		"/?from=pay@gate.example&to=canary-address@x.example,b@x.example&fromname=Backstop"})
	if err != nil {
		t.Fatal(err)
	}
	to, ok := targets[0].(alert.MailTarget)
	if !ok {
		t.Fatal("a mailbox takes no HTML")
	}
	const html = "<p>已通知 <b>¥1,999.00</b></p>"
	for range 2 { // once more, as after a crash
		if err := to.SendMail(t.Context(), 4711, "日报 · 2026-11-23", "已通知 ¥1,999.00", html); err != nil {
			t.Fatal(err)
		}
	}
	mails := b.take()
	if len(mails) != 2 {
		t.Fatalf("%d mails", len(mails))
	}
	for _, text := range mails {
		m, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || subject != "日报 · 2026-11-23" || m.Header.Get("Message-ID") != "<backstop-4711@gate.example>" ||
			!strings.Contains(m.Header.Get("From"), "pay@gate.example") || !strings.Contains(m.Header.Get("To"), "b@x.example") ||
			m.Header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("%q %v, %v", subject, m.Header, err)
		}
		if all := parts(t, m); strings.TrimSpace(all["text/html"]) != html || strings.TrimSpace(all["text/plain"]) != "已通知 ¥1,999.00" ||
			len(all) != 2 {
			t.Errorf("parts %q", all)
		}
	}
	b.fail(true)
	if err := to.SendMail(t.Context(), 1, "t", "b", html); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("refused: %v", err)
	}
	b.fail(false)
	if err := to.Send(t.Context(), "an alert", "text only"); err != nil {
		t.Errorf("a text: %v", err)
	}
	if mails := b.take(); len(mails) != 2 || !strings.Contains(mails[0], "text only") {
		t.Errorf("a text arrives as %q", mails)
	}
}

func TestALinkIsMailedToItsReader(t *testing.T) {
	t.Parallel()
	if NewMailer(nil) != nil {
		t.Error("mails without a server")
	}
	b := newMailbox(t)
	targets, err := Targets([]string{"generic+http://127.0.0.1:1/", "smtp://" + b.addr + "/?from=pay@gate.example&to=team@x.example"})
	if err != nil {
		t.Fatal(err)
	}
	send := NewMailer(targets)
	if err := send(t.Context(), "li@x.example", "邀请", "https://x.example/invite/bsi_A"); err != nil {
		t.Fatal(err)
	}
	all := b.take()
	if len(all) != 1 {
		t.Fatalf("%d mails", len(all))
	}
	m, err := mail.ReadMessage(strings.NewReader(all[0]))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil || !strings.Contains(string(body), "/invite/bsi_A") || m.Header.Get("To") != "<li@x.example>" ||
		m.Header.Get("From") != "<pay@gate.example>" || m.Header.Get("Message-ID") == "" {
		t.Errorf("%v %s: %v", m.Header, body, err)
	}
	b.fail(true)
	if err := send(t.Context(), "li@x.example", "邀请", "text"); err == nil || strings.Contains(err.Error(), b.addr) {
		t.Errorf("refused: %v", err)
	}
	if err := send(t.Context(), "li@x.example\r\nBcc: all@x.example", "邀请", "text"); err == nil {
		t.Error("an address with a line break")
	}
}
