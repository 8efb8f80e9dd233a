// Package webhook tells merchants by HTTP POST, signed as Standard Webhooks
// (standardwebhooks.com) asks for.
//
// An attempt succeeds by the merchant's own rule. "status" takes any 2xx.
// "text" takes a 2xx whose body is the agreed text: same letters in the same
// case, with nothing around it but spaces, tabs and line breaks. A quoted word,
// a byte order mark or a sentence that contains the word is not the text. Both
// rules want the whole answer (up to 64 KiB of it) within the timeout: one that
// breaks off may come from a proxy whose merchant never finished. A merchant who
// is told twice knows the repeat by its id; one who is never told knows nothing.
package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

const (
	// maxRead is how much of an answer is read: enough to drain what an ordinary
	// server says, so that its connection can be used again.
	maxRead = 64 << 10
	// maxKeep is how much of the body, and of the header, is kept.
	maxKeep = 4 << 10
)

// The merchants' success rules, as in notify.Message.
const ackStatus, ackText = "status", "text"

// Channel posts notifications. It is safe for concurrent use.
type Channel struct{ client *egress.Client }

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client.
func New(client *egress.Client) *Channel { return &Channel{client: client} }

// Send posts the message once and says what came of it. It follows no redirect.
func (c *Channel) Send(parent context.Context, m notify.Message) notify.Result {
	start := time.Now()
	result := c.attempt(parent, m)
	result.Took = time.Since(start)
	return result
}

func (c *Channel) attempt(parent context.Context, m notify.Message) notify.Result {
	if problem := unsendable(m); problem != "" {
		return notify.Result{Class: notify.Internal, Error: problem}
	}
	to, err := c.client.Parse(m.URL)
	if err != nil {
		class, text := outcome.Unusable(err)
		return notify.Result{Class: class, Error: text}
	}
	contentType := jsonType
	if m.Format == formMD5 || m.Format == formHMAC {
		contentType = formType
		if m.Body, err = form(m); err != nil {
			return notify.Result{Class: notify.Internal, Error: outcome.OneLine(err.Error())}
		}
	}
	ctx, cancel := context.WithTimeout(parent, m.Timeout)
	defer cancel()
	var j journey
	header := headerOf(m, contentType)
	result := notify.Result{RequestHeader: lines(header, m.Headers)}
	resp, err := c.client.RoundTripAs(m.ClientCert, request(j.watch(ctx), to, header, m.Body))
	result.RemoteAddr = j.remote
	if err != nil {
		result.Class, result.Error = outcome.Of(parent, ctx, j.answered.Load(), err)
		if result.RemoteAddr == "" && result.Class != notify.Blocked {
			result.RemoteAddr = outcome.Dialled(err)
		}
		return result
	}
	defer func() { _ = resp.Body.Close() }()
	result.Status = resp.StatusCode
	own := secretsOf(m)
	result.ResponseHeader = outcome.Hide(lines(resp.Header, nil), own)

	buffer := buffers.Get().(*[2 * maxKeep]byte)
	defer buffers.Put(buffer)
	kept, whole, err := read(resp.Body, buffer)
	result.ResponseBody = storable(kept, own)
	if err != nil {
		result.Class, result.Error = outcome.Of(parent, ctx, j.answered.Load(), err)
		return result
	}
	result.Class, result.Error = judge(m, resp.StatusCode, kept, whole)
	return result
}

// unsendable finds what is wrong with a message on our own side.
func unsendable(m notify.Message) string {
	if problem := outcome.Unsendable(m); problem != "" {
		return problem
	}
	switch {
	case len(m.Secrets) == 0:
		return "no signing secret"
	case m.Ack != ackStatus && m.Ack != ackText:
		return "unknown success rule"
	case m.Ack == ackText && trim(m.AckText) == "":
		return "the success rule text has no text"
	case !slices.Contains([]string{"", standard, formHMAC, formMD5}, m.Format):
		return "unknown format"
	}
	if err := CheckHeaders(m.Headers); err != nil {
		return err.Error()
	}
	for _, secret := range m.Secrets {
		if len(secret) == 0 {
			return "a signing secret is empty"
		}
	}
	return ""
}

// request builds the POST without http.NewRequest, which would parse the URL a
// second time.
func request(ctx context.Context, to *url.URL, header http.Header, body []byte) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(body)),
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		// Lets the transport take another connection when an idle one turns out
		// to be closed before a byte was sent: still one attempt.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return r.WithContext(ctx)
}

// journey is how far an attempt got.
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

// buffers hold what is kept in their first half and what is only drained in
// their second.
var buffers = sync.Pool{New: func() any { return new([2 * maxKeep]byte) }}

// read takes the beginning of a body into buffer and drains up to maxRead of it.
// whole says that kept is all there was. An answer longer than maxRead is cut
// without an error: its connection is closed, not drained for ever.
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
