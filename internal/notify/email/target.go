package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"backstop/internal/base/egress"
)

var (
	// ErrTarget means that a URL cannot be used.
	ErrTarget = errors.New("bad mail address")
	// ErrServer means that a server or sender cannot be used.
	ErrServer = errors.New("bad mail server")
)

// Limits of a URL; use a mailing list for more recipients.
const maxRecipients, maxAddress = 10, 254

// CheckTarget checks a URL: mailto:a@shop.example[,b@shop.example…]. Errors are ErrTarget.
func CheckTarget(raw string) error {
	_, err := parse(raw)
	return err
}

// CheckServer checks the credentials "server" and "from". Errors are ErrServer.
func CheckServer(credentials map[string]string) error {
	_, err := serverOf(credentials)
	return err
}

func parse(raw string) ([]string, error) {
	list, ok := strings.CutPrefix(raw, "mailto:")
	if !ok {
		return nil, fmt.Errorf("%w: the scheme must be mailto", ErrTarget)
	}
	recipients := strings.Split(list, ",")
	if len(recipients) > maxRecipients {
		return nil, fmt.Errorf("%w: at most %d recipients", ErrTarget, maxRecipients)
	}
	for _, r := range recipients {
		if !isAddress(r) {
			return nil, fmt.Errorf("%w: mailto: must be followed by comma-separated addresses and nothing else", ErrTarget)
		}
	}
	return recipients, nil
}

// isAddress accepts a bare address, without a name or comment.
func isAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= maxAddress && !strings.ContainsAny(text, "?&\"")
}

// server is the mail server of an endpoint, with the sender.
type server struct {
	scheme string // smtp (STARTTLS) or smtps
	host   string
	port   int
	from   string
	domain string // of the sender
}

func serverOf(credentials map[string]string) (server, error) {
	wrong := func(problem string) (server, error) { return server{}, fmt.Errorf("%w: %s", ErrServer, problem) }
	u, err := url.Parse(credentials["server"])
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return wrong("server must be smtp://host[:port] (STARTTLS) or smtps://host[:port]")
	}
	if err := egress.CheckHost(u.Hostname()); err != nil {
		return wrong(err.Error())
	}
	standard := map[string]string{"smtp": "587", "smtps": "465"}[u.Scheme]
	port, err := strconv.ParseUint(cmp.Or(u.Port(), standard), 10, 16)
	if err != nil || port == 0 {
		return wrong("the port must be 1 to 65535")
	}
	from := credentials["from"]
	if !isAddress(from) {
		return wrong("from must be a bare mail address")
	}
	return server{u.Scheme, u.Hostname(), int(port), from, from[strings.LastIndex(from, "@")+1:]}, nil
}

// dialer opens the one connection of an attempt.
type dialer struct {
	out         *egress.Client
	via         server
	certificate *tls.Certificate

	remote string
	err    error // of the dial

	mu   sync.Mutex
	conn net.Conn
}

func (d *dialer) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	address := net.JoinHostPort(d.via.host, strconv.Itoa(d.via.port))
	var conn net.Conn
	if d.via.scheme == "smtps" {
		conn, d.err = d.out.DialTLS(ctx, d.via.scheme, address, d.certificate)
	} else {
		conn, d.err = d.out.Dial(ctx, "smtp+starttls", address)
	}
	if d.err != nil {
		return nil, d.err
	}
	d.remote = conn.RemoteAddr().String()
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	return conn, nil
}

// cut closes the connection, even while something is being sent.
func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close()
	}
}
