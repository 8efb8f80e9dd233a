package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

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
	return outcome.Clean(b.String(), maxKeep)
}

// storable copies a body's beginning as text that every database takes:
// PostgreSQL refuses NUL and broken UTF-8. Secrets that it quotes are hidden.
func storable(body []byte, secrets map[string]string) []byte {
	if len(body) == 0 {
		return nil
	}
	return []byte(outcome.Clean(outcome.Hide(string(body), secrets), maxKeep))
}

// secretsOf is what an answer must not show of a request: what is secret of its
// address, and the merchant's own headers, whole and without the word for their
// kind ("Bearer").
func secretsOf(m notify.Message) map[string]string {
	secrets := outcome.InAddress(m.URL)
	if len(m.Headers) == 0 {
		return secrets
	}
	if secrets == nil {
		secrets = make(map[string]string, 2*len(m.Headers))
	}
	for name, value := range m.Headers {
		secrets[name] = value
		if _, token, ok := strings.Cut(value, " "); ok {
			secrets[name+" "] = token // no header has such a name
		}
	}
	return secrets
}
