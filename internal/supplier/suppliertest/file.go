package suppliertest

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"testing"

	"backstop/internal/supplier"
)

var update = flag.Bool("update", false, "write testdata/*.http anew from the message builders")

// Kept fails if a message differs from its file in testdata: the file is what the adapter's
// test really sends. -update rewrites it.
func Kept(t *testing.T, path string, req *supplier.Request) {
	t.Helper()
	wire := dump(req)
	if *update {
		if err := os.WriteFile(path, wire, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, wire) {
		t.Errorf("%s is not what the message builder makes; run with -update and look at the difference", path)
	}
}

// Load reads an HTTP message from a file, as if it had arrived at Now.
func Load(tb testing.TB, path string) *supplier.Request {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	wire, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	body, err := io.ReadAll(wire.Body)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return &supplier.Request{
		Method:     wire.Method,
		Path:       wire.URL.Path,
		RawQuery:   wire.URL.RawQuery,
		Header:     wire.Header,
		Body:       body,
		RemoteAddr: netip.MustParseAddr("203.0.113.7"),
		ReceivedAt: Now,
	}
}

// dump formats the request as HTTP/1.1 text, with headers sorted by name.
func dump(req *supplier.Request) []byte {
	var b bytes.Buffer
	target := req.Path
	if req.RawQuery != "" {
		target += "?" + req.RawQuery
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: pay.example.com\r\n", req.Method, target)
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		for _, value := range req.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(req.Body))
	b.Write(req.Body)
	return b.Bytes()
}
