package web

import (
	"net"
	"testing"
	"time"
)

// A start that is called off at once: the listener is there, the server is not
// yet in its loop.
func TestShutdownBeforeServeIsHeard(t *testing.T) {
	h := open(t)
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		_ = l.Close()
		t.Fatal("it serves although it was shut down")
	}
}
