package app

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestAnAddressThatIsRefusedIsExplained(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{
		syscall.EACCES: "need a privilege", syscall.EADDRINUSE: "another server", syscall.EADDRNOTAVAIL: "an address of this machine",
	} {
		err := CannotListen("0.0.0.0:80", "BACKSTOP_LISTEN", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", cause)})
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "0.0.0.0:80") || !strings.Contains(err.Error(), "BACKSTOP_LISTEN") {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
