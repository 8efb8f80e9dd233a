package web

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
)

// If a connection is closed while the client is still sending, it is reset, and the reset may
// overtake the response: the client would never learn that its body was too large. Such
// connections therefore stay open for reading a little longer.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 4 << 20 // the largest body limit that can be set
)

// lingerListener accepts connections that can linger. It may be closed twice.
type lingerListener struct {
	net.Listener
	log    *slog.Logger
	once   sync.Once
	warned time.Time
}

func (l *lingerListener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// Pauses while no connection can be accepted, and between two log lines about it.
const (
	acceptPause = 50 * time.Millisecond
	acceptWarn  = time.Minute
)

// exhausted reports whether the process or the machine has run out of resources for
// connections. That is temporary, whereas the server would end on any error of Accept.
func exhausted(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// connections returns how many may be open at a time: as configured, but at most half of the
// files that this process may open, so that idle clients leave some for the database and
// notifications.
func connections(configured int, log *slog.Logger) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur/2 >= uint64(configured) {
		return configured
	}
	limit := max(1, int(files.Cur/2))
	log.Warn("fewer connections than configured, because of the limit of open files: raise it", "connections", limit, "configured",
		configured, "files", files.Cur)
	return limit
}

func (l *lingerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	for exhausted(err) {
		if now := time.Now(); now.Sub(l.warned) > acceptWarn {
			l.warned = now
			l.log.Warn("connections cannot be accepted at the moment", "error", err)
		}
		time.Sleep(acceptPause)
		c, err = l.Listener.Accept()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return &lingerConn{TCPConn: tcp}, err
	}
	return c, err
}

type lingerConn struct {
	*net.TCPConn
	linger atomic.Bool
	ended  atomic.Bool // the client has closed its side
	lines  lines
}

func (c *lingerConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	c.lines.read(b[:n])
	if err != nil {
		c.ended.Store(true)
	}
	return n, err
}

// isIrregular reports whether a line of the request is one that other readers read differently.
func isIrregular(c *fiber.Ctx) bool {
	conn, ok := c.Context().Conn().(*lingerConn)
	return ok && conn.lines.irregular(c.Context().ConnRequestNum())
}

// hasEnded reports whether the client closed the connection within the request.
func hasEnded(c *fiber.Ctx) bool {
	conn, ok := c.Context().Conn().(*lingerConn)
	return ok && conn.ended.Load()
}

func (c *lingerConn) Close() error {
	if c.linger.Load() && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

// linger lets the client read the response although not all that it sent was read.
func linger(c *fiber.Ctx) {
	if conn, ok := c.Context().Conn().(*lingerConn); ok {
		conn.linger.Store(true)
	}
}
