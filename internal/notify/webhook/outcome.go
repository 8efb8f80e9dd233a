package webhook

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"backstop/internal/egress"
	"backstop/internal/notify"
)

// maxError bounds an error's text: part of it may quote the answer.
const maxError = 300

// judge applies the merchant's success rule to a complete answer.
func judge(m notify.Message, status int, body []byte, whole bool) (notify.Class, string) {
	answered := "answered " + strconv.Itoa(status)
	switch {
	case status >= 300 && status < 400:
		return notify.BadStatus, answered + "; redirects are not followed"
	case status < 200 || status > 299:
		return notify.BadStatus, answered
	case m.Ack == ackText && (!whole || trim(string(body)) != trim(m.AckText)):
		return notify.BadText, answered + ", but not with the text agreed on"
	}
	return notify.OK, ""
}

// trim removes what editors and templates leave at the ends of a text. A byte
// order mark is not among it.
func trim(text string) string { return strings.Trim(text, " \t\r\n") }

// unusable classes what is wrong with a URL before anything was sent.
func unusable(err error) notify.Class {
	if errors.Is(err, egress.ErrBlocked) {
		return notify.Blocked
	}
	return notify.BadAddress
}

// classify says how an attempt broke off. What stopped it from outside comes
// first, as everything else may only be its consequence.
func classify(parent, ctx context.Context, j *journey, err error) (notify.Class, string) {
	var unknown *net.DNSError
	switch {
	case errors.Is(parent.Err(), context.Canceled):
		return notify.Cancelled, "stopped by us"
	case errors.Is(err, egress.ErrBlocked):
		return notify.Blocked, oneLine(reason(err))
	case errors.Is(err, egress.ErrTLS):
		return notify.TLS, oneLine(reason(err))
	case ctx.Err() != nil:
		return notify.Timeout, "no complete answer in time"
	case errors.As(err, &unknown):
		return notify.DNS, oneLine(unknown.Error())
	case dialError(err) != nil:
		return notify.Connect, oneLine(err.Error())
	case !j.answered.Load() && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return notify.Connect, "the connection was reset before an answer"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return notify.Broken, "the connection was closed before the answer was complete"
	}
	return notify.Broken, oneLine(err.Error())
}

// reason leaves out the dialer's words around an error of egress, which names
// the address itself.
func reason(err error) string {
	if dial := dialError(err); dial != nil && dial.Err != nil {
		return dial.Err.Error()
	}
	return err.Error()
}

// dialError is the failed dial in err's chain, or nil.
func dialError(err error) *net.OpError {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op
	}
	return nil
}

// dialled is the address that a failed dial tried, or "".
func dialled(err error) string {
	if dial := dialError(err); dial != nil && dial.Addr != nil {
		return dial.Addr.String()
	}
	return ""
}

// private are headers of an answer whose values are the merchant's secrets.
var private = []string{"Set-Cookie", "Authorization", "Proxy-Authorization", "Authentication-Info"}

// lines writes a header as sorted "Name: value" lines, cut at maxKeep. What the
// merchant added itself may be a token of its own and stands there as ***.
func lines(header http.Header, own map[string]string) string {
	hidden := make(map[string]bool, len(own))
	for name := range own {
		hidden[http.CanonicalHeaderKey(name)] = !reserved(http.CanonicalHeaderKey(name))
	}
	names := make([]string, 0, len(header))
	size := 0
	for name, values := range header {
		names = append(names, name)
		for _, value := range values {
			size += len(name) + len(value) + 3
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.Grow(min(size, maxKeep))
	for _, name := range names {
		for _, value := range header[name] {
			if hidden[name] || slices.Contains(private, name) {
				value = "***"
			}
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(name)
			b.WriteString(": ")
			b.WriteString(value)
		}
		if b.Len() > maxKeep {
			break
		}
	}
	return clean(b.String(), maxKeep)
}

// storable copies a body's beginning as text that every database takes:
// PostgreSQL refuses NUL and broken UTF-8.
func storable(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return []byte(clean(string(body), maxKeep))
}

// clean makes text valid UTF-8 without NUL and cuts it at limit bytes, between
// characters.
func clean(text string, limit int) string {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// oneLine makes an error's text short and safe to print.
func oneLine(text string) string {
	return clean(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text), maxError)
}
