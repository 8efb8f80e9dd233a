// Package outcome is shared by all channels: the limits of an attempt, and how its end becomes
// a class and one line of text that can be stored and shown.
package outcome

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"backstop/internal/base/egress"
	"backstop/internal/base/textlimit"
	"backstop/internal/notify"
)

// maxError bounds an error text, which may quote the other side.
const maxError = 300

// Send makes one attempt within the message's timeout, unless the message cannot be sent or ctx
// is over, and hides secrets that the error text repeats.
func Send(ctx context.Context, m notify.Message, secrets map[string]string, attempt func(context.Context) notify.Result) notify.Result {
	start := time.Now()
	result := bounded(ctx, m, attempt)
	result.Error = Hide(result.Error, secrets)
	result.Took = time.Since(start)
	return result
}

func bounded(ctx context.Context, m notify.Message, attempt func(context.Context) notify.Result) (result notify.Result) {
	if problem := unsendable(m); problem != "" {
		return Internal(errors.New(problem))
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	if err := ctx.Err(); err != nil { // an open connection would still accept the message
		result.Class, result.Error = Of(ctx, false, err)
		return result
	}
	return attempt(ctx)
}

// Of returns the class and text of a failed attempt. The end of its context is checked first,
// because other errors may follow from it. answered = the other side had begun to respond.
func Of(ctx context.Context, answered bool, err error) (notify.Class, string) {
	var unknown *net.DNSError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return notify.Cancelled, "stopped by us"
	case errors.Is(err, egress.ErrBlocked):
		return notify.Blocked, OneLine(reason(err))
	case errors.Is(err, egress.ErrTLS):
		return notify.TLS, OneLine(reason(err))
	case isAlert(err):
		return notify.TLS, OneLine(err.Error())
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return notify.Internal, "this node has too many open files: raise its limit"
	case ctx.Err() != nil:
		return notify.Timeout, "no complete answer in time"
	case errors.As(err, &unknown):
		return notify.DNS, OneLine(unknown.Error())
	case dialError(err) != nil:
		return notify.Connect, OneLine(err.Error())
	case !answered && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return notify.Connect, "the connection was reset before an answer"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return notify.Broken, "the connection was closed before the answer was complete"
	}
	return notify.Broken, OneLine(err.Error())
}

// OfStatus returns the class of an HTTP response that is not a success.
func OfStatus(status int) notify.Class {
	if status == http.StatusGone {
		return notify.Gone
	}
	return notify.BadStatus
}

// MaxID bounds the id of a message; ours have at most 64 bytes. The limits of AMQP and mail are
// the lowest.
const MaxID = 128

// unsendable returns what is wrong with a message on our side, or "". The id becomes part of
// headers and, in angle brackets, of a mail's Message-ID.
func unsendable(m notify.Message) string {
	switch {
	case m.Timeout <= 0:
		return "no timeout"
	case m.ID == "" || len(m.ID) > MaxID || strings.ContainsFunc(m.ID, func(c rune) bool {
		return c <= ' ' || c > '~' || c == '<' ||
			c == '>'
	}):
		return "the id cannot be sent"
	}
	return ""
}

// Unusable is the result if a URL cannot be used; nothing was sent.
func Unusable(err error) notify.Result {
	class := notify.BadAddress
	if errors.Is(err, egress.ErrBlocked) {
		class = notify.Blocked
	}
	return notify.Result{Class: class, Error: OneLine(err.Error())}
}

// Internal is the result if the message cannot be sent for a reason on our side.
func Internal(err error) notify.Result {
	return notify.Result{Class: notify.Internal, Error: OneLine(err.Error())}
}

// reason drops the dialer's text around an error of egress, which already contains the address.
func reason(err error) string {
	if dial := dialError(err); dial != nil && dial.Err != nil {
		return dial.Err.Error()
	}
	return err.Error()
}

// dialError returns the failed dial in err's chain, or nil.
func dialError(err error) *net.OpError {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op
	}
	return nil
}

// isAlert reports whether the other side ended the TLS connection with an alert. Since TLS 1.3
// a server sends that for a missing client certificate after the handshake.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// Dialled returns the address that a failed dial tried, or "".
func Dialled(err error) string {
	if dial := dialError(err); dial != nil && dial.Addr != nil {
		return dial.Addr.String()
	}
	return ""
}

// Clean makes text valid UTF-8 without NUL, which PostgreSQL refuses, and cuts it
// at limit bytes, between characters.
func Clean(text string, limit int) string { return textlimit.Cut(textlimit.Storable(text), limit) }

// OneLine makes an error's text short and safe to print.
func OneLine(text string) string {
	return Clean(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text), maxError)
}

// InAddress returns the parts of a web address that must be hidden like credentials: its query,
// as a whole and each longer value.
func InAddress(address string) map[string]string {
	const shortest = 8 // of a token
	_, query, found := strings.Cut(address, "?")
	if !found {
		return nil
	}
	secrets := map[string]string{"?": query}
	for i, pair := range strings.Split(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); err == nil && len(plain) >= shortest {
			secrets["?"+strconv.Itoa(i)], secrets["&"+strconv.Itoa(i)] = value, plain
		}
	}
	return secrets
}

// Hide removes the values of credentials from a text from outside: a server's refusal may quote
// what it refuses.
func Hide(text string, credentials map[string]string) string {
	const shortest = 4 // shorter ones would replace parts of ordinary words
	// Longest first: one may be part of another, whose rest would remain.
	values := slices.Collect(maps.Values(credentials))
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if len(value) >= shortest {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}
