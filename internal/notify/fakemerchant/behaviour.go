package fakemerchant

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Exchange is one request and the means to answer it.
type Exchange struct {
	Request
	w      http.ResponseWriter
	r      *http.Request
	closed <-chan struct{}
}

// Behaviour answers one request. Behaviours that need the raw connection reset the stream on
// HTTP/2.
type Behaviour func(x *Exchange)

// Answer responds at once.
func Answer(status int, body string) Behaviour {
	return func(x *Exchange) {
		x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		x.w.WriteHeader(status)
		_, _ = io.WriteString(x.w, body)
	}
}

// AnswerHeader adds header fields to the response of then.
func AnswerHeader(header http.Header, then Behaviour) Behaviour {
	return func(x *Exchange) {
		for name, values := range header {
			x.w.Header()[name] = values
		}
		then(x)
	}
}

// Sleep waits before then answers, unless the sender disconnects.
func Sleep(d time.Duration, then Behaviour) Behaviour {
	return func(x *Exchange) {
		if !x.wait(d) {
			panic(http.ErrAbortHandler)
		}
		then(x)
	}
}

// FailFirst responds with status to the first n attempts of every notification.
func FailFirst(n, status int, then Behaviour) Behaviour {
	fail := Answer(status, "not yet")
	return func(x *Exchange) {
		if x.Attempt <= n {
			fail(x)
			return
		}
		then(x)
	}
}

// Hang accepts the request and never responds.
func Hang() Behaviour {
	return func(x *Exchange) {
		select {
		case <-x.r.Context().Done():
		case <-x.closed:
		}
		panic(http.ErrAbortHandler) // returning would answer 200
	}
}

// Drip responds 200 and then sends one byte of body per interval, endlessly.
func Drip(interval time.Duration) Behaviour {
	return func(x *Exchange) {
		x.w.WriteHeader(http.StatusOK)
		for {
			if _, err := x.w.Write([]byte{'.'}); err != nil {
				return
			}
			if err := http.NewResponseController(x.w).Flush(); err != nil || !x.wait(interval) {
				return
			}
		}
	}
}

// DripHeader sends the status line and then one byte of header per interval.
func DripHeader(interval time.Duration) Behaviour {
	return raw(func(x *Exchange, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
		for x.wait(interval) {
			if _, err := conn.Write([]byte{'.'}); err != nil {
				return
			}
		}
	})
}

// Reset accepts the request and resets the connection (RST).
func Reset() Behaviour {
	return raw(func(_ *Exchange, conn net.Conn) { reset(conn) })
}

// ResetInBody resets the connection in the middle of a 200 response.
func ResetInBody() Behaviour {
	return raw(func(x *Exchange, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsucc")
		x.wait(50 * time.Millisecond) // so that the bytes go out before the reset
		reset(conn)
	})
}

// Redirect redirects the sender.
func Redirect(status int, to string) Behaviour {
	return func(x *Exchange) {
		x.w.Header().Set("Location", to)
		x.w.WriteHeader(status)
	}
}

// RedirectLoop redirects the sender to the same URL.
func RedirectLoop() Behaviour {
	return func(x *Exchange) { Redirect(http.StatusFound, x.Path)(x) }
}

// Huge responds 200 with a body of size bytes.
func Huge(size int64) Behaviour {
	return func(x *Exchange) {
		x.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		chunk := bytes.Repeat([]byte("a"), 32<<10)
		for left := size; left > 0; left -= int64(len(chunk)) {
			if _, err := x.w.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return
			}
		}
	}
}

// GzipBomb responds 200 with a small body that decompresses to 64 MB, although the request does
// not accept compression.
func GzipBomb() Behaviour {
	small := bomb()
	return func(x *Exchange) {
		x.w.Header().Set("Content-Encoding", "gzip")
		x.w.Header().Set("Content-Type", "text/plain")
		_, _ = x.w.Write(small)
	}
}

var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, _ = w.Write(zeros) // writing to a bytes.Buffer never fails
	}
	_ = w.Close()
	return b.Bytes()
})

// HugeHeader responds 200 with size bytes of header.
func HugeHeader(size int) Behaviour {
	return AnswerHeader(http.Header{"X-Huge": {strings.Repeat("h", size)}}, Answer(http.StatusOK, "success"))
}

// CloseSilently accepts the request and closes the connection without a response.
func CloseSilently() Behaviour { return Bytes("") }

// CloseInHeader closes the connection in the middle of the response header.
func CloseInHeader() Behaviour { return Bytes("HTTP/1.1 200 OK\r\nContent-Ty") }

// CloseInBody closes the connection before the promised body is complete.
func CloseInBody() Behaviour {
	return Bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsuccess")
}

// Garbage responds with something that is not HTTP.
func Garbage() Behaviour { return Bytes("\x16\x03\x00 SSH-2.0-OpenSSH_9.9\r\n\x00\xff\r\n") }

// Bytes writes text to the connection unchanged and closes it.
func Bytes(text string) Behaviour {
	return raw(func(_ *Exchange, conn net.Conn) { _, _ = io.WriteString(conn, text) })
}

// wait returns true after d, or false as soon as the sender disconnects or the merchant is
// closed.
func (x *Exchange) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	case <-x.closed:
		return false
	}
}

// raw hijacks the connection from the HTTP server and closes it at the end.
func raw(play func(x *Exchange, conn net.Conn)) Behaviour {
	return func(x *Exchange) {
		conn, _, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // HTTP/2: the server's way to reset a stream
		}
		defer func() { _ = conn.Close() }()
		play(x, conn)
	}
}

func reset(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn() // TLS would send a close first
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
