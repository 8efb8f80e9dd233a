package outcome

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"backstop/internal/notify"
)

// As crypto/tls puts it where a server refuses the client's certificate.
func TestAnAlertBehindTheHandshakeIsCalledTLS(t *testing.T) {
	said := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	class, text := Of(t.Context(), t.Context(), false, fmt.Errorf("read: %w", said))
	if class != notify.TLS || text != "read: remote error: tls: certificate required" {
		t.Errorf("%q (%s)", class, text)
	}
}
