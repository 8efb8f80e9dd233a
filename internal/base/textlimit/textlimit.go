// Package textlimit makes texts that come from outside fit: short enough, and such as can be
// stored.
package textlimit

import "strings"

// Cut is the beginning of s, of at most so many bytes. It ends with a whole character:
// PostgreSQL refuses half of one.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// Clip is Cut for people: an ellipsis says that there was more.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Cut(s, most) + "…"
}

// Storable replaces what PostgreSQL's text cannot hold: NUL, and bytes that are no
// UTF-8.
func Storable(s string) string {
	const replacement = "\uFFFD"
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
