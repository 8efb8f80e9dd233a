package web

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// checkFraming refuses requests whose end two HTTP readers may see in different places: behind
// a proxy, the rest of such a request would be a second request that the proxy never saw. The
// library is lenient here (the last Content-Length wins, any Transfer-Encoding counts as
// chunked, lines may be folded), so the raw header is checked (RFC 9112, sections 5 and 6).
//
// It also reports whether the body is chunked. The library skips everything after a chunk's
// size up to a carriage return, including line feeds, which other readers do not; after such a
// body the connection must be closed, so that nothing is read after a disputed end.
func checkFraming(h *fasthttp.RequestHeader) (chunked bool, err error) {
	raw := h.RawHeaders()
	if bytes.Contains(raw, []byte("\n ")) || bytes.Contains(raw, []byte("\n\t")) {
		return false, BadRequest("a header line is folded")
	}
	var lengths, codings, hosts int
	var coding string
	problem := ""
	h.VisitAllInOrder(func(key, value []byte) {
		switch name := string(key); {
		case !isToken(name):
			problem = "a header name has a character that is not allowed"
		case hasControl(value):
			problem = "a header value has a control character"
		case strings.EqualFold(name, fasthttp.HeaderContentLength):
			lengths++
		case strings.EqualFold(name, fasthttp.HeaderTransferEncoding):
			codings++
			coding = string(value)
		case strings.EqualFold(name, fasthttp.HeaderHost):
			hosts++
		}
	})
	switch {
	case problem != "":
	case hosts > 1:
		problem = "more than one Host"
	case lengths > 1:
		problem = "more than one Content-Length"
	case codings > 0 && lengths > 0:
		problem = "Content-Length beside Transfer-Encoding"
	case codings > 1, codings == 1 && !strings.EqualFold(coding, "chunked"):
		problem = "a Transfer-Encoding other than chunked"
	case codings > 0 && !h.IsHTTP11():
		problem = "Transfer-Encoding is of HTTP/1.1"
	}
	if problem != "" {
		err = BadRequest(problem)
	}
	return codings > 0, err
}

// isToken follows RFC 9110, section 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

func hasControl(value []byte) bool {
	return bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
