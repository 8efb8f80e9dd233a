// Package outcome puts the end of an attempt into words: its class, and a line
// that can be stored and shown. Every channel uses it, so that the same trouble
// has the same name however the merchant is reached.
package outcome

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"backstop/internal/base/egress"
	"backstop/internal/base/textlimit"
	"backstop/internal/notify"
)

// maxError bounds an error's text: part of it may quote the other side.
const maxError = 300

// Of says how an attempt broke off. What stopped it from outside comes first, as
// everything else may only be its consequence. parent is Send's own context, ctx
// the one that the attempt's timeout ends; answered says that the other side had
// begun to speak.
func Of(parent, ctx context.Context, answered bool, err error) (notify.Class, string) {
	var unknown *net.DNSError
	switch {
	case errors.Is(parent.Err(), context.Canceled):
		return notify.Cancelled, "stopped by us"
	case errors.Is(err, egress.ErrBlocked):
		return notify.Blocked, OneLine(reason(err))
	case errors.Is(err, egress.ErrTLS):
		return notify.TLS, OneLine(reason(err))
	case alert(err):
		return notify.TLS, OneLine(err.Error())
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return notify.Internal, "this node has no more files to open: raise its limit"
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

// MaxID bounds the id of a message; ours have 64 at most, and AMQP and mail
// take the least.
const MaxID = 128

// Unsendable says what is wrong with a message on our own side, or "". An id goes
// into headers, and in angle brackets into a mail's.
func Unsendable(m notify.Message) string {
	switch {
	case m.Timeout <= 0:
		return "no timeout"
	case m.ID == "" || len(m.ID) > MaxID || strings.ContainsFunc(m.ID, func(c rune) bool { return c <= ' ' || c > '~' || c == '<' || c == '>' }):
		return "the id cannot be sent"
	}
	return ""
}

// Unusable classes what is wrong with an address before anything was sent.
func Unusable(err error) (notify.Class, string) {
	if errors.Is(err, egress.ErrBlocked) {
		return notify.Blocked, OneLine(err.Error())
	}
	return notify.BadAddress, OneLine(err.Error())
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

// alert says that the other side ended the TLS connection with an alert. Since TLS
// 1.3 a server that misses a client's certificate says so behind the handshake.
func alert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// Dialled is the address that a failed dial tried, or "".
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

// InAddress are what an answer must not repeat of a web address, like credentials:
// what stands behind its question mark, as a whole and each value that is no word.
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

// Hide replaces the values of credentials wherever a text from outside repeats
// them: a server's refusal may quote what it refuses.
func Hide(text string, credentials map[string]string) string {
	const shortest = 4 // shorter ones would blot out ordinary words
	// The longest first: one may be a part of another, whose rest would stay.
	values := slices.Collect(maps.Values(credentials))
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if len(value) >= shortest {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}
