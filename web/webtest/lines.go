package webtest

import (
	"context"
	"strings"
	"sync"

	"backstop/internal/notify"
)

// lines is a channel that answers 200 "pong", or 410 at addresses that are gone.
type lines struct {
	mu   sync.Mutex
	Sent []notify.Message
}

func (l *lines) Send(_ context.Context, m notify.Message) notify.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Sent = append(l.Sent, m)
	if strings.Contains(m.URL, "gone") {
		return notify.Result{Class: notify.BadStatus, Status: 410, Error: "answered 410"}
	}
	return notify.Result{Class: notify.OK, Status: 200, ResponseHeader: "Content-Type: text/plain", ResponseBody: []byte("pong"), Took: 7_000_000}
}
