package notify

import (
	"net/url"

	"backstop/internal/base/trace"
)

// endSpan ends an attempt's span with its result. It records only the host of the URL: the rest
// may contain a secret.
func endSpan(span *trace.Span, c claimed, msg Message, res Result) {
	if span == nil {
		return
	}
	if u, err := url.Parse(msg.URL); err == nil {
		span.Set("server.address", u.Hostname())
	}
	span.Set("backstop.notification", msg.ID)
	span.Set("backstop.event_type", c.EventType)
	span.Set("backstop.channel", c.Channel)
	span.Set("backstop.class", string(res.Class))
	span.SetInt("backstop.attempt", c.Attempts)
	if res.Status != 0 {
		span.SetInt("http.response.status_code", int64(res.Status))
	}
	if res.Class != OK {
		span.Fail(string(res.Class))
	}
	span.End()
}
