package ui

import (
	"html"

	"backstop/internal/base/textlimit"
)

// Bytes of one page, as HTML writes them. With all else a page stays below 1 MiB, the
// most that a browser opens at once.
const (
	RawBudget = 768 << 10 // of the page of one callback, or of two side by side
)

// ByteBudget is the space left on a page for raw texts and passed checks.
type ByteBudget struct{ Left int }

// step reports whether a check is shown: one that failed is, and one that passed where
// the page has room. How many passed is shown in any case.
func (r *ByteBudget) Step(passed bool, detail string) bool {
	const markup = 200
	if passed {
		r.Left -= markup + 2*HTMLLen(detail) // once more as its title
	}
	return !passed || r.Left > 0
}

// text is the part of a raw text that fits on the page, most bytes at most; whole
// says that nothing was cut.
func (r *ByteBudget) Text(raw string, most int) (shown string, whole bool) {
	shown = textlimit.Cut(raw, max(0, min(most, r.Left)))
	for HTMLLen(shown) > r.Left && shown != "" {
		shown = textlimit.Cut(shown, len(shown)*9/10)
	}
	if r.Left -= HTMLLen(shown); len(shown) < min(len(raw), most) {
		r.Left = 0
	}
	return shown, len(shown) == len(raw)
}

// HTMLLen is how many bytes HTML takes for a text.
func HTMLLen(text string) int { return len(html.EscapeString(text)) }
