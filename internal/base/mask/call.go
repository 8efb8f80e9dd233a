package mask

import (
	"bytes"
	"regexp"
	"slices"
)

// Call hides personal data in a request to a supplier or in its answer, except the given
// values. A request begins with a line with method and path.
func Call(message []byte, keep ...string) []byte {
	m := Of(keep...)
	head, body, cut := bytes.Cut(message, []byte("\n"))
	if !cut || !requestLine.Match(head) {
		if requestLine.Match(message) {
			return []byte(m.Text(string(message)))
		}
		return m.Body(message)
	}
	return slices.Concat([]byte(m.Text(string(head))), []byte("\n"), m.Body(bytes.TrimLeft(body, "\r\n")))
}

var requestLine = regexp.MustCompile(`^[A-Z]{3,7} [^\s]+`)
