package email

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"backstop/internal/notify/fakemerchant"
)

// mailServer takes mail on loopback, after STARTTLS or inside TLS, and gives configured
// answers.
type mailServer struct {
	addr  string
	roots *x509.CertPool
	tls   *tls.Config

	mu      sync.Mutex
	says    map[string]string // instead of the usual answer, by verb ("DATA." = after the text)
	mails   []string
	logins  []string
	plain   []string // what was said before TLS
	running sync.WaitGroup
}

func newMailServer(t testing.TB, wrapped bool) *mailServer {
	t.Helper()
	certificate, roots, err := fakemerchant.Issue()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{
		addr: l.Addr().String(), roots: roots, says: map[string]string{},
		tls: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	s.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() {
				defer func() { _ = conn.Close() }()
				if wrapped {
					s.serve(tls.Server(conn, s.tls), true)
				} else {
					s.serve(conn, false)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.running.Wait() })
	return s
}

func (s *mailServer) serve(conn net.Conn, encrypted bool) {
	if s.say(conn, "hello", "220 mail.test ESMTP") {
		s.converse(conn, encrypted)
	}
}

// say answers a verb; false = nothing more is said.
func (s *mailServer) say(conn net.Conn, verb, usual string) bool {
	text, ok := s.told(verb)
	if !ok {
		text = usual
	}
	if text == "" { // it says nothing more and waits for the end
		_, _ = conn.Read(make([]byte, 1))
		return false
	}
	_, err := fmt.Fprintf(conn, "%s\r\n", text)
	return err == nil
}

func (s *mailServer) told(verb string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.says[verb]
	return text, ok
}

func (s *mailServer) tell(verb, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[verb] = text
}

func (s *mailServer) converse(conn net.Conn, encrypted bool) {
	r := bufio.NewReader(conn)
	say := func(verb, usual string) bool { return s.say(conn, verb, usual) }
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		if !encrypted {
			s.note(&s.plain, verb)
		}
		ok := true
		switch verb {
		case "EHLO":
			usual := "250-mail.test\r\n250 STARTTLS"
			if encrypted {
				usual = "250-mail.test\r\n250 AUTH PLAIN"
			}
			ok = say(verb, usual)
		case "STARTTLS":
			if !say(verb, "220 go on") {
				return
			}
			s.converse(tls.Server(conn, s.tls), true)
			return
		case "AUTH":
			login, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			s.note(&s.logins, string(login))
			ok = say(verb, "235 welcome")
		case "DATA":
			if !say(verb, "354 go on") {
				return
			}
			if _, refused := s.told(verb); refused {
				continue
			}
			s.note(&s.mails, readMail(r))
			ok = say("DATA.", "250 taken")
		case "QUIT":
			say(verb, "221 bye")
			return
		default:
			ok = say(verb, "250 ok")
		}
		if !ok {
			return
		}
	}
}

func readMail(r *bufio.Reader) string {
	var text strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return text.String()
		}
		text.WriteString(line)
	}
}

// leaf is the server's certificate, to trust.
func (s *mailServer) leaf(t testing.TB) *x509.Certificate {
	leaf, err := x509.ParseCertificate(s.tls.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func (s *mailServer) note(list *[]string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, text)
}

func (s *mailServer) got(list *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), *list...)
}
