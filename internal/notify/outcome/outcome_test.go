package outcome_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

// A node that has run out of files fails at every merchant: counted as the merchants' failures,
// that would open all breakers.
func TestWantOfFilesIsOurFault(t *testing.T) {
	t.Parallel()
	for call, want := range map[error]notify.Class{
		os.NewSyscallError("socket", syscall.EMFILE):        notify.Internal,
		os.NewSyscallError("connect", syscall.ECONNREFUSED): notify.Connect,
	} {
		dial := &net.OpError{Op: "dial", Net: "tcp", Err: call}
		looking := &net.DNSError{Err: "cannot look", Name: "m.example", UnwrapErr: dial}
		errs := []error{dial}
		if errors.Is(call, syscall.EMFILE) {
			errs = append(errs, looking)
		}
		for _, err := range errs {
			if got, text := outcome.Of(t.Context(), false, err); got != want || text == "" {
				t.Errorf("%v: %s (%s), want %s", err, got, text, want)
			}
		}
	}
}

// As crypto/tls puts it where a server refuses the client's certificate.
func TestAnAlertBehindTheHandshakeIsCalledTLS(t *testing.T) {
	t.Parallel()
	said := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	class, text := outcome.Of(t.Context(), false, fmt.Errorf("read: %w", said))
	if class != notify.TLS || text != "read: remote error: tls: certificate required" {
		t.Errorf("%q (%s)", class, text)
	}
}
