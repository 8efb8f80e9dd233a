package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Limits of an endpoint's own headers: enough for tokens and gateway routing, and below what
// common servers accept in total (8 KiB).
const (
	maxHeaders     = 20
	maxHeaderValue = 1 << 10
)

// ErrHeader means that a header of the endpoint cannot be sent. Its text never contains the
// value, which may be a token.
var ErrHeader = errors.New("bad header")

// ours are the headers that describe the request or its transport. An endpoint's headers cannot
// replace them.
var ours = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
}

// reserved reports whether an endpoint may not set the header with this canonical name.
func reserved(name string) bool {
	return strings.HasPrefix(name, "Webhook-") || strings.HasPrefix(name, "Proxy-") || slices.Contains(ours, name)
}

// CheckHeaders checks an endpoint's own headers. Errors are ErrHeader.
func CheckHeaders(own map[string]string) error {
	if len(own) > maxHeaders {
		return fmt.Errorf("%w: %d of them, at most %d", ErrHeader, len(own), maxHeaders)
	}
	seen := make(map[string]bool, len(own))
	for name, value := range own {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("%w: %.60q is not a valid header name", ErrHeader, name)
		case reserved(canonical):
			return fmt.Errorf("%w: %s is set by us", ErrHeader, canonical)
		case seen[canonical]:
			return fmt.Errorf("%w: %s is given twice", ErrHeader, canonical)
		case len(value) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("%w: the value of %s must be one line of at most %d bytes", ErrHeader, canonical, maxHeaderValue)
		}
		seen[canonical] = true
	}
	return nil
}
