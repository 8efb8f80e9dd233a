package callback

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/base/mask"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// hidden takes the place of a value that is not stored.
const hidden = "***"

// storableHeader formats a header as sorted "Name: value" lines. Values of headers that nobody
// declared as harmless are not stored: they may be credentials. Adapters declare those that they
// read, such as signatures.
func storableHeader(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if !mask.Shows(name) {
				value = hidden
			}
			b.WriteString(name + ": " + value + "\n")
		}
	}
	return textlimit.Storable(b.String())
}

// storableQuery returns the query as it is stored. That of a GET is the message, stored as it came
// like a body, because its signature covers every parameter. That of another request belongs to the
// address, and may contain a credential: values that nobody declared as harmless are not stored.
func storableQuery(req *supplier.Request) string {
	if req.Method == http.MethodGet {
		return textlimit.Storable(req.RawQuery)
	}
	pairs := strings.Split(req.RawQuery, "&")
	for i, pair := range pairs {
		encoded, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(encoded); value != "" && (err != nil || !mask.Shows(name)) {
			pairs[i] = encoded + "=" + hidden
		}
	}
	return textlimit.Storable(strings.Join(pairs, "&"))
}

func addrText(req *supplier.Request) string {
	if !req.RemoteAddr.IsValid() {
		return ""
	}
	return req.RemoteAddr.String()
}
