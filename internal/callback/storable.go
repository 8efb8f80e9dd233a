package callback

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// masked takes the place of a secret.
const masked = "***"

// secretWords in the name of a header or parameter mark its value as a secret. Signatures are
// evidence, not secrets, and are stored.
var secretWords = []string{"auth", "cookie", "passw", "secret", "token", "apikey", "api-key", "api_key", "session", "credential"}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// storableHeader formats a header as sorted "Name: value" lines with secrets masked.
func storableHeader(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if isSecret(name) {
				value = masked
			}
			b.WriteString(name + ": " + value + "\n")
		}
	}
	return textlimit.Storable(b.String())
}

// storableQuery returns the raw query with secrets masked.
func storableQuery(raw string) string {
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		encoded, _, hasValue := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(encoded)
		if err != nil {
			name = encoded
		}
		if hasValue && isSecret(name) {
			pairs[i] = encoded + "=" + masked
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
