package pages

import (
	"unicode/utf8"

	"backstop/internal/base/textlimit"
)

// Bytes of one page, as HTML writes them. With all else a page stays below 1 MiB: one
// of hundreds of callbacks would not open.
const (
	storyRoom  = 896 << 10 // of a story's events
	eventBytes = 1400      // of one event, without what has room or has not
	textRoom   = 384 << 10 // of a story's raw texts and passed checks
	rawRoom    = 768 << 10 // of the page of one callback, or of two side by side
)

// room is what a page has left for raw texts and passed checks.
type room struct{ left int }

// roomFor is the room of a story of so many events.
func roomFor(events int) *room {
	return &room{min(textRoom, max(0, storyRoom-events*eventBytes))}
}

// step says whether a check is shown: one that failed is, and one that passed where the
// page has room. How many passed is said in any case.
func (r *room) step(passed bool, detail string) bool {
	const markup = 180
	if passed {
		r.left -= markup + 2*len(detail) // once more as its title
	}
	if r.left < 0 {
		r.left = 0
	}
	return !passed || r.left > 0
}

// text is as much of a raw text as the page has room for, most bytes at most; whole
// says that nothing was cut.
func (r *room) text(raw string, most int) (shown string, whole bool) {
	shown = textlimit.Cut(raw, most)
	for i, c := range shown {
		if r.left -= written(c); r.left < 0 {
			r.left, shown = 0, shown[:i]
			break
		}
	}
	return shown, len(shown) == len(raw)
}

// lines are as many lines of a comparison as the page has room for.
func (r *room) lines(all []change) (shown []change, whole bool) {
	for i, c := range all {
		if r.left < len(c.text) { // cheap first: a line may be a whole body
			return all[:i], false
		}
		text, whole := r.text(c.text, len(c.text))
		if !whole {
			return append(shown, change{c.sign, text}), false
		}
		shown = append(shown, c)
	}
	return shown, true
}

// written is how many bytes HTML takes for a letter.
func written(c rune) int {
	switch c {
	case '"', '\'', '&':
		return len("&#34;")
	case '<', '>':
		return len("&lt;")
	}
	return utf8.RuneLen(c)
}
