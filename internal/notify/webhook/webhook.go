// Package webhook sends notifications by HTTP POST, signed by Standard Webhooks
// (standardwebhooks.com).
//
// An attempt succeeds by the recipient's own rule. "status" accepts any 2xx. "text" accepts a
// 2xx whose body is the agreed text, with the same case, surrounded by nothing but spaces, tabs
// and line breaks; quotes, a byte order mark or a sentence containing the text do not match.
// Both rules require the complete response (up to 64 KiB of it) within the timeout: a response
// that breaks off may come from a proxy whose merchant never finished. In doubt the attempt
// fails: a merchant recognises a repeat by its id, but cannot notice a notification that it
// never received.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"backstop/internal/base/egress"
	"backstop/internal/base/mask"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

const (
	// maxRead is how much of a response is read: enough to drain an ordinary server's, so that
	// the connection can be reused.
	maxRead = 64 << 10
	// maxKeep is how much of the body, and of the header, is stored.
	maxKeep = 4 << 10
)

// The success rules, as in notify.Message.
const ackStatus, ackText = "status", "text"

// Our own headers, which other channels send too, and what merchants usually answer that is neither
// a person's nor a secret.
var _ = mask.Declare(`Webhook-Id Webhook-Timestamp Webhook-Signature`,
	`code msg message status success ok error errors result reason return_code return_msg retcode errcode errmsg ret ack`)

// Channel posts notifications. It is safe for concurrent use.
type Channel struct{ client *egress.Client }

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client.
func New(client *egress.Client) *Channel { return &Channel{client: client} }

// Send posts the message once. It follows no redirect.
func (c *Channel) Send(ctx context.Context, m notify.Message) notify.Result {
	return outcome.Send(ctx, m, nil, func(ctx context.Context) notify.Result { return c.attempt(ctx, m) })
}

func (c *Channel) attempt(ctx context.Context, m notify.Message) notify.Result {
	if err := check(m); err != nil {
		return outcome.Internal(err)
	}
	to, err := c.client.Parse(m.URL)
	if err != nil {
		return outcome.Unusable(err)
	}
	contentType := jsonType
	if m.Format == formMD5 || m.Format == formHMAC {
		contentType = formType
		if m.Body, err = form(m); err != nil {
			return outcome.Internal(err)
		}
	}
	var j journey
	header := headerOf(m, contentType)
	result := notify.Result{RequestHeader: lines(header, m.Headers)}
	resp, err := c.client.RoundTripAs(m.ClientCert, request(j.watch(ctx), to, header, m.Body))
	result.RemoteAddr = j.remote
	if err != nil {
		result.Class, result.Error = outcome.Of(ctx, j.answered.Load(), err)
		if result.RemoteAddr == "" && result.Class != notify.Blocked {
			result.RemoteAddr = outcome.Dialled(err)
		}
		return result
	}
	defer func() { _ = resp.Body.Close() }()
	result.Status, result.RetryAfter = resp.StatusCode, retryAfter(resp.StatusCode, resp.Header, m.At)
	own := secretsOf(m)
	result.ResponseHeader = outcome.Hide(lines(resp.Header, nil), own)

	buffer := buffers.Get().(*[2 * maxKeep]byte)
	defer buffers.Put(buffer)
	kept, whole, err := read(resp.Body, buffer)
	result.ResponseBody = storable(kept, own)
	if err != nil {
		result.Class, result.Error = outcome.Of(ctx, j.answered.Load(), err)
		return result
	}
	result.Class, result.Error = judge(m, resp.StatusCode, kept, whole)
	return result
}

// check returns what is wrong with a message on our side.
func check(m notify.Message) error {
	switch {
	case len(m.Secrets) == 0:
		return errors.New("no signing secret")
	case slices.ContainsFunc(m.Secrets, func(secret []byte) bool { return len(secret) == 0 }):
		return errors.New("a signing secret is empty")
	case m.Ack != ackStatus && m.Ack != ackText:
		return errors.New("unknown success rule")
	case m.Ack == ackText && trim(m.AckText) == "":
		return errors.New("the success rule text has no text")
	case !slices.Contains([]string{"", standard, formHMAC, formMD5}, m.Format):
		return errors.New("unknown format")
	}
	return CheckHeaders(m.Headers)
}

// request builds the POST without http.NewRequest, which would parse the URL a second time.
func request(ctx context.Context, to *url.URL, header http.Header, body []byte) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(body)),
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		// With GetBody the transport can retry on another connection if an idle one turns out
		// to be closed before a byte was sent: still one attempt.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return r.WithContext(ctx)
}

// journey records how far an attempt has come.
type journey struct {
	remote   string
	answered atomic.Bool // set by the connection's own goroutine
}

func (j *journey) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { j.remote = info.Conn.RemoteAddr().String() },
		GotFirstResponseByte: func() { j.answered.Store(true) },
	})
}

// buffers store the kept bytes in their first half and drain the rest into their second.
var buffers = sync.Pool{New: func() any { return new([2 * maxKeep]byte) }}

// read reads the beginning of a body into buffer and drains up to maxRead of it. whole means
// that kept is the entire body. A response longer than maxRead is cut without an error, and its
// connection is closed.
func read(body io.Reader, buffer *[2 * maxKeep]byte) (kept []byte, whole bool, err error) {
	for total := 0; total < maxRead; {
		into := buffer[len(kept):maxKeep]
		if len(into) == 0 {
			into = buffer[maxKeep:]
		}
		n, err := body.Read(into[:min(len(into), maxRead-total)])
		if total < maxKeep {
			kept = buffer[:total+n]
		}
		total += n
		if err == io.EOF {
			return kept, total == len(kept), nil
		}
		if err != nil {
			return kept, false, err
		}
	}
	return kept, false, nil
}
