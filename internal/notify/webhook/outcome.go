package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/mask"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

// judge applies the success rule to a complete response.
func judge(m notify.Message, status int, body []byte, whole bool) (notify.Class, string) {
	answered := "answered " + strconv.Itoa(status)
	switch {
	case status >= 300 && status < 400:
		return notify.BadStatus, answered + "; redirects are not followed"
	case status < 200 || status > 299:
		return outcome.OfStatus(status), answered
	case m.Ack == ackText && (!whole || trim(string(body)) != trim(m.AckText)):
		return notify.BadText, answered + ", but not with the agreed text"
	}
	return notify.OK, ""
}

// trim removes what editors and templates leave at the ends of a text, but not a byte order
// mark.
func trim(text string) string { return strings.Trim(text, " \t\r\n") }

// lines formats a header as sorted "Name: value" lines, cut at maxKeep. The values of headers that
// nobody declared as harmless, and of the endpoint's own, may be credentials and are written as ***.
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
			if hidden[name] || !mask.Shows(name) {
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

// storable copies the beginning of a body as text that every database accepts: PostgreSQL
// refuses NUL and invalid UTF-8. Secrets that it quotes are hidden.
func storable(body []byte, secrets map[string]string) []byte {
	if len(body) == 0 {
		return nil
	}
	return []byte(outcome.Clean(outcome.Hide(string(body), secrets), maxKeep))
}

// secretsOf returns the parts of a request to hide in its response: the query of its URL, and
// the endpoint's own headers, whole and without their scheme ("Bearer").
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
			secrets[name+" "] = token // no header name ends in a space
		}
	}
	return secrets
}
