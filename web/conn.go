package web

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
)

// A connection that is closed while the client still sends is reset, and the
// reset may overtake the answer: the client never learns that its body was too
// large. So such connections stay open for reading a little longer.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 4 << 20 // the largest body limit that can be set
)

// lingerListener makes connections that can linger. It may be closed twice.
type lingerListener struct {
	net.Listener
	once sync.Once
}

func (l *lingerListener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

func (l *lingerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &lingerConn{TCPConn: tcp}, err
	}
	return c, err
}

type lingerConn struct {
	*net.TCPConn
	linger atomic.Bool
}

func (c *lingerConn) Close() error {
	if c.linger.Load() && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

// linger lets the client read the answer although not all it sent was read.
func linger(c *fiber.Ctx) {
	if conn, ok := c.Context().Conn().(*lingerConn); ok {
		conn.linger.Store(true)
	}
}
