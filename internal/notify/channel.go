// Package notify tells merchants what became of their orders: which
// notification is due, who may send it now, and what an attempt's result means.
package notify

import (
	"context"
	"crypto/tls"
	"strings"
	"time"
)

// Message is one attempt of one notification, complete: a Channel needs nothing
// else and looks nothing up.
type Message struct {
	// ID is stable over all attempts; the merchant recognises repeats by it.
	ID   string
	Type string // event type, e.g. "order.paid"
	// Body is frozen when the fact happens and sent byte for byte.
	Body []byte
	// More are the other events of a digest; only channels that gather get some.
	More []Part
	URL  string
	// MerchantID is whom it is for; a channel that merchants connect to finds their
	// connections by it.
	MerchantID int64
	// At is the time of this attempt (the node's clock: the receiver judges it).
	At time.Time
	// Secrets are the signing keys, newest first; more than one during rotation.
	Secrets [][]byte
	// Format is how the webhook writes the body: "standard" (or empty), "form"
	// (HMAC-SHA256) or "form-md5".
	Format string
	// Headers are the merchant's own, beside ours and never instead of them.
	Headers map[string]string
	// ClientCert is shown to servers that ask for one (mTLS); nil = none.
	ClientCert *tls.Certificate
	// Credentials are the address's own secrets, opened: user name, password, ….
	// They never stand in a Result.
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

// Class groups the ways in which an attempt can end.
type Class string

// Classes of an attempt's end. Only OK is success.
const (
	OK         Class = "ok"
	BadStatus  Class = "bad_status"  // an answer that is not 2xx (redirects included)
	BadText    Class = "bad_text"    // 2xx, but not the text agreed on
	Timeout    Class = "timeout"     // no complete answer in time
	Cancelled  Class = "cancelled"   // we stopped it (shutdown)
	DNS        Class = "dns"         // the name does not resolve
	Connect    Class = "connect"     // refused, reset or unreachable before an answer
	TLS        Class = "tls"         // handshake or certificate
	Broken     Class = "broken"      // the connection broke, or the answer is not HTTP
	Blocked    Class = "blocked"     // the address is not one we may reach (SSRF)
	BadAddress Class = "bad_address" // the URL cannot be used at all
	Internal   Class = "internal"    // our fault, e.g. no usable signing secret
	// Refused: the other side understood and said no in words other than HTTP's: a
	// broker's nack or return, a mail server's 5xx, a wrong password.
	Refused Class = "refused"
	// NotConnected: the merchant must connect to us and has not.
	NotConnected Class = "not_connected"
)

// Classes are all of them.
var Classes = []Class{
	OK, BadStatus, BadText, Timeout, Cancelled, DNS, Connect, TLS, Broken, Blocked, BadAddress, Internal, Refused, NotConnected,
}

// Result is what one attempt came to. Its texts are stored and shown, so they
// hold no secrets.
type Result struct {
	Class  Class
	Status int           // HTTP status, 0 without an answer
	Took   time.Duration // from the start to the last byte
	// RequestHeader and ResponseHeader are "Name: value" lines.
	RequestHeader, ResponseHeader string
	// ResponseBody is the answer's beginning, at most 4 KiB.
	ResponseBody []byte
	Error        string // in one line, empty on success
	RemoteAddr   string // the address that was dialled, if any
}

// Channel sends a message one way (webhook, amqp, …). Send returns when the
// attempt is over or ctx is; it never panics and keeps nothing of the message. A
// channel that holds connections is an io.Closer too.
type Channel interface {
	Send(ctx context.Context, m Message) Result
}

// Shown is an address as people may see it. What stands behind the question mark
// of a web address, or before its host, may be a token of the merchant's.
func Shown(address string) string {
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return address // those of other channels hold no secrets: see their targets
	}
	end := strings.IndexAny(address, "?#")
	if end >= 0 {
		address = address[:end] + "?***"
	}
	scheme, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		return scheme + "://***" + strings.TrimSuffix(host[at:]+"/"+path, "/")
	}
	return address
}
