// Package textlimit bounds texts that come from outside and makes them storable.
package textlimit

import "strings"

// Cut returns the beginning of s, at most maxBytes long. It ends with a whole character:
// PostgreSQL refuses a part of one.
func Cut(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "")
}

// Clip is Cut with an ellipsis if s was longer.
func Clip(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	return Cut(s, maxBytes) + "…"
}

// Storable replaces what PostgreSQL's type text cannot store: NUL, and bytes that are not
// UTF-8.
func Storable(s string) string {
	const replacement = "\uFFFD"
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
