package dbtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// wire stands between programs and a PostgreSQL server and passes on what they send, statement by
// statement: pipelines and prepared statements bypass every hook of the program itself.
type wire struct {
	listener net.Listener
	network  string
	server   string
	// session is called for each connection and returns what is called, in order, for each of its
	// statements.
	session func() func(statement) cut
}

// cut is how a connection ends at a statement.
type cut int

const (
	pass       cut = iota
	cutBefore      // the server does not receive it
	cutAfter       // the server receives it, the program no answer
	cutDelayed     // as cutAfter, but the server receives it when the program may have repeated itself
)

// cutDelay is the delay of cutDelayed.
const cutDelay = 300 * time.Millisecond

var errCut = errors.New("cut")

// statement is one statement with the values of its parameters.
type statement struct {
	text   string
	values [][]byte // as sent
}

// through returns the URL of a database with a wire before it, which ends with the test.
func through(t testing.TB, to string, session func() func(statement) cut) string {
	t.Helper()
	cfg, err := pgconn.ParseConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{session: session}
	w.network, w.server = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.listener.Close() })
	go w.accept()
	q := u.Query()
	q.Del("host")
	q.Set("sslmode", "disable") // it has to read what is sent
	u.Host, u.RawQuery = w.listener.Addr().String(), q.Encode()
	return u.String()
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.serve(client)
	}
}

// serve copies one connection in both directions.
func (w *wire) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(w.network, w.server)
	if err != nil {
		return
	}
	defer server.Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer client.Close()
		_, _ = io.Copy(client, server)
		_, _ = io.Copy(io.Discard, server) // a reset would make the server drop what it has not read yet
	}()
	if w.read(bufio.NewReader(client), client, server) == nil {
		return
	}
	if half, ok := server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		<-answered
	}
}

// maxMessage bounds a message of a program, in bytes.
const maxMessage = 64 << 20

var errMessage = errors.New("not a message of PostgreSQL's protocol")

// read passes on the messages of a program and hands over the statements (PostgreSQL, Message
// Formats).
func (w *wire) read(from *bufio.Reader, client io.Closer, to io.Writer) error {
	see, prepared := w.session(), map[string]string{}
	later := pass           // the cut of a statement whose last message, Sync, is still to come
	head := make([]byte, 4) // the first message has no type
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(head[len(head)-4:])
		if size < 4 || size > maxMessage {
			return errMessage
		}
		message := make([]byte, len(head)+int(size)-4)
		copy(message, head)
		if _, err := io.ReadFull(from, message[len(head):]); err != nil {
			return err
		}
		end := pass
		if len(head) == 5 {
			body := fields{message[5:]}
			switch message[0] {
			case 'Q':
				end = see(statement{text: body.text()})
			case 'P':
				name := body.text()
				prepared[name] = body.text()
			case 'B':
				_ = body.text() // the portal
				s := statement{text: prepared[body.text()]}
				for range body.short() {
					body.short() // formats
				}
				for range body.short() {
					s.values = append(s.values, body.value())
				}
				if later == pass {
					later = see(s)
				}
				if later == cutBefore {
					end = later
				}
			case 'S':
				end, later = later, pass
			}
		}
		switch end {
		case cutBefore:
			return errCut
		case cutAfter:
			client.Close()
		case cutDelayed:
			client.Close()
			<-time.After(cutDelay)
		}
		if _, err := to.Write(message); err != nil {
			return err
		}
		if end != pass {
			return errCut
		}
		if len(head) == 4 {
			head = make([]byte, 5)
		}
	}
}

// fields reads the parts of a message; what is missing is empty.
type fields struct{ rest []byte }

func (f *fields) text() string {
	text, rest, _ := strings.Cut(string(f.rest), "\x00")
	f.rest = []byte(rest)
	return text
}

func (f *fields) take(n int) []byte {
	n = min(n, len(f.rest))
	taken := f.rest[:n]
	f.rest = f.rest[n:]
	return taken
}

func (f *fields) short() int {
	if b := f.take(2); len(b) == 2 {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (f *fields) long() int {
	if b := f.take(4); len(b) == 4 {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

// value reads a parameter; nil = NULL.
func (f *fields) value() []byte {
	if n := f.long(); n >= 0 {
		return f.take(n)
	}
	return nil
}

// bigints returns the elements of an array of BIGINT in the binary format; nil = it is something
// else. NULL is left out.
func bigints(value []byte) (all []int64) {
	if len(value) == 8 {
		return []int64{int64(binary.BigEndian.Uint64(value))}
	}
	const bigint = 20 // its OID
	f := fields{value}
	dimensions, _, of := f.long(), f.long(), f.long()
	if dimensions != 1 || of != bigint {
		return nil
	}
	n := f.long()
	_ = f.long() // the lower bound
	for range n {
		if x := f.value(); len(x) == 8 {
			all = append(all, int64(binary.BigEndian.Uint64(x)))
		}
	}
	return all
}
