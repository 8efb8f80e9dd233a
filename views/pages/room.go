package pages

import (
	"html"

	"backstop/internal/base/textlimit"
)

// Bytes of one page, as HTML writes them. With all else a page stays below 1 MiB, the
// most that a browser opens at once.
const (
	storyRoom = 768 << 10 // of a story's events
	textRoom  = 384 << 10 // of that its raw texts and passed checks
	rawRoom   = 768 << 10 // of the page of one callback, or of two side by side
	fileRoom  = 256 << 10 // of the signed file on its page
	// asideRows is how many rows the lists beside a story have.
	asideRows = 20
	// transfersShown is how many of an order's transfers are open at once.
	transfersShown = 3
)

// room is the space left on a page for raw texts and passed checks.
type room struct{ left int }

// step reports whether a check is shown: one that failed is, and one that passed where
// the page has room. How many passed is shown in any case.
func (r *room) step(passed bool, detail string) bool {
	const markup = 200
	if passed {
		r.left -= markup + 2*written(detail) // once more as its title
	}
	return !passed || r.left > 0
}

// text is the part of a raw text that fits on the page, most bytes at most; whole
// says that nothing was cut.
func (r *room) text(raw string, most int) (shown string, whole bool) {
	shown = textlimit.Cut(raw, max(0, min(most, r.left)))
	for written(shown) > r.left && shown != "" {
		shown = textlimit.Cut(shown, len(shown)*9/10)
	}
	if r.left -= written(shown); len(shown) < min(len(raw), most) {
		r.left = 0
	}
	return shown, len(shown) == len(raw)
}

// lines are as many lines of a comparison as the page has room for.
func (r *room) lines(all []change) (shown []change, whole bool) {
	const markup = 20
	for i, c := range all {
		if r.left -= markup + written(c.text); r.left < 0 {
			return all[:i], false
		}
	}
	return all, true
}

// written is how many bytes HTML takes for a text.
func written(text string) int { return len(html.EscapeString(text)) }
