package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"backstop/internal/notify/fakemerchant"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Sun, 06 Nov 1994 08:49:37 GMT"
	for _, c := range []struct {
		status      int
		after, date string
		want        time.Duration
	}{
		{429, "20", date, 20 * time.Second},
		{503, "20", date, 20 * time.Second},
		{503, " 0020 ", date, 20 * time.Second},
		{500, "20", date, 0},
		{410, "20", date, 0},
		{301, "20", date, 0},
		{200, "20", date, 0},
		{429, "", date, 0},
		// Against the answer's own date, whatever this node's clock says, in each form of HTTP.
		{429, "Sun, 06 Nov 1994 08:50:07 GMT", date, 30 * time.Second},
		{503, "Sunday, 06-Nov-94 08:50:07 GMT", date, 30 * time.Second},
		{503, "Sun Nov  6 08:50:07 1994", date, 30 * time.Second},
		{503, "Sun, 06 Nov 1994 08:50:07 GMT", "yesterday", time.Second}, // long ago by the message's time
		// Raised and cut.
		{429, "0", date, time.Second},
		{429, "3600", date, time.Hour},
		{429, "3601", date, time.Hour},
		{429, "9223372036854775807", date, time.Hour},
		{429, "99999999999999999999999999999999999999", date, time.Hour},
		{429, date, date, time.Second},
		{429, "Sun, 06 Nov 1994 08:00:00 GMT", date, time.Second},
		{429, "Fri, 31 Dec 9999 23:59:59 GMT", date, time.Hour},
		// Invalid.
		{429, "-1", date, 0},
		{429, "+20", date, 0},
		{429, "1.5", date, 0},
		{429, "1e3", date, 0},
		{429, "0x20", date, 0},
		{429, "20s", date, 0},
		{429, "20, 30", date, 0},
		{429, "٢٠", date, 0},
		{429, "Sun, 06 Nov 1994 08:50:07", date, 0},
		{429, "2026-11-20T08:00:00Z", date, 0},
		{429, "soon", date, 0},
	} {
		m := newMerchant(t, fakemerchant.Options{})
		header := http.Header{"Date": {c.date}}
		if c.after != "" {
			header.Set("Retry-After", c.after)
		}
		m.Behave(fakemerchant.AnswerHeader(header, fakemerchant.Answer(c.status, "success")))
		if r := newChannel(t, nil).Send(t.Context(), message(m.URL())); r.RetryAfter != c.want || r.Status != c.status {
			t.Errorf("%d %q: %s (%d), want %s", c.status, c.after, r.RetryAfter, r.Status, c.want)
		}
	}
}
