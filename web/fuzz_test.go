package web

import (
	"bufio"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Another reader finds the same end in what passes.
func FuzzCheckFraming(f *testing.F) {
	for _, s := range []string{
		"Content-Length: 3\r\n", "Content-Length: 0\r\nContent-Length: 3\r\n", "Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
		"X: a\r\n Content-Length: 3\r\n", "Content-Length : 3\r\n", "X\n\tContent-Length: 3\n", "Transfer-Encoding: \x0bchunked\r\n",
		"X: a\rContent-Length: 3\r\n", "content-length:+3\r\n",
		"Connection: close\r\nHOST: y\r\n", ":\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		f.Add("POST /callback/wx HTTP/1.1\r\nHost: x\r\n" + s + "\r\nabc")
		f.Add("GET / HTTP/1.0\r\n" + s + "\n")
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var h fasthttp.RequestHeader
		if h.Read(bufio.NewReaderSize(strings.NewReader(raw), headerBytes)) != nil {
			return
		}
		chunked, err := checkFraming(&h)
		if err != nil || !slices.Contains(fiber.DefaultMethods, string(h.Method())) {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return
		}
		if chunked != (len(theirs.TransferEncoding) > 0) || !chunked && int64(max(h.ContentLength(), 0)) != theirs.ContentLength {
			t.Fatalf("%q: we read %d (chunks %v), net/http %d %v", raw, h.ContentLength(), chunked, theirs.ContentLength,
				theirs.TransferEncoding)
		}
	})
}
