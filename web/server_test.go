package web_test

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A start that is cancelled at once: the listener exists, the server is not yet in its loop.
func TestShutdownBeforeServeIsHeard(t *testing.T) {
	t.Parallel()
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
	case <-time.After(time.Minute):
		_ = l.Close()
		t.Fatal("it serves although it was shut down")
	}
}

// poorListener has no files left for its first few connections.
type poorListener struct {
	net.Listener
	left atomic.Int32
}

func (l *poorListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A client that opens connections until no file is left must not end the program.
func TestServesOnAfterAllFilesWereInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	poor := &poorListener{Listener: l}
	poor.left.Store(3)
	h := open(t)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(poor) }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	if _, err := client.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 64)); err != nil {
		t.Errorf("no answer: %v", err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}
