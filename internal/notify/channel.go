// Package notify notifies merchants and subscribers of the results of orders: which
// notification is due, which node may send it now, and what an attempt's result means.
package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"backstop/internal/recipient"
)

// Message is one attempt at one notification, with everything that a Channel needs.
type Message struct {
	// ID is the same in all attempts; the recipient recognises repeats by it.
	ID   string
	Type string // event type, e.g. "order.paid"
	// Body is frozen when the event happens and is sent byte for byte.
	Body []byte
	// More are the other events of a digest; only for channels with digests.
	More []Part
	URL  string
	// To is the recipient; a channel to which merchants connect finds the connection by it.
	To recipient.Recipient
	// At is the time of this attempt, by the database's clock.
	At time.Time
	// Secrets are the signing keys, newest first; more than one during rotation.
	Secrets [][]byte
	// Format is the webhook's body format: "standard" (or empty), "form" (HMAC-SHA256) or
	// "form-md5".
	Format string
	// Headers are the endpoint's additional headers; they never replace ours.
	Headers map[string]string
	// ClientCert is for servers that request a client certificate (mTLS); nil = none.
	ClientCert *tls.Certificate
	// Credentials are the endpoint's decrypted secrets: user name, password, …. They are never
	// part of a Result.
	Credentials map[string]string
	// Ack is "status" (any 2xx) or "text" (2xx and a body equal to AckText).
	Ack, AckText string
	// Timeout bounds the whole attempt, from dial to the last byte read.
	Timeout time.Duration
}

// Part is one more event of a digest.
type Part struct {
	ID, Type string
	Body     []byte
}

// Class is how an attempt ended.
type Class string

// Classes of an attempt's end. Only OK is a success.
const (
	OK         Class = "ok"
	BadStatus  Class = "bad_status"  // a response other than 2xx (redirects included)
	Gone       Class = "gone"        // 410: the other side asks us to send nothing more
	BadText    Class = "bad_text"    // 2xx, but not with the agreed text
	Timeout    Class = "timeout"     // no complete response in time
	Cancelled  Class = "cancelled"   // we stopped it (shutdown)
	DNS        Class = "dns"         // the name does not resolve
	Connect    Class = "connect"     // refused, reset or unreachable before a response
	TLS        Class = "tls"         // handshake or certificate
	Broken     Class = "broken"      // the connection broke, or the response is not HTTP
	Blocked    Class = "blocked"     // an address that we may not reach (SSRF)
	BadAddress Class = "bad_address" // the URL cannot be used
	Internal   Class = "internal"    // our fault, e.g. no usable signing secret
	// Refused means that the other side understood and refused, outside HTTP: a broker's nack
	// or return, a mail server's 5xx, a wrong password.
	Refused Class = "refused"
	// NotConnected means that the merchant must connect to us and has not.
	NotConnected Class = "not_connected"
)

// Classes lists all classes.
var Classes = []Class{
	OK, BadStatus, Gone, BadText, Timeout, Cancelled, DNS, Connect, TLS, Broken, Blocked, BadAddress, Internal, Refused, NotConnected,
}

// Result is the end of one attempt. Its texts are stored and shown, so they must not contain
// secrets.
type Result struct {
	Class  Class
	Status int           // HTTP status; 0 = no response
	Took   time.Duration // from the start to the last byte
	// RetryAfter is how long the address asks us to send nothing more; 0 = it does not ask.
	RetryAfter time.Duration
	// RequestHeader and ResponseHeader are "Name: value" lines.
	RequestHeader, ResponseHeader string
	// ResponseBody is the beginning of the response, at most 4 KiB.
	ResponseBody []byte
	Error        string // in one line, empty on success
	RemoteAddr   string // the address that was dialled, if any
}

// Channel sends messages by one protocol (webhook, amqp, …). Send returns when the attempt or
// ctx is over; it never panics and retains nothing of the message. A channel that holds
// connections is also an io.Closer.
type Channel interface {
	Send(ctx context.Context, m Message) Result
}

// Fields returns the fields of a body's data as strings. Numbers stay as written, lists and
// objects are JSON; null and empty strings are left out.
func Fields(body []byte) (map[string]string, error) {
	var frozen struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &frozen); err != nil {
		return nil, errors.New("the frozen body is not JSON with a field data")
	}
	fields := make(map[string]string, len(frozen.Data))
	for name, raw := range frozen.Data {
		text := string(raw)
		switch {
		case text == "null" || name == "":
			continue
		case strings.HasPrefix(text, `"`):
			_ = json.Unmarshal(raw, &text) // it was valid as a part of the body
		case text[0] == '{' || text[0] == '[':
			var compact bytes.Buffer
			_ = json.Compact(&compact, raw)
			text = compact.String()
		}
		if text != "" {
			fields[name] = text
		}
	}
	return fields, nil
}

// Shown returns an endpoint's URL as the console and the API show it. The query of a web
// address, or what precedes its host, may contain a token.
func Shown(url string) string {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return url // URLs of other channels contain no secrets: see their targets
	}
	if end := strings.IndexAny(url, "?#"); end >= 0 {
		url = url[:end] + "?***"
	}
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		return scheme + "://***" + strings.TrimSuffix(host[at:]+"/"+path, "/")
	}
	return url
}
