package web_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/web"
)

// converse sends raw bytes on one connection and returns the statuses of all
// answers until the server closes, and whether it did so within two seconds.
func converse(t *testing.T, addr, raw string) (statuses []int, closed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			timeout, ok := err.(net.Error)
			return statuses, !(ok && timeout.Timeout())
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		statuses = append(statuses, res.StatusCode)
	}
}

// TestADisputedEndIsNeverReadBehind: each request carries a second one behind an
// end on which readers differ. The second must never be answered.
func TestADisputedEndIsNeverReadBehind(t *testing.T) {
	t.Parallel()
	h := open(t)
	const second = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	post := func(header, body string) string {
		return "POST /callback/wx HTTP/1.1\r\nHost: x\r\n" + header + "\r\n" + body
	}
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"two lengths":                        {post("Content-Length: 0\r\nContent-Length: 34\r\n", second), 400},
		"two equal lengths":                  {post("Content-Length: 0\r\nContent-Length: 0\r\n", second), 400},
		"a list of lengths":                  {post("Content-Length: 0, 34\r\n", second), 400},
		"a length with a sign":               {post("Content-Length: +0\r\n", second), 400},
		"a negative length":                  {post("Content-Length: -1\r\n", second), 400},
		"length beside chunks":               {post("Content-Length: 34\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+second), 400},
		"chunks beside length":               {post("Transfer-Encoding: chunked\r\nContent-Length: 34\r\n", "0\r\n\r\n"+second), 400},
		"an unknown coding":                  {post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+second), 400},
		"a coding behind a comma":            {post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+second), 400},
		"two codings":                        {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+second), 400},
		"identity hides a length":            {post("Transfer-Encoding: identity\r\nContent-Length: 0\r\n", second), 400},
		"a space before the colon":           {post("Content-Length : 34\r\n", second), 400},
		"a folded header":                    {post("X: a\r\n Content-Length: 34\r\n", second), 400},
		"a tab before a coding":              {post("Transfer-Encoding:\tchunked\r\n", "0\r\n\r\n"+second), 400},
		"a control in a header name":         {post("Content-Length\x0b: 34\r\n", second), 400},
		"a bare return in a value":           {post("X: a\rContent-Length: 34\r\n", second), 400},
		"chunks in HTTP/1.0":                 {"POST /callback/wx HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second, 400},
		"a bare feed after the request line": {"POST /callback/wx HTTP/1.1\nHost: x\r\nContent-Length: 0\r\n\r\n" + second, 400},
		"a bare feed after a header":         {post("Content-Length: 0\n", second), 400},
		"a bare feed after all headers":      {"POST /callback/wx HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\n" + second, 400},
		"bare feeds alone":                   {"GET /healthz HTTP/1.1\nHost: x\n\n" + second, 400},
		"a bare feed before a request":       {"\n" + second + second, 400},
		"no version":                         {"GET /healthz\r\nHost: x\r\n\r\n" + second, 400},
		"no version and keep-alive":          {"GET /healthz\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" + second, 400},
		"two hosts":                          {"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + second, 400},
		"of an unknown method": {"FOO / HTTP/1.1\r\nHost: x\r\nContent-Length: 34\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			second, 400},
		"an unread body": {
			"FOO / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("a", 9000) + second,
			400,
		},
		"a size that is none":         {post("Transfer-Encoding: chunked\r\n", "x\r\n\r\n"+second), 400},
		"a size beyond all numbers":   {post("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"+second), 400},
		"a line feed in an extension": {post("Transfer-Encoding: chunked\r\n", "0;a\nb\r\n\r\n"+second), 200},
		"plain chunks":                {post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"+second), 200},
	} {
		statuses, closed := converse(t, h.Addr, c.raw)
		if len(statuses) != 1 || statuses[0] != c.status || !closed {
			t.Errorf("%s: answers %v, closed %v; want only %d", name, statuses, closed, c.status)
		}
	}
	// The control: an undisputed end keeps the connection, and both are answered.
	statuses, _ := converse(t, h.Addr, post("Content-Length: 3\r\n", "abc")+strings.Replace(second, "\r\n\r\n",
		"\r\nConnection: close\r\n\r\n", 1))
	if len(statuses) != 2 {
		t.Errorf("control: answers %v", statuses)
	}
}

// The lines of a request are found wherever its bytes are split, and behind the bodies of others.
func TestAnIrregularLineIsFoundBehindOtherRequests(t *testing.T) {
	t.Parallel()
	h := open(t)
	const regular = "POST /callback/wx HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\na\nb\n\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, last := range map[string]string{
		"no version": "GET /healthz\r\nHost: x\r\n\r\n", "a bare feed": "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\n\r\n",
	} {
		statuses, closed := converse(t, h.Addr, regular+last+regular)
		if len(statuses) != 3 || statuses[0] != 200 || statuses[1] != 200 || statuses[2] != 400 || !closed {
			t.Errorf("%s: answers %v, closed %v; want 200, 200 and 400", name, statuses, closed)
		}
	}
	conn, err := net.Dial("tcp", h.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, b := range []byte(strings.Replace(regular, "Host: x\r\n\r\n", "Host: x\r\nConnection: close\r\n\r\n", 1)) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if answer, err := io.ReadAll(conn); err != nil || bytes.Count(answer, []byte("HTTP/1.1 200")) != 2 {
		t.Errorf("byte by byte: %v\n%s", err, answer)
	}
}

func TestChunksArriveWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	converse(t, h.Addr,
		"POST /callback/wx HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
	if req := h.Sender.Last(); req == nil || string(req.Body) != "abcde" {
		t.Errorf("%+v", req)
	}
}

func TestAHeaderBeyondItsLimitIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	statuses, closed := converse(t, h.Addr, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("a", 2*web.HeaderBytes)+"\r\n\r\n")
	if len(statuses) != 1 || statuses[0] != 431 || !closed {
		t.Errorf("answers %v, closed %v", statuses, closed)
	}
}

func TestADrippingClientIsLetGo(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_HTTP_READ_TIMEOUT=1s")
	long := strings.Repeat("a", web.Prefetched)
	for name, rest := range map[string]string{
		"a short body": "Content-Length: 100\r\n\r\nslow", "a long body": "Content-Length: 200000\r\n\r\nslow" + long,
		"chunks": "Transfer-Encoding: chunked\r\n\r\n9\r\nslow",
	} {
		statuses, closed := converse(t, h.Addr, "POST /callback/wx HTTP/1.1\r\nHost: x\r\n"+rest)
		if len(statuses) != 1 || statuses[0] != 408 || !closed {
			t.Errorf("%s: answers %v, closed %v", name, statuses, closed)
		}
	}
	if req := h.Sender.Last(); req != nil {
		t.Errorf("half a body was passed on: %d bytes", len(req.Body))
	}
}

// What was read ahead, what followed and what came in chunks is one body, and a
// connection goes on behind it.
func TestBodiesOfAllSizesArriveWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	const end = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for _, size := range []int{0, 1, web.Prefetched - 1, web.Prefetched, web.Prefetched + 1, 65537, 256 << 10} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte('a' + i%23)
		}
		statuses, _ := converse(t, h.Addr, fmt.Sprintf("POST /callback/wx HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s%s", size,
			body, end))
		if req := h.Sender.Last(); len(statuses) != 2 || req == nil || !bytes.Equal(req.Body, body) {
			t.Errorf("%d bytes: answers %v", size, statuses)
		}
		if size == 0 {
			continue
		}
		body[0] = 'X'
		statuses, _ = converse(t, h.Addr,
			fmt.Sprintf(
				"POST /callback/wx HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nX\r\n%x\r\n%s\r\n0\r\n\r\n", max(size-1, 1), body[min(1, size-1):]))
		if size == 1 {
			body = []byte("XX")
		}
		if req := h.Sender.Last(); len(statuses) != 1 || req == nil || !bytes.Equal(req.Body, body) {
			t.Errorf("%d bytes in chunks: answers %v", size, statuses)
		}
	}
}

// A closed connection does not end a body.
func TestHalfABodyIsNoBody(t *testing.T) {
	t.Parallel()
	h := open(t)
	half := strings.Repeat("a", 2*web.Prefetched)
	for name, raw := range map[string]string{
		"by length":      "Content-Length: 100000\r\n\r\n" + half,
		"within a chunk": "Transfer-Encoding: chunked\r\n\r\nffff\r\n" + half,
		"behind a chunk": "Transfer-Encoding: chunked\r\n\r\n4000\r\n" + half + "\r\n",
	} {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /callback/wx HTTP/1.1\r\nHost: x\r\n"+raw); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn)
		conn.Close()
		if req := h.Sender.Last(); err != nil || req != nil {
			t.Fatalf("%s: passed on %v, answered %.40q, %v", name, req != nil, said, err)
		}
	}
}

// A body that is announced and does not come must cost next to nothing: otherwise anyone who
// can open connections could fill the memory with a few bytes on each.
func TestAnAnnouncedBodyTakesNoMemory(t *testing.T) {
	h := open(t)
	const clients = 200
	before := heap()
	for i := range clients {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		announced := "Content-Length: 262144\r\n\r\na"
		if i%2 == 1 {
			announced = "Transfer-Encoding: chunked\r\n\r\n3ff00\r\na"
		}
		if _, err := io.WriteString(conn, "POST /callback/wx HTTP/1.1\r\nHost: x\r\n"+announced); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "all are connected", func() bool { return h.App().Server().GetOpenConnectionsCount() >= clients })
	waittest.Stays(t, "at most 100 KiB for each client", 200*time.Millisecond, func() bool { return (heap()-before)/clients <= 100<<10 })
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
