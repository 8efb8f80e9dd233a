package websocket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"backstop/internal/notify/outcome"

	ws "github.com/fasthttp/websocket"
	"golang.org/x/time/rate"
)

// Limits of one connection.
const (
	// pingEvery keeps proxies from closing a connection that is silent for a minute; silence is
	// how long a merchant may send nothing at all, pongs included.
	pingEvery, silence = 20 * time.Second, 50 * time.Second
	// writeTime bounds the write of one frame.
	writeTime = 5 * time.Second
	// closeTime is how long a connection that we close is still read: the other side may have
	// sent an answer, and must answer the close. A shutdown waits for it.
	closeTime = 500 * time.Millisecond
	// maxFrame is far larger than any answer.
	maxFrame = 4 << 10
	// queued is how many frames wait for a slow reader.
	queued = 64
	// answersPerSecond is above the notification rate of one merchant, pings and pongs
	// included; a merchant that sends more is slowed down, not cut off.
	answersPerSecond, answersBurst = 500, 1000
)

// errGone means that the connection ended before the answer.
var errGone = errors.New("the connection is gone")

// link is one connection of a merchant.
type link struct {
	hub      *Hub
	merchant int64
	conn     *ws.Conn
	remote   string
	allowed  func() bool
	frames   chan frame
	gone     chan struct{} // closed when reading and writing have ended
	ending   sync.Once
	closing  chan ending

	mu    sync.Mutex
	over  bool // the read deadline is final
	ended bool // conn belongs to the web server again
}

// frame is a message to be written; it is dropped if its attempt is over.
type frame struct {
	ctx  context.Context
	body []byte
}

type ending struct {
	code   int
	reason string
}

func newLink(h *Hub, merchantID int64, conn *ws.Conn, allowed func() bool) *link {
	return &link{
		hub: h, merchant: merchantID, conn: conn, remote: conn.RemoteAddr().String(), allowed: allowed,
		frames: make(chan frame, queued), gone: make(chan struct{}), closing: make(chan ending, 1),
	}
}

// send passes a body to the writer and waits for the answer.
func (l *link) send(ctx context.Context, body []byte, answers <-chan answer) (answer, error) {
	select {
	case l.frames <- frame{ctx, body}:
	case <-l.gone:
		return answer{}, errGone
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	select {
	case a := <-answers:
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-l.gone:
		select {
		case a := <-answers: // the last frame before the end
			return a, nil
		default:
			return answer{}, errGone
		}
	}
}

// run reads and writes until the connection ends.
func (l *link) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() {
		l.write(ctx)
		l.endReading(closeTime)
	})
	l.read(ctx)
	cancel()
	writer.Wait()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	_ = l.conn.Close()
	close(l.gone)
}

// extend renews the reader's deadline.
func (l *link) extend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil
	}
	return l.conn.SetReadDeadline(time.Now().Add(silence))
}

// endReading ends the reader after at most wait, whatever the other side does. Closing the
// connection would not: the web server closes it only when its handler has returned.
func (l *link) endReading(wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	_ = l.conn.SetReadDeadline(time.Now().Add(wait))
}

// cut ends the current read and write.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if !l.ended {
		_ = l.conn.UnderlyingConn().SetDeadline(time.Now())
	}
}

// read reads answers. The first frame that is not one ends the connection.
func (l *link) read(ctx context.Context) {
	l.conn.SetReadLimit(maxFrame)
	limiter := rate.NewLimiter(answersPerSecond, answersBurst)
	l.conn.SetPongHandler(func(string) error {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		return l.extend()
	})
	answerPing := l.conn.PingHandler()
	l.conn.SetPingHandler(func(text string) error {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		return answerPing(text)
	})
	for l.extend() == nil {
		kind, reader, err := l.conn.NextReader()
		if err != nil {
			return
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			return
		}
		var a struct{ Ack, Nack string }
		if kind != ws.TextMessage || json.Unmarshal(text, &a) != nil || (a.Ack == "") == (a.Nack == "") {
			l.end(ws.ClosePolicyViolation, `send {"ack":"ntf_..."} or {"nack":"ntf_..."}`)
			l.drain()
			return
		}
		if a.Ack != "" {
			l.hub.deliver(l.merchant, a.Ack, answer{true, []byte(`{"ack":"` + clipped(a.Ack) + `"}`)})
		} else {
			l.hub.deliver(l.merchant, a.Nack, answer{false, []byte(`{"nack":"` + clipped(a.Nack) + `"}`)})
		}
		if limiter.Wait(ctx) != nil {
			return
		}
	}
}

// drain reads until the writer has closed and the reader has ended.
func (l *link) drain() {
	for {
		if _, _, err := l.conn.NextReader(); err != nil {
			return
		}
	}
}

// clipped shortens an id so that it can be stored; attempts wait only for our own ids.
func clipped(id string) string { return id[:min(len(id), outcome.MaxID)] }

// write is the only writer to the connection.
func (l *link) write(ctx context.Context) {
	ping := time.NewTicker(l.hub.pingEvery)
	defer ping.Stop()
	for {
		select {
		case f := <-l.frames:
			if f.ctx.Err() != nil {
				continue
			}
			if l.conn.SetWriteDeadline(time.Now().Add(writeTime)) != nil || l.conn.WriteMessage(ws.TextMessage, f.body) != nil {
				return
			}
		case <-ping.C:
			if !l.allowed() {
				l.end(ws.ClosePolicyViolation, "the API key is no longer valid")
				continue
			}
			if l.conn.WriteControl(ws.PingMessage, nil, time.Now().Add(writeTime)) != nil {
				return
			}
		case e := <-l.closing:
			l.sendClose(e.code, e.reason)
			return
		case <-ctx.Done():
			return
		}
	}
}

// end makes the writer close the connection.
func (l *link) end(code int, reason string) {
	l.ending.Do(func() { l.closing <- ending{code, reason} })
}

func (l *link) sendClose(code int, reason string) {
	_ = l.conn.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(code, reason), time.Now().Add(writeTime))
	_ = l.conn.Close()
}
