package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long an address can make us wait; anything else is raised or cut to it.
const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Hour
)

// retryAfter returns how long a 429 or 503 asks us to wait (RFC 9110, 10.2.3); 0 = it does not
// ask, or in no valid form. A date counts from the response's own Date, so that no clock has to
// agree with another, or without one from now.
func retryAfter(status int, header http.Header, now time.Time) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	asked := maxRetryAfter
	switch until, err := http.ParseTime(text); {
	case err == nil:
		if sent, err := http.ParseTime(header.Get("Date")); err == nil {
			now = sent
		}
		asked = until.Sub(now)
	case text == "" || strings.Trim(text, "0123456789") != "":
		return 0
	default:
		// Digits that no integer holds are more than an hour too.
		if n, err := strconv.Atoi(text); err == nil && n < int(maxRetryAfter/time.Second) {
			asked = time.Duration(n) * time.Second
		}
	}
	return min(max(asked, minRetryAfter), maxRetryAfter)
}
